#!/bin/busybox sh
# The init script of the emulated KVM host's initramfs: loads the modules, builds the root that commands see from the
# machine's own root (read-only, 9p) and the shared folders (9p), then becomes the agent.
# Put in place by scripts/kvm-host/initramfs.mjs; /shares holds "tag path" lines.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev

fail() {
  echo "kvm-host: $1" >/dev/console
  poweroff -f
}

for module in /modules/*.ko; do
  insmod "$module" || echo "kvm-host: ${module##*/} was not loaded" >/dev/console
done

# Programs and libraries do not change while the machine is up: cached without asking. Shared folders do.
nine='trans=virtio,version=9p2000.L,access=any,msize=512000'
mkdir -p /host
mount -t 9p -o "ro,$nine,cache=loose" root /host || fail 'the root could not be mounted'
mount -t proc proc /host/proc
mount -t sysfs sysfs /host/sys
mount -t cgroup2 cgroup2 /host/sys/fs/cgroup
mount -t devtmpfs dev /host/dev
mkdir -p /host/dev/pts /host/dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /host/dev/pts
for folder in dev/shm tmp var/tmp run; do
  mount -t tmpfs -o mode=1777 tmpfs "/host/$folder"
done
chmod 755 /host/run
mkdir -m 700 /host/run/bough
ln -sf /proc/self/fd /host/dev/fd
ln -sf /proc/self/fd/0 /host/dev/stdin
ln -sf /proc/self/fd/1 /host/dev/stdout
ln -sf /proc/self/fd/2 /host/dev/stderr
while read -r tag path; do
  mkdir -p "/host$path"
  mount -t 9p -o "rw,$nine,cache=mmap" "$tag" "/host$path" || fail "$path could not be mounted"
done </shares
hostname kvm-host
ip link set lo up
[ -c /dev/kvm ] && chmod 666 /dev/kvm

for port in /sys/class/virtio-ports/*; do
  [ "$(cat "$port/name")" = bough.agent ] && exec /agent "/dev/${port##*/}" /host
done
fail 'there is no port for the agent'
