# What each guest of qemu does first: file systems, modules, and what `uncork emu` needs.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup /sys/fs/cgroup
for module in /modules/*.ko; do
    [ ! -e "$module" ] || insmod "$module" || echo "insmod $module failed"
done
mkdir -p /dev/net
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
ip link set lo up
cd /tmp
