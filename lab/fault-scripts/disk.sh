#!/bin/sh
# The root file system, $1 percent full.
file=/var/lib/lab-fills-the-disk

make() {
  percent=$1
  rm -f $file
  # shellcheck disable=SC2046  # two numbers
  set -- $(df --output=used,avail -B1 / | tail -n 1)
  size=$((($1 + $2) * percent / 100 - $1))
  [ $size -gt 0 ] || { echo "the disk is fuller than $percent % already"; exit 1; }
  fallocate -l $size $file
}

heal() {
  rm -f $file
}

"$@" </dev/null
