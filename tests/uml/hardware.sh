# For scripts in a guest with SCSI disks in memory (scsi_debug): the disks, the server, errors, and what the tree has.
STATE=/tmp/state
DEBUG=/sys/bus/pseudo/drivers/scsi_debug
load() {
    for module in "$@"; do
        insmod "/usr/lib/uml/modules/$(uname -r)/kernel/$module.ko"
    done
}
# Two disks of 8 MB; what udev would do is not done.
disks() {
    load lib/crc64 crypto/crc64_rocksoft_generic lib/crc64-rocksoft block/t10-pi
    load drivers/scsi/scsi_common drivers/scsi/scsi_mod drivers/scsi/sd_mod drivers/scsi/sg
    insmod "/usr/lib/uml/modules/$(uname -r)/kernel/drivers/scsi/scsi_debug.ko" dev_size_mb=8 max_luns=2 per_host_store=0
    until [ -e /sys/block/sda/size ] && [ -e /sys/block/sdb/size ]; do sleep 0.1; done
}
begin_server() {
    mkdir -p /mnt/t "$STATE"
    plimsoll serve /mnt/t --state "$STATE" >>/mnt/host/server.log 2>&1 </dev/null &
    until api /status >/dev/null; do
        kill -0 $!
        sleep 0.1
    done
}
api() { curl -sf --unix-socket "$STATE/plimsoll.sock" "http://plimsoll/api/v1$1"; } # path
act() { # problem
    curl -sf --unix-socket "$STATE/plimsoll.sock" -H 'content-type: application/json' -d '{}' \
        "http://plimsoll/api/v1/nodes/maintenance/problems/$1/actions/mark_repaired" >/dev/null
}
problems() { api '/nodes/maintenance/problems?depth=1'; }
disk_nodes() { api '/nodes/maintenance/hardware/disks?depth=1'; }
until_problem() { until problems | grep -q "\"$1"; do sleep 0.2; done; } # begin of its id
until_none() { while problems | grep -q "\"$1"; do sleep 0.2; done; } # begin of its id
# Sectors 0x1234 to 0x123d of each disk cannot be read.
medium_errors() { echo 2 >"$DEBUG/opts"; }
no_errors() { echo 0 >"$DEBUG/opts"; }
# Reads sector 0x1234, which fails.
read_bad() { ! dd if=/dev/sda of=/dev/null bs=512 skip=4660 count=1 iflag=direct 2>/dev/null; }
pull() { echo 1 >/sys/block/sda/device/delete; }
put_back() {
    echo '- - -' >/sys/class/scsi_host/host0/scan
    until [ "$(ls -d /sys/block/sd? | wc -l)" = 2 ]; do sleep 0.1; done
}
