#!/bin/sh
# Installs the Debian packages that the tests use, when root may; else says what is missing: the tests that need it are then skipped.
# debian.sh, or debian.sh debian-lab.txt
set -eu
cd "$(dirname "$0")"
command -v dpkg-query >/dev/null || { echo "No Debian here: tests that need sshd, ip or chromium use what is there"; exit 0; }
missing=""
while read -r package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done <"${1:-debian.txt}"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
    echo "Missing for some tests, which will be skipped (as root: apt-get install$missing)"
    exit 0
fi
echo "Installing$missing"
export DEBIAN_FRONTEND=noninteractive
# Another program may be at it, such as unattended-upgrades on a machine that has just come up.
apt() { apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"; }
# shellcheck disable=SC2086  # a list of names
{ apt install -y --no-install-recommends $missing || { apt update && apt install -y --no-install-recommends $missing; }; } >/dev/null 2>&1 ||
    echo "apt-get could not install$missing: the tests that need them will be skipped"
