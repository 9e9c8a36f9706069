#!/bin/sh
# systemd turns the disk's swap partition on at the next boot.
make() {
  systemctl -q unmask swap.target
}

heal() {
  swapoff -a
  systemctl -q mask swap.target
}

"$@" </dev/null
