#!/usr/bin/env bash
# Boots the systemd of a Debian tree with the units next to this script, and uses each. Needs root, systemd-nspawn and a
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
cp -r "$units"/*.service "$units"/*.socket "$units"/*.path "$units"/*.timer "$units/uncork-host.service.d" "$root/etc/systemd/system"
install -D -m 644 "$units/uncork-serve.sysusers" "$root/etc/sysusers.d/uncork-serve.conf"
install -D -m 644 "$units/uncork-steer.tmpfiles" "$root/etc/tmpfiles.d/uncork-steer.conf"
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

# The host's routes by a policy; a client network leads to another controller than the host's.
printf 'algorithm = "reno"\n[routes]\npolicy = "/var/lib/uncork-serve/learned/current/policy.toml"\n' >"$root/etc/uncork/routes.toml"

# What `uncork steer` is for: a service that opens its ports itself.
cat >"$root/etc/systemd/system/web.service" <<'END'
[Service]
ExecStart=/usr/bin/uncork serve --root /srv/www --listen 127.0.0.1:8080
Restart=always
END
echo 'OPTIONS=--listener web=8080' >"$root/etc/uncork/steer-web.env"

cat >"$root/check" <<'END'
#!/bin/bash
# A host has one boot ID. The container's own is a mount that units do not see.
umount /proc/sys/kernel/random/boot_id
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
# Versions as those of `uncork learn run`: 1 and 2 differ, 3 cannot be applied. 4 and 5 are for routes.
learned=/var/lib/uncork-serve/learned
version=0
install -d -o uncork-serve -g uncork-serve -m 750 "${learned%/*}"
for controller in reno cubic vegas; do
    install -d $learned/versions/000$((++version))
    printf '[[rule]]\nlistener = "web"\nuse = { tcp = "%s" }\n' $controller >$learned/versions/000$version/policy.toml
done
for controller in cubic reno; do
    install -d $learned/versions/000$((++version))
    printf '[[rule]]\nclient = "198.51.100.0/24"\nuse = { tcp = "%s" }\n' $controller >$learned/versions/000$version/policy.toml
done
has_route() { for i in {1..50}; do ip route | grep "198.51.100.0/24.*congctl $1" && return; sleep 0.1; done; ip route; false; }
has_no_route() { for i in {1..50}; do ip route | grep -q 198.51.100 || return 0; sleep 0.1; done; ip route; false; }
leads_to() { ln -s "versions/000$1" $learned/.current && mv -T $learned/.current $learned/current; }
steers() {
    for i in {1..50}; do
        uncork steer explain 203.0.113.7 --port 8080 --cgroup /sys/fs/cgroup/system.slice/web.service 2>&1 | grep -w "$1" && return
        sleep 0.1
    done
    uncork steer status
    false
}
changes_40_times() { for i in {1..20}; do leads_to 2 && sleep 0.0$i && leads_to 1 && sleep 0.1 || return; done; }
has_failed() { systemctl is-failed uncork-steer-again@web && journalctl -u uncork-steer@web | grep vegas; }
applies() { journalctl -u uncork-steer@web | grep -c "for new connections of"; }
is_not_applied_again() { local before=$(applies); echo >>$learned/log.jsonl; sleep 2; ((before > 0 && before == $(applies))); }
records() { find /var/lib/uncork-steer/web -name "*.parquet" | wc -l; }
# Each start of the service has records of its connections, which the loop's user reads and no other.
has_records() {
    for i in {1..50}; do (($(records) == $1)) && break; sleep 0.1; done
    (($(records) == $1)) || { ls -lR /var/lib/uncork-steer; return 1; }
    local first=$(find /var/lib/uncork-steer/web -name "*.parquet" | head -n 1)
    runuser -u uncork-serve -- head -c 4 "$first" | grep PAR1 && ! runuser -u nobody -- head -c 4 "$first"
}
nothing_is_steered() { uncork steer status 2>&1 | grep "nothing is steered"; }
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
leads_to 1
step "uncork-steer is enabled" systemctl enable uncork-steer@web uncork-steer-record@web
step "it starts with the service" systemctl start web
step "the policy is active" steers reno
leads_to 2
step "another version is" steers cubic
step "a line in the log changes nothing" is_not_applied_again
leads_to 3
sleep 2
step "one that cannot be applied is reported" has_failed
step "the one before stays" steers cubic
step "uncork-steer is active" systemctl is-active uncork-steer@web
step "the link changes 40 times" changes_40_times
step "the last version is active" steers reno
step "a download of the service" curl -sf -o /dev/null http://127.0.0.1:8080/large
step "the service restarts" systemctl restart web
step "with the policy" steers reno
step "and has a file of records" has_records 1
step "another download" curl -sf -o /dev/null http://127.0.0.1:8080/large
step "the service is killed" systemctl kill --signal=KILL web
sleep 2
step "the next has the policy" steers reno
step "uncork-steer stops" systemctl stop uncork-steer@web
step "nothing is steered" nothing_is_steered
step "the killed service has records, too" has_records 2
step "nothing records" bash -c '! systemctl is-active uncork-steer-record@web'
leads_to 2
sleep 2
step "nor with another version" nothing_is_steered
leads_to 3
step "a policy that cannot be applied does not start" bash -c '! systemctl start uncork-steer@web'
leads_to 2
step "the next does" steers cubic
step "the service stops" systemctl stop web
step "nothing is steered without it" nothing_is_steered
step "what the killed service left is removed" uncork steer revert
leads_somewhere() {
    ip link add uplink type veth peer far && ip link set far up && ip link set uplink up
    ip address add 192.0.2.2/24 dev uplink && ip route add default via 192.0.2.1
}
step "the host has a route" leads_somewhere
leads_to 4
step "routes by a policy" uncork host apply /etc/uncork/routes.toml
step "there is a route" has_route cubic
step "uncork-routes starts" systemctl start uncork-routes.path uncork-routes.timer
leads_to 5
step "another version has none" has_no_route
leads_to 4
step "the next has it again" has_route cubic
step "routes are reverted" uncork host revert
step "it is gone" has_no_route
leads_to 5 && leads_to 4
sleep 2
step "and stays away" has_no_route
step "uncork-routes stops" systemctl stop uncork-routes.path uncork-routes.timer
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
SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=yes SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes timeout 5m \
    systemd-nspawn --quiet --directory="$root" --boot --register=no --keep-unit \
    --private-network --capability=all --system-call-filter=bpf --bind=$bpf --console=pipe </dev/null >"$scratch/layers/console" 2>&1 ||
    tail -n 20 "$scratch/layers/console"
cat "$root/result"
grep -q '^checked: 0' "$root/result"
