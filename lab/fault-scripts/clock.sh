#!/bin/sh
# The clock, wrong by $1 seconds, also after a reboot, with nobody to correct it.
unit=/etc/systemd/system/lab-clock.service

make() {
  systemctl -q mask --now systemd-timesyncd
  cat >$unit <<END
[Unit]
Description=lab: a clock that is wrong by $1 seconds
Before=containerd.service kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/date "--set=$1 seconds"
[Install]
WantedBy=multi-user.target
END
  systemctl daemon-reload
  systemctl -q enable --now lab-clock
}

heal() {
  if [ -e $unit ]; then
    systemctl -q disable --now lab-clock
    rm $unit
    systemctl daemon-reload
  fi
  systemctl -q unmask systemd-timesyncd
  synchronized=/run/systemd/timesync/synchronized tries=0
  rm -f $synchronized
  systemctl restart systemd-timesyncd
  until [ -e $synchronized ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { echo "systemd-timesyncd did not set the clock"; exit 1; }
    sleep 0.5
  done
}

"$@" </dev/null
