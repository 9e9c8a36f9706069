#!/bin/sh
# Unpacks Debian's releases of BIRD side by side into .cache/birds, for the tests that read their real control sockets.
# They cannot be installed together, and none of them is to run on this machine. Needs no root.
set -eu
cd "$(dirname "$0")/.."
command -v apt-get >/dev/null || { echo "No apt-get here: the tests that read a real BIRD will be skipped"; exit 0; }

unpack() {
    mkdir -p "$2"
    # shellcheck disable=SC2046  # a list of names
    (cd "$2" && apt-get download -qq "$1" $(apt-cache depends "$1" | sed -n 's/ *Depends: \(libssh[^ ]*\)/\1/p')) || return 1
    for package in "$2"/*.deb; do dpkg -x "$package" "$2"; done
    rm "$2"/*.deb
}

known() { apt-cache show "$1" >/dev/null 2>&1; }

[ -d .cache/birds ] || known bird2 || { [ "$(id -u)" = 0 ] && apt-get update -qq >/dev/null 2>&1; } || true
for name in bird bird2 bird3; do
    place=.cache/birds/$name
    [ ! -x "$place/usr/sbin/bird" ] || continue
    known "$name" || continue # not every release of Debian has all of them
    echo "Unpacking $name"
    rm -rf "$place.draft"
    { unpack "$name" "$place.draft" >/dev/null 2>&1 && mv "$place.draft" "$place"; } || echo "$name could not be had: the tests that read it will be skipped"
done
