# Boots the clean root LOWER, below a layer in memory that takes all changes, in namespaces of its own:
#   unshare -m -p -n -u -i -C --fork sh boot.sh LOWER WORK NOTIFY
# WORK is an empty folder, NOTIFY the socket that hears of the end of the boot.
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" none "$2/root"
cd "$2/root"
mount -t proc none proc
# What is the whole machine's stays as it is.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro none sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 none dev
for node in null zero full random urandom tty; do
    : >dev/$node
    mount --bind /dev/$node dev/$node
done
mkdir dev/shm dev/pts
mount -t tmpfs none dev/shm
mount -t tmpfs -o mode=755 none run
# A file system on which files have handles, as a share's usually has.
mount -t tmpfs -o mode=755 none srv
: >run/notify
mount --bind "$3" run/notify
ip link set lo up
: >etc/machine-id
# Not needed here, or meant for real hardware.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer getty.target \
    systemd-networkd.service systemd-timesyncd.service systemd-logind.service systemd-udevd.service \
    systemd-udev-trigger.service systemd-modules-load.service dev-hugepages.mount dev-mqueue.mount \
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount; do
    ln -sf /dev/null etc/systemd/system/$unit
done
mkdir old
pivot_root . old
umount -l /old
rmdir /old
echo booting
exec env -i container=test NOTIFY_SOCKET=/run/notify PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system
