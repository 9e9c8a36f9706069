#!/bin/sh
# Unpacks the collection awx.awx into .cache/awx, for the test that applies job templates with it. Of all packages that can be
# installed by name only that of many collections has it, from which just this one is taken.
set -eu
cd "$(dirname "$0")/.."
place=.cache/awx
stamp=$place/.made-for-$(cksum <requirements/awx.txt | tr ' ' -)
[ ! -e "$stamp" ] || exit 0
echo "Unpacking awx.awx"
rm -rf "$place"
mkdir -p "$place"
.venv/bin/python -m pip download --quiet --no-deps --disable-pip-version-check --dest "$place" -r requirements/awx.txt
.venv/bin/python - "$place" <<'PYTHON'
import pathlib, sys, zipfile
place = pathlib.Path(sys.argv[1])
(wheel,) = place.glob("*.whl")
with zipfile.ZipFile(wheel) as opened:
    opened.extractall(place, [name for name in opened.namelist() if name.startswith("ansible_collections/awx/awx/")])
wheel.unlink()
PYTHON
: >"$stamp"
