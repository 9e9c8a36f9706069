#!/bin/sh
# Unpacks Debian's Prometheus and Alertmanager into .cache/prometheus, for the tests of alerts. They are not installed: their services would start.
set -eu
cd "$(dirname "$0")/.."
place=.cache/prometheus
[ ! -x "$place/usr/bin/promtool" ] || exit 0
command -v apt-get >/dev/null || { echo "No apt-get here: the tests that need Prometheus and Alertmanager will be skipped"; exit 0; }
apt() { apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"; }
download() { (cd "$place.draft" && apt download prometheus prometheus-alertmanager); }
echo "Unpacking prometheus and prometheus-alertmanager"
rm -rf "$place.draft"
mkdir -p "$place.draft"
{
    { download || { [ "$(id -u)" = 0 ] && apt update && download; }; } &&
        for package in "$place.draft"/*.deb; do dpkg -x "$package" "$place.draft"; done &&
        rm "$place.draft"/*.deb &&
        mv "$place.draft" "$place"
} >/dev/null 2>&1 || echo "They could not be had: the tests that need them will be skipped"
