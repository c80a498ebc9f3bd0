#!/usr/bin/env bash
# Boots the systemd of a Debian tree with the units beside this script, and uses each. Needs root, systemd-nspawn and a
# program of a C library as old as the tree's:
#   debootstrap --include=systemd,systemd-sysv,curl,iproute2 bookworm /srv/debian
#   deploy/systemd/live.sh /srv/debian target/release/uncork
# The tree stays as it is: what is written goes to an overlay, and the network is a namespace of the container's own. The
# controllers are the kernel's, and so the host's: the check stops if some are loaded already.
set -euo pipefail
units=$(cd "$(dirname "$0")" && pwd)
tree=${1:?which Debian tree?} program=${2:?which program?}

if grep -q uncork_ /proc/sys/net/ipv4/tcp_available_congestion_control; then
    echo "live.sh: this host has uncork's controllers: uncork kernel list" >&2
    exit 1
fi
scratch=$(mktemp -d)
mounted=
trap 'umount -q $mounted "$scratch/root" "$scratch/layers" || true; rmdir "$scratch/root" "$scratch/layers" "$scratch"' EXIT
mkdir "$scratch/layers" "$scratch/root"
mount -t tmpfs layers "$scratch/layers"
mkdir "$scratch/layers/upper" "$scratch/layers/work"
mount -t overlay overlay -o "lowerdir=$tree,upperdir=$scratch/layers/upper,workdir=$scratch/layers/work" "$scratch/root"
root=$scratch/root

install -D "$program" "$root/usr/bin/uncork"
cp -r "$units"/*.service "$units"/*.socket "$units/uncork-host.service.d" "$root/etc/systemd/system"
install -D -m 644 "$units/uncork-serve.sysusers" "$root/etc/sysusers.d/uncork-serve.conf"
install -d -m 700 "$root/etc/uncork" "$root/etc/uncork/tls"
install -d -m 755 "$root/srv/www"
head -c 5000000 /dev/urandom >"$root/srv/www/large"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -keyout "$root/etc/uncork/tls/key.pem" -out "$root/etc/uncork/tls/chain.pem" 2>/dev/null
cat >"$root/etc/uncork/serve.toml" <<'END'
root = "/srv/www"
listen = ["[::]:443"]
redirect_http = ["[::]:80"]
tls_cert = "/run/credentials/uncork-serve.service/tls_chain.pem"
tls_key = "/run/credentials/uncork-serve.service/tls_key.pem"
END
# The server's configuration is read by its user.
chmod 755 "$root/etc/uncork"

printf 'algorithm = "reno"\npersist = true\n' >"$root/etc/uncork/host.toml"

cat >"$root/check" <<'END'
#!/bin/bash
failed=0
step() {
    local name=$1
    shift
    if "$@" >/tmp/step 2>&1; then echo "ok      $name"; else echo "FAILED  $name"; sed 's/^/    /' /tmp/step; failed=1; fi
}
default() { [[ $(cat /proc/sys/net/ipv4/tcp_congestion_control) == $1 ]]; }
get() { curl -skf -m 20 --retry 3 --retry-connrefused -o "${2-/dev/null}" "https://localhost/$1"; }
is_whole() { cmp "/tmp/large.$1" /srv/www/large; }
slow() { curl -skf -m 60 --limit-rate 1M -o "/tmp/large.$1" https://localhost/large; }
step "uncork-serve starts" systemctl start uncork-serve.socket uncork-serve
step "a file over HTTPS" get large /tmp/large.0
step "the file is whole" is_whole 0
step "HTTP is sent on" bash -c 'curl -s -o /dev/null -w "%{http_code}" http://localhost/ | grep 30[18]'
step "reload" systemctl reload uncork-serve
step "a file after the reload" get large
for i in 1 2 3; do slow $i & done
sleep 1
step "restart during downloads" systemctl restart uncork-serve
wait
for i in 1 2 3; do step "download $i is whole" is_whole $i; done
step "a file after the restart" get large
step "uncork-watch starts" systemctl start uncork-watch
sleep 2
step "it answers Prometheus" bash -c 'curl -sf http://127.0.0.1:9464/metrics | grep ^uncork'
step "uncork-kernel starts" systemctl start uncork-kernel
step "uncork_bbr3 is the default" default uncork_bbr3
step "uncork-kernel is reloaded" systemctl reload uncork-kernel
step "uncork_bbr3 is still the default" default uncork_bbr3
step "uncork-kernel stops" systemctl stop uncork-kernel
step "another is the default" default '[!u]*'
step "host apply" uncork host apply /etc/uncork/host.toml
other=$(tr ' ' '\n' </proc/sys/net/ipv4/tcp_allowed_congestion_control | grep -v reno | head -n 1)
echo "${other:-reno}" >/proc/sys/net/ipv4/tcp_congestion_control
step "uncork-host starts" systemctl restart uncork-host
step "reno is the default again" default reno
step "host revert" uncork host revert
step "all others stop" systemctl stop uncork-serve.socket uncork-serve uncork-watch
step "no unit has failed" bash -c '! systemctl --failed --plain --no-legend | grep uncork'
((failed)) && journalctl --no-pager -u 'uncork*'
echo "checked: $failed"
systemctl poweroff
END
chmod +x "$root/check"
cat >"$root/etc/systemd/system/check.service" <<'END'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/check
StandardOutput=file:/result
TimeoutStartSec=3min
END
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../check.service "$root/etc/systemd/system/multi-user.target.wants/check.service"

bpf=/sys/fs/bpf
mountpoint -q $bpf || { mount -t bpf bpf $bpf && mounted=$bpf; }
SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes timeout 5m systemd-nspawn --quiet --directory="$root" --boot --register=no --keep-unit \
    --private-network --capability=all --system-call-filter=bpf --bind=$bpf --console=pipe </dev/null >"$scratch/layers/console" 2>&1 ||
    tail -n 20 "$scratch/layers/console"
cat "$root/result"
grep -q '^checked: 0' "$root/result"
