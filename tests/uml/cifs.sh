# In a guest: loads what Linux' SMB client needs, and mounts a share.
#   load
#   mount_share NAME OPTIONS     //$SERVER/$SHARE at /mnt/NAME
#   watch                        until the guest ends: what waits in the kernel for 10 s, and what the client knows then
# SERVER, PORT, SHARE, USER and PASSWORD are set before.
load() {
    modules=/usr/lib/uml/modules/$(uname -r)/kernel
    for module in crypto/hmac crypto/gf128mul crypto/ghash-generic crypto/ctr crypto/gcm crypto/ccm crypto/cmac crypto/seqiv \
        crypto/sha512_generic crypto/ecb fs/nls/nls_utf8 fs/smb/common/cifs_arc4 fs/smb/common/cifs_md4 \
        lib/oid_registry lib/asn1_decoder fs/smb/client/cifs; do
        [ ! -e "$modules/$module.ko" ] || insmod "$modules/$module.ko" 2>/dev/null || :
    done
    grep -q cifs /proc/filesystems
}
mount_share() {
    mkdir -p "/mnt/$1"
    # The program that would find out the address (mount.cifs) is not needed where it is known.
    mount -i -t cifs -o "ip=$SERVER,port=$PORT,username=$USER,password=$PASSWORD,iocharset=utf8,$2" \
        "//$SERVER/$SHARE" "/mnt/$1"
}
watch() {
    set +e
    before=
    while sleep 10; do
        waiting=
        for task in /proc/[0-9]*; do
            case $(sed -n 's/^State:\t//p' "$task/status" 2>/dev/null) in D*) waiting="$waiting ${task#/proc/}" ;; esac
        done
        for task in $waiting; do
            case " $before " in *" $task "*) ;; *) continue ;; esac
            echo "-- $(cut -d' ' -f1 /proc/uptime) s: $task $(cat "/proc/$task/comm") waits: $(cat "/proc/$task/wchan")"
            cat "/proc/$task/stack" 2>/dev/null
            sed -n '/Servers/,$p' /proc/fs/cifs/DebugData
            dmesg | tail -n 20
        done
        before=$waiting
    done
}
