#!/bin/sh
# The lab's nodes as a dynamic inventory: ansible -i lab/hosts.sh all -m ping. LAB_ID names a lab other than "lab".
cd "$(dirname "$(readlink -f "$0")")/.." && exec python3 -m lab --id "${LAB_ID:-lab}" inventory --list
