#!/bin/sh
# $1 processes that do nothing but compute, beside the slices of the system and of the pods, with the weight $2.
make() {
  if systemctl -q is-active lab-busy; then return; fi
  systemctl set-property --runtime lab.slice CPUWeight="$2"
  systemd-run -q --unit=lab-busy --slice=lab.slice sh -c "seq $1 | xargs -P $1 -I{} sh -c 'while :; do :; done'"
}

heal() {
  systemctl stop lab-busy 2>/dev/null || true
  ! systemctl -q is-active lab-busy
}

"$@" </dev/null
