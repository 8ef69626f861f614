# What an initiator of iSCSI needs in a guest. Sourced by scripts, with NAME, SECRET and TARGET set; `start` comes first.
load() {
    for module in "$@"; do
        insmod "/usr/lib/uml/modules/$(uname -r)/kernel/$module.ko"
    done
}
# The SCSI disk driver, the initiator of the kernel and its program, with CHAP for all that it does.
start() {
    load lib/crc64 crypto/crc64_rocksoft_generic lib/crc64-rocksoft block/t10-pi
    load drivers/scsi/scsi_common drivers/scsi/scsi_mod drivers/scsi/sd_mod drivers/scsi/sg
    load drivers/scsi/scsi_transport_iscsi drivers/scsi/libiscsi drivers/scsi/libiscsi_tcp drivers/scsi/iscsi_tcp
    mkdir -p /run/lock
    mount -t tmpfs iscsi /etc/iscsi
    echo "InitiatorName=$NAME" >/etc/iscsi/initiatorname.iscsi
    {
        echo 'iscsid.startup = /bin/true'
        echo 'node.startup = manual'
        for what in node.session discovery.sendtargets; do
            echo "$what.auth.authmethod = CHAP"
            echo "$what.auth.username = plimsoll"
            echo "$what.auth.password = $SECRET"
        done
        # A path that is gone fails after a second, so that another one is taken; without one the disk waits.
        echo "node.session.timeo.replacement_timeout = ${REPLACEMENT:-120}"
        echo 'node.conn[0].timeo.login_timeout = 5'
        echo 'node.conn[0].iscsi.HeaderDigest = CRC32C,None'
        echo 'node.conn[0].iscsi.DataDigest = CRC32C,None'
    } >/etc/iscsi/iscsid.conf
    iscsid
}
# portal command...
node() {
    at=$1
    shift
    iscsiadm -m node -T "$TARGET" -p "$at" "$@"
}
# portal name value: a setting of its record
set_node() { node "$1" -o update -n "$2" -v "$3"; }
# Waits until a disk is there, which is some moments after the session.
disk() {
    until [ -b "/dev/$1" ] && [ "$(cat "/sys/block/$1/size")" -gt 0 ]; do sleep 0.1; done
}
