# For scripts in a guest with pools: disks in memory that fail (brd below two layers of the device mapper), disks that outlive
# the guest (ubd), the server, and what its tree has.
STATE=/mnt/state/server
load() {
    for module in "$@"; do
        insmod "/usr/lib/uml/modules/$(uname -r)/kernel/$module.ko"
    done
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
# An action over the API: the program would take a second to start for each line of the command line.
act() { # node action parameters
    curl -sf --unix-socket "$STATE/plimsoll.sock" -H 'content-type: application/json' -d "{\"parameters\":$3}" \
        "http://plimsoll/api/v1/nodes$1/actions/$2"
}
cli() { # line...
    for line in "$@"; do set -- "$@" -c "$line"; shift; done
    plimsoll cli --state "$STATE" "$@"
}
export_of() { # share: mounts it at /mnt/SHARE
    mkdir -p "/mnt/$1"
    mount -t nfs -o vers=3,proto=tcp,port=12049,mountport=12049,mountproto=tcp,nolock,noresvport "127.0.0.1:/export/$1" "/mnt/$1"
}

# Disks in memory: /dev/dm-1 and /dev/dm-3. Only a device that is stacked on the faulty one counts what it waits for.
legs() {
    insmod "/usr/lib/uml/modules/$(uname -r)/kernel/drivers/block/brd.ko" rd_nr=2 rd_size=$((SECTORS / 2))
    load drivers/md/dm-mod drivers/md/dm-delay drivers/md/dm-flakey drivers/md/dm-bufio drivers/md/dm-dust
    for leg in 0 1; do
        table "below$leg" create --table "0 $SECTORS linear /dev/ram$leg 0"
        table "leg$leg" create --table "0 $SECTORS linear $(at "below$leg") 0"
    done
}
SECTORS=393216
at() { echo "/dev/dm-$(dmsetup info -c --noheadings -o minor "$1")"; } # name
table() { # name command arguments...
    name=$1 command=$2; shift 2
    dmsetup "$command" "$name" --noudevsync "$@"
}
# The second leg: works | reads | writes | hangs
fault() {
    case $1 in
        works) new="linear /dev/ram1 0" ;;
        reads) new="dust /dev/ram1 0 1048576" ;;
        writes) new="flakey /dev/ram1 0 0 36000 1 error_writes" ;;
        hangs) new="delay /dev/ram1 0 36000000" ;;
    esac
    dmsetup reload below1 --table "0 $SECTORS $new"
    # Without a flush: it would wait for what hangs. A delayed request continues here.
    dmsetup suspend below1 --noudevsync --nolockfs --noflush
    dmsetup resume below1 --noudevsync
    [ "$1" = reads ] || return 0
    for block in $(seq 0 191); do dmsetup message below1 0 addbadblock "$block" >/dev/null; done
    dmsetup message below1 0 enable
}
# Reads a file by several processes: the number of a process selects the copy, so that a third one is started between two.
# Directly: an error of read-ahead is corrected and not counted.
read_all() { # file
    for _ in 1 2 3 4 5 6; do
        dd if="$1" bs=1M iflag=direct 2>/dev/null | cksum
        /bin/true
    done | sort -u
}

# Appends blocks to a file over NFS; what is acknowledged is counted in a file of the host. The first one is an event.
writer() {
    export_of log
    n=$(cat /mnt/host/acknowledged 2>/dev/null || echo 0)
    while :; do
        yes "$(printf %08d "$n")" | head -c 4096 >/tmp/block
        dd if=/tmp/block of=/mnt/log/blocks bs=4096 seek="$n" conv=notrunc,fsync 2>/dev/null || continue
        n=$((n + 1))
        echo "$n" >/mnt/host/acknowledged.new
        mv /mnt/host/acknowledged.new /mnt/host/acknowledged
        [ -n "${writing-}" ] || event writing
        writing=yes
    done
}
# The task of a pool.
task() { api "/nodes/storage/pools/$1" | sed -n 's/.*"name":"task","role":"state","source":"state","value":\([^}]*\)}.*/\1/p'; } # pool
until_gone() { until [ "$(task "$1")" = null ]; do sleep 0.1; done; } # pool
# All chunks have their copies.
until_whole() { # pool
    while btrfs filesystem df "/run/plimsoll-pools/$1" | grep -v GlobalReserve | grep -q single; do sleep 0.2; done
}
