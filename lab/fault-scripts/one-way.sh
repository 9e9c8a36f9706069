#!/bin/sh
# The NIC $1 drops what comes in from $3, goes out to $3, or both ($2); $3 may be all. In these tables no rule of Calico
# or kube-proxy accepts a packet before ours sees it, and they see what is passed on for pods, too.
make() {
  each_rule "$@" | while read -r table chain match; do
    # shellcheck disable=SC2086  # words
    iptables -w -t "$table" -C "$chain" $match 2>/dev/null || iptables -w -t "$table" -I "$chain" 1 $match
  done
}

heal() {
  each_rule "$@" | while read -r table chain match; do
    # shellcheck disable=SC2086
    if iptables -w -t "$table" -C "$chain" $match 2>/dev/null; then iptables -w -t "$table" -D "$chain" $match; fi
  done
}

each_rule() {
  from='' to=''
  [ "$3" = all ] || from="-s $3" to="-d $3"
  case $2 in incoming | both) echo "raw PREROUTING -i $1 $from -m comment --comment lab-fault -j DROP" ;; esac
  case $2 in outgoing | both) echo "mangle POSTROUTING -o $1 $to -m comment --comment lab-fault -j DROP" ;; esac
}

"$@" </dev/null
