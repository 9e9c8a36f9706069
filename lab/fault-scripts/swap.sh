#!/bin/sh
# The disk's swap partition is on.
partition=$(readlink -f /dev/disk/by-partlabel/swap)

make() {
  is_on || swapon "$partition"
}

heal() {
  if is_on; then swapoff "$partition"; fi
}

is_on() {
  swapon --show=NAME --noheadings | grep -qx "$partition"
}

"$@" </dev/null
