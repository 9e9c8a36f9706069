#!/bin/sh
# containerd accepts connections and answers nothing; systemd and kubelet find it running.
make() {
  systemctl kill --kill-whom=main --signal=STOP containerd
}

heal() {
  systemctl kill --kill-whom=main --signal=CONT containerd
}

"$@" </dev/null
