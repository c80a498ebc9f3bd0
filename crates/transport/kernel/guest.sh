#!/bin/busybox sh
# The first program of a guest of kernels.py: says on the console, in lines of "UNCORK step result", what
# this kernel can do.
. /start.sh

controllers="uncork_bbr1 uncork_bbr2 uncork_bbr3 uncork_cubic uncork_reno"

say() {
    echo "UNCORK $*"
}

# step NAME COMMAND...: yes, or the last line that the command said.
step() {
    name=$1
    shift
    if "$@" > "$name.log" 2>&1; then
        say "$name" yes
    else
        say "$name" "no: $(tail -n 1 "$name.log")"
    fi
    cat "$name.log"
}

loads() {
    for one in $controllers; do
        uncork kernel load "$one" || return 1
    done
    uncork kernel status --format json > status.json
    cat status.json
    grep -o '"verified_instructions": [0-9].*' status.json > verified.txt
    [ "$(wc -l < verified.txt)" = "$(echo $controllers | wc -w)" ] || return 1
    say verified "$(largest < verified.txt)"
}

# The largest number at the ends of lines.
largest() {
    awk '{ if ($NF + 0 > most) most = $NF + 0 } END { if (most) print most }'
}

# Each controller moves 1 MB over a path with this loss.
transfers() {
    for one in $controllers; do
        uncork emu --rate 20mbit --rtt 40ms --loss "$1" --server 'iperf3 -s -1' -- \
            sh -c "iperf3 -c \$UNCORK_FAR -R -C $one -n 1M" || return 1
    done
}

# What a connection does is read back from its socket.
states() {
    echo uncork_bbr3 > /proc/sys/net/ipv4/tcp_congestion_control
    iperf3 -s -1 -D
    sleep 1
    iperf3 -c 127.0.0.1 -R -t 8 &
    uncork host watch -q --every 500ms --for 6s --record session.jsonl || return 1
    wait
    grep -o '"bbr":{"version":3[^}]*}' session.jsonl || ! tail -n 3 session.jsonl
}

steers() {
    mkdir -p /sys/fs/cgroup/web
    cat > policy.toml <<'END'
[[rule]]
client = "198.51.100.0/24"
use = { tcp = "uncork_bbr3" }
END
    uncork steer apply policy.toml --cgroup /sys/fs/cgroup/web || return 1
    uncork steer explain 198.51.100.7 || return 1
    uncork steer explain 198.51.100.7 | grep -q uncork_bbr3 || return 1
    (
        echo 0 > /sys/fs/cgroup/web/cgroup.procs
        iperf3 -s -1 -D
        sleep 1
        iperf3 -c 127.0.0.1 -R -n 100K
    ) || return 1
    uncork steer status --format json > status.json
    cat status.json
    say steer-verified "$(grep -o '"verified_instructions": [0-9]*' status.json | largest)"
    uncork steer revert
}

# begins_with PACKETS ADDRESS: whether connections from there begin with this window, as the kernel reports it to their records. The file
# has no record before they end.
begins_with() {
    rm -f windows.jsonl
    uncork steer record windows.jsonl --every 100ms &
    recorder=$!
    until [ -e windows.jsonl ]; do sleep 0.1; done
    (
        echo 0 > /sys/fs/cgroup/web/cgroup.procs
        iperf3 -s -1 -D
    )
    sleep 1
    iperf3 -c 127.0.0.1 -B "$2" -R -n 100K
    for i in $(seq 100); do [ -s windows.jsonl ] && break; sleep 0.1; done
    kill -INT $recorder
    wait $recorder
    cat windows.jsonl
    grep -q "\"initial_window\":$1[,}]" windows.jsonl && ! grep -v "\"initial_window\":$1[,}]" windows.jsonl
}

windows() {
    mkdir -p /sys/fs/cgroup/web
    cat > windows.toml <<'END'
[[rule]]
client = "127.0.0.2"
use = { tcp = "cubic", initial_window = "40p" }
END
    uncork steer apply windows.toml --cgroup /sys/fs/cgroup/web || return 1
    begins_with 40 127.0.0.2 || return 1
    begins_with 10 127.0.0.3 || return 1
    uncork steer revert
}

# Whether the packets of connections with uncork_prague and AccECN leave as ECT(1), and no others.
l4s() {
    if python3 /ect1.py /bin/uncork 400 40 > l4s.log 2>&1; then
        say l4s L4S
    elif uncork kernel load uncork_prague > refused.log 2>&1; then
        say l4s "no: $(tail -n 1 l4s.log)"
    else
        say l4s "refused: $(tail -n 1 refused.log)"
    fi
    cat l4s.log
}

upgrades() {
    uncork kernel upgrade || return 1
    iperf3 -s -1 -D
    sleep 1
    iperf3 -c 127.0.0.1 -R -n 100K
}

unloads() {
    uncork kernel unload || return 1
    # The kernel unregisters a little later.
    for i in 1 2 3 4 5 6 7 8 9 10; do
        grep -q uncork /proc/sys/net/ipv4/tcp_available_congestion_control || return 0
        sleep 1
    done
    return 1
}

echo
say kernel "$(uname -r)"
if uncork kernel load uncork_reno > load.log 2>&1; then
    uncork kernel unload
    step load loads
    step 0% transfers 0%
    step 1% transfers 1%
    step state states
    step steer steers
    step window windows
    step upgrade upgrades
    step unload unloads
else
    say load "refused: $(tail -n 1 load.log)"
    step window windows
fi
l4s
poweroff -f
