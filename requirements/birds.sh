#!/bin/sh
# Unpacks Debian's releases of BIRD side by side into .cache/birds, for the tests that read their real control sockets.
# They cannot be installed together, and none of them is to run on this machine. Needs no root.
set -eu
cd "$(dirname "$0")/.."
command -v apt-get >/dev/null || { echo "No apt-get here: the tests that read a real BIRD will be skipped"; exit 0; }

apt() { apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"; }

# What apt knows may be missing, or too old to be had any more; once is enough.
updated=""
update() { [ -z "$updated" ] && [ "$(id -u)" = 0 ] && updated=yes && apt update >/dev/null 2>&1; }

unpack() {
    rm -rf "$2"
    mkdir -p "$2"
    # shellcheck disable=SC2046  # a list of names
    (cd "$2" && apt download "$1" $(apt-cache depends "$1" | sed -n 's/ *Depends: \(libssh[^ ]*\)/\1/p')) || return 1
    for package in "$2"/*.deb; do dpkg -x "$package" "$2"; done
    rm "$2"/*.deb
}

known() { apt-cache show "$1" >/dev/null 2>&1; }

[ -d .cache/birds ] || known bird2 || update || true
for name in bird bird2 bird3; do
    place=.cache/birds/$name
    [ ! -x "$place/usr/sbin/bird" ] || continue
    known "$name" || continue # not every release of Debian has all of them
    echo "Unpacking $name"
    { unpack "$name" "$place.draft" || { update && unpack "$name" "$place.draft"; }; } >/dev/null 2>&1 && mv "$place.draft" "$place" ||
        echo "$name could not be had: the tests that read it will be skipped"
done
