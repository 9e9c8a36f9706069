#!/bin/sh
# The second network's address $1 is on a link that comes later in the kernel's list than the first NIC.
link=late1

make() {
  [ -e /sys/class/net/$link ] || ip link add link vec1 name $link type macvlan mode bridge
  ip addr flush dev vec1
  ip addr replace "$1" dev $link
  ip link set $link up
}

heal() {
  if [ -e /sys/class/net/$link ]; then ip link del $link; fi
  ip addr replace "$1" dev vec1
}

"$@" </dev/null
