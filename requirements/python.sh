#!/bin/sh
# Prints a Python that really runs, between two versions: python.sh LOWEST HIGHEST, such as python.sh 3.11 3.14.
# The newest wins. Names on the PATH can be shims that start nothing, so each candidate is run before it is believed.
lowest=${1#3.} highest=${2#3.} ; minor=$highest
pyenv=$(pyenv root 2>/dev/null || echo "${PYENV_ROOT:-$HOME/.pyenv}")
while [ "$minor" -ge "$lowest" ]; do
    for candidate in "$(command -v "python3.$minor")" "$pyenv"/versions/3."$minor".*/bin/python3 "$(command -v python3)" /usr/bin/python3; do
        [ -x "$candidate" ] || continue
        real=$("$candidate" -c 'import sys; print(sys.executable if sys.version_info[1] == int(sys.argv[1]) else "")' "$minor" 2>/dev/null) || continue
        [ -n "$real" ] && echo "$real" && exit 0
    done
    minor=$((minor - 1))
done
echo "No Python between $1 and $2 was found on the PATH or under $pyenv. On Debian: apt-get install python3 python3-venv" >&2
exit 1
