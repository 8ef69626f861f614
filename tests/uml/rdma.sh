# For scripts in a guest that has both ends of NFS over RDMA: its device, the server, and the client's mounts.
# SERVER is the guest's address, at which the server has the standard ports.
LC_ALL=C
options() { # version protocol
    case $1 in
    3) echo "vers=3,proto=$2,mountproto=tcp,mountport=2049,nolock,noresvport" ;;
    *) echo "vers=$1,proto=$2,noresvport" ;;
    esac
}
port() { [ "$1" = rdma ] && echo 20049 || echo 2049; }
# Mounts the share at /mnt/NAME.
attach() { # name version protocol [options]
    mkdir -p "/mnt/$1"
    mount -t nfs -o "$(options "$2" "$3"),port=$(port "$3")${4:+,$4}" "$SERVER:/export/t" "/mnt/$1"
    grep -q " /mnt/$1 nfs.*proto=$3," /proc/mounts
}
# Starts the server, which must answer; arguments are the server's own. What it runs in is $AROUND.
begin_server() {
    mkdir -p /mnt/t /mnt/state
    ulimit -l "${LOCKED:-unlimited}"
    ${AROUND:-} plimsoll serve /mnt/t --state /mnt/state --address "$SERVER" --port-offset 0 --nfs-lease 10 "$@" \
        >>/mnt/host/server.log 2>&1 </dev/null &
    echo $! >/tmp/server
    until [ "$(nfs_state state)" = online ]; do
        kill -0 "$(cat /tmp/server)"
        sleep 0.1
    done
}
# A property of the service.
nfs_state() { plimsoll cli --state /mnt/state --json -c "configuration services nfs get $1" 2>/dev/null | sed -n "s/^.*\"$1\": *//p" | tr -d '"{}'; }
until_state() { # property words
    until nfs_state "$1" | grep -q "$2"; do sleep 0.1; done
}
# The server takes clients over RDMA.
until_listening() {
    until rdma resource show cm_id | grep -q 'state LISTEN'; do sleep 0.1; done
}
# Counts of one mount's operations.
count() { # mount operation
    awk -v at="/mnt/$1" -v op="$2:" '$1 == "device" { here = ($5 == at) } here && $1 == op { print $2 }' \
        /proc/self/mountstats
}
forget() { sync; echo 3 >/proc/sys/vm/drop_caches; }
end_server() {
    kill "$(cat /tmp/server)"
    while kill -0 "$(cat /tmp/server)" 2>/dev/null; do sleep 0.1; done
}
