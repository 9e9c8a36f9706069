#!/bin/sh
# $1 processes that do nothing but compute.
make() {
  if systemctl -q is-active lab-busy; then return; fi
  systemd-run -q --unit=lab-busy sh -c "seq $1 | xargs -P $1 -I{} sh -c 'while :; do :; done'"
}

heal() {
  systemctl stop lab-busy 2>/dev/null || true
  ! systemctl -q is-active lab-busy
}

"$@" </dev/null
