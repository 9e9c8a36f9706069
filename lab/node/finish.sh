#!/bin/sh
# Runs inside the node's new root, once, before its disk is made.
set -e
systemctl -q enable systemd-networkd systemd-timesyncd ssh containerd lab-cpuinfo lab-seed
systemctl -q mask swap.target # a node that is well has no swap; the partition that could bring it back is there
systemctl -q disable docker.service docker.socket 2>/dev/null || true
# Starting a process is the slow thing in a guest (tens of milliseconds), so what the lab never uses is masked.
systemctl -q mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  systemd-firstboot.service systemd-networkd-wait-online.service getty@tty1.service serial-getty@tty0.service systemd-hwdb-update.service \
  ldconfig.service modprobe@.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-journal-catalog-update.service \
  systemd-update-done.service systemd-sysusers.service kmod-static-nodes.service systemd-networkd-persistent-storage.service \
  systemd-network-generator.service systemd-udev-load-credentials.service systemd-tmpfiles-setup-dev-early.service systemd-sysext.socket \
  systemd-creds.socket systemd-hostnamed.socket systemd-pcrextend.socket systemd-pcrlock.socket systemd-initctl.socket dev-mqueue.mount run-lock.mount \
  sys-fs-fuse-connections.mount sys-kernel-config.mount getty.target systemd-random-seed.service tmp.mount >/dev/null 2>&1 || true
for generator in /usr/lib/systemd/system-generators/*; do
  case ${generator##*/} in
    systemd-gpt-auto-generator | systemd-fstab-generator) ;;
    *) ln -sf /dev/null "/etc/systemd/system-generators/${generator##*/}" ;;
  esac
done
for program in iptables ip6tables; do # the guests' kernel has no nf_tables for IPv4
  update-alternatives --set $program /usr/sbin/$program-legacy >/dev/null
done
systemctl -q set-default multi-user.target
depmod -a "$1"
touch /etc/.updated /var/.updated
