#!/bin/sh
# What leaves by the NIC $1, to $2 or to all, is delayed or lost; the other words are netem's.
make() {
  nic=$1 towards=$2
  shift 2
  if ours "$nic"; then return; fi
  modprobe -a sch_netem sch_prio cls_u32
  if [ "$towards" = all ]; then
    tc qdisc add dev "$nic" root handle fa: netem "$@"
    return
  fi
  # Only what the filter picks goes to the fourth band.
  tc qdisc add dev "$nic" root handle fa: prio bands 4
  tc qdisc add dev "$nic" parent fa:4 handle fb: netem "$@"
  tc filter add dev "$nic" parent fa: protocol ip prio 1 u32 match ip dst "$towards/32" flowid fa:4
}

heal() {
  if ours "$1"; then tc qdisc del dev "$1" root; fi
}

ours() {
  tc qdisc show dev "$1" root | grep -q ' fa: '
}

"$@" </dev/null
