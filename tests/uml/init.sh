#!/bin/sh
# Process 1 of the test guest. Its root is the host's own tree, read-only; what must be written lies on tmpfs.
# Kernel arguments: plimsoll.share=DIR (host folder with `job`, gets `status` and `log`), plimsoll.address=A (10.0.2.15),
# plimsoll.name=HOSTNAME (guest).
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mount -t proc proc /proc
argument() { tr ' ' '\n' </proc/cmdline | sed -n "s/^plimsoll.$1=//p"; }
share=$(argument share)
name=$(argument name)
address=$(argument address)
echo "${name:-guest}" >/proc/sys/kernel/hostname
for dir in /mnt /run /tmp /var/tmp; do mount -t tmpfs tmpfs "$dir"; done
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /mnt/host /mnt/nfs
mount -t hostfs -o "$share" host /mnt/host || echo 'guest: no shared folder'
modules=/usr/lib/uml/modules/$(uname -r)/kernel    # none for a kernel with everything built in
for module in net/sunrpc/sunrpc fs/netfs/netfs fs/fscache/fscache fs/nfs_common/grace fs/lockd/lockd \
    fs/nfs_common/nfs_acl fs/nfs_common/nfs_ssc net/dns_resolver/dns_resolver fs/nfs/nfs fs/nfs/nfsv3 fs/nfs/nfsv4; do
    [ ! -e "$modules/$module.ko" ] || insmod "$modules/$module.ko" || echo "guest: $module does not load"
done
ip link set lo up
ip addr add "${address:-10.0.2.15}/24" dev vec0 && ip link set vec0 up
cd /mnt/host && setsid -w sh ./job >/mnt/host/log 2>&1 </dev/null
echo $? >/mnt/host/status
cd / && sync && umount /mnt/host
echo o >/proc/sysrq-trigger
while :; do sleep 1; done
