#!/bin/busybox sh
# The first program of a guest of kernels.py --killed: says in how many steps commands were killed, or what went
# wrong then.
. /start.sh
. /functions.sh

export UNCORK=/bin/uncork
kernel() { uncork kernel "$@"; }
registered() { grep -o 'uncork_[a-z0-9]*' /proc/sys/net/ipv4/tcp_available_congestion_control; }

# A connection that moves 100 kB, and its controller.
connect() {
    iperf3 -s -1 -D
    for i in $(seq 100); do netstat -ltn | grep -q ':5201 ' && break; sleep 0.05; done
    timeout 20 iperf3 -c 127.0.0.1 -R -n 100K -J | sed -n 's/.*"sender_tcp_congestion":[^"]*"\([a-z0-9_]*\)".*/\1/p'
}

# Links exchange a controller in one step (Linux 6.4). Before, writing into a map registers it, and deleting unregisters.
if kernel load uncork_reno && kernel upgrade && strace -f -o calls -e trace=bpf "$UNCORK" kernel upgrade && ! grep -q BPF_LINK_UPDATE calls; then
    PIN_IS_FIRST=1
    VISIBLE="$VISIBLE|BPF_MAP_(UPDATE|DELETE)_ELEM"
fi
kernel unload

echo
echo "UNCORK kernel $(uname -r)"
(
    set -e
    . /killed.sh
) > killed.log 2>&1
status=$?
cat killed.log
if [ $status = 0 ]; then
    echo "UNCORK killed yes: $(grep '^[a-z]* [0-9]*$' killed.log | tr '\n' ' ')"
else
    echo "UNCORK killed no: $(tail -n 1 killed.log)"
fi
poweroff -f
