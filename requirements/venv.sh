#!/bin/sh
# Makes .venv with pinned requirements: venv.sh run, or venv.sh test. What is there already costs nothing and needs no network.
set -eu
cd "$(dirname "$0")/.."
# Which Python .venv was made with is part of what it is, so a broken or replaced interpreter makes it anew.
.venv/bin/python -c pass 2>/dev/null || rm -rf .venv
stamp() { cat requirements/run.txt "requirements/$1.txt" | cksum | tr ' ' -; }
stamped=.venv/.made-for-$1-$(stamp "$1")
[ ! -e "$stamped" ] || exit 0

if [ ! -d .venv ]; then
    python=$(sh requirements/python.sh 3.11 3.14)
    echo "Making .venv with $python ($("$python" -V))"
    if ! said=$("$python" -m venv .venv 2>&1); then
        rm -rf .venv
        # Debian ships Python without ensurepip; its virtualenv does as well.
        if ! "$python" -m virtualenv -q .venv 2>/dev/null; then
            echo "$said" | tail -n 3 >&2
            echo "$python cannot make a virtual environment. On Debian: apt-get install python3-venv; then run make again." >&2
            exit 1
        fi
    fi
fi
echo "Installing requirements/$1.txt into .venv"
# Python compiles what it imports by itself; to compile all that is there takes as long as the rest together.
.venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check -r "requirements/$1.txt"
rm -f ".venv/.made-for-$1-"*
: >"$stamped"
