#!/bin/sh
# A bridge as docker makes them for a network: name $1, address $2.
make() {
  [ -e "/sys/class/net/$1" ] || ip link add "$1" type bridge
  ip addr replace "$2" dev "$1"
  ip link set "$1" up
}

heal() {
  if [ -e "/sys/class/net/$1" ]; then ip link del "$1"; fi
}

"$@" </dev/null
