# For scripts in a guest whose network the server changes: devices, the server, the tree, what iproute2 shows.
LC_ALL=C
SERVER=10.0.2.15
STATE=${STATE:-/mnt/host/state}
# What the guest's kernel has as modules, in the order of their dependencies.
load() {
    modules=/usr/lib/uml/modules/$(uname -r)/kernel
    for module in lib/crc-ccitt net/ipv6/ipv6 net/llc/llc net/802/stp net/802/mrp net/802/garp net/8021q/8021q \
        drivers/net/veth; do
        insmod "$modules/$module.ko" 2>/dev/null || :
    done
    insmod "$modules/drivers/net/bonding/bonding.ko" max_bonds=0 2>/dev/null || :
}
NEAR='a0 a1 l0 l1 g0 g1 eth1'
# The devices of the machine, each with a far end that is up; l0 and l1 lead to a bond that speaks LACP.
devices() {
    load
    number=10
    for pair in a0:p0 a1:p1 l0:q0 l1:q1 g0:r0 g1:r1 eth1:s1; do
        ip link add "${pair%:*}" address "02:00:5e:00:00:$number" type veth \
            peer name "${pair#*:}" address "02:00:5e:00:01:$number"
        ip link set "${pair#*:}" up
        number=$((number + 1))
    done
    ip link add far0 address 02:00:5e:00:02:01 type bond mode 802.3ad miimon 100 lacp_rate fast
    for port in q0 q1; do ip link set "$port" down; ip link set "$port" master far0; done
    ip link set far0 up
    # All have been up once: far ends have their addresses, near ends their queues.
    for near in $NEAR; do ip link set "$near" up; done
    until [ "$(cat /sys/class/net/far0/operstate)" = up ]; do sleep 0.1; done
    while ip -6 addr show tentative | grep -q inet6; do sleep 0.1; done
    for near in $NEAR; do ip link set "$near" down; done
    until [ "$(cat /sys/class/net/far0/operstate)" = down ]; do sleep 0.1; done
}
api() { # path [arguments of curl]
    path=$1; shift
    curl -sf --unix-socket "$STATE/plimsoll.sock" "$@" "http://plimsoll/api/v1$path"
}
change() { api /changes -H 'content-type: application/json' -d "$1" >/dev/null; } # JSON
act() { api "/nodes/configuration/network/actions/$1" -H 'content-type: application/json' -d '{}' >/dev/null; } # action
tree() { api '/nodes/configuration/network?depth=2'; }
waits() { tree | grep -q '"unconfirmed"'; }
begin_server() { # arguments of the server
    mkdir -p /mnt/t
    plimsoll serve /mnt/t --address "$SERVER" --port-offset 0 "$@" >>/mnt/host/server.log 2>&1 </dev/null &
    echo $! >/tmp/server
    until tree >/dev/null; do
        kill -0 "$(cat /tmp/server)"
        sleep 0.1
    done
}
end_server() {
    kill "$(cat /tmp/server)"
    while kill -0 "$(cat /tmp/server)" 2>/dev/null; do sleep 0.1; done
}
dumps() {
    printf '['
    for what in '-d -j link' '-j addr' '-j route' '-j -6 route'; do
        # shellcheck disable=SC2086
        found=$(ip $what)
        printf '%s%s' "${separator:-}" "${found:-[]}"
        separator=,
    done
    printf ']'
}
until_lacp() { # bond
    until grep -q '[1-9a-f]' "/sys/class/net/$1/bonding/ad_partner_mac" && [ "$(cat "/sys/class/net/$1/bonding/ad_num_ports")" = 2 ]; do
        sleep 0.1
    done
}
# The far ends of the group, on a bridge in a namespace with a client of NFS.
far() { # command
    nsenter --net=/run/netns/far "$@"
}
far_bridge() {
    insmod "/usr/lib/uml/modules/$(uname -r)/kernel/net/bridge/bridge.ko" 2>/dev/null || :
    ip netns add far
    ip -n far link set lo up
    ip -n far link add br0 type bridge
    for port in r0 r1; do
        ip link set "$port" netns far
        ip -n far link set "$port" master br0
        ip -n far link set "$port" up
    done
    ip -n far addr add 10.3.0.2/24 dev br0
    ip -n far link set br0 up
}
# The far end of eth1, in a namespace with a server of DHCP; what the server has given is in /tmp/leases.
dhcp_link() {
    ip netns add dhcp
    ip link set s1 netns dhcp
    ip -n dhcp link set s1 up
}
dhcp_begin() { # address of the server
    ip -n dhcp addr flush dev s1
    ip -n dhcp addr add "$1/24" dev s1
    touch /tmp/leases
    cat >/tmp/udhcpd.conf <<END
start 10.5.0.50
end 10.5.0.59
interface s1
max_leases 10
min_lease 5
lease_file /tmp/leases
pidfile /tmp/udhcpd.pid
option subnet 255.255.255.0
option router 10.5.0.1
option dns 10.5.0.53
option domain lab.example
option mtu 1400
option lease 40
END
    nsenter --net=/run/netns/dhcp busybox udhcpd -f /tmp/udhcpd.conf >/dev/null 2>&1 </dev/null &
    echo $! >/tmp/udhcpd
}
dhcp_end() { # writes its leases
    kill "$(cat /tmp/udhcpd)"
    while kill -0 "$(cat /tmp/udhcpd)" 2>/dev/null; do sleep 0.1; done
}
# Folders of the guest's own: the helper writes name servers into one, and watches the other: hostfs
# reports no changes.
own_folders() {
    mkdir -p "$STATE"
    mount -t tmpfs tmpfs "$STATE"
    mkdir -p /tmp/etc
    cp -L /etc/passwd /etc/group /etc/nsswitch.conf /etc/hosts /tmp/etc/
    mount --bind /tmp/etc /etc
}
until_shown() { # node property value
    until api "/nodes/configuration/network$1" | grep -q "\"name\":\"$2\"[^}]*\"value\":\"$3\""; do sleep 0.2; done
}
now() { date +%s%3N; }
# Reads from the share until /tmp/stop exists: a line for each read in /tmp/reads, the longest gap in ms in /tmp/gap.
read_on() {
    last=$(now) worst=0
    until [ -e /tmp/stop ]; do
        dd if=/mnt/far/file of=/dev/null bs=64k count=1 iflag=direct 2>/dev/null
        at=$(now) gap=$((at - last)) last=$at
        [ "$gap" -le "$worst" ] || worst=$gap
        echo >>/tmp/reads
    done
    echo "$worst" >/tmp/gap
}
until_reads() { # more
    wanted=$(($(wc -l </tmp/reads) + $1))
    until [ "$(wc -l </tmp/reads)" -ge "$wanted" ]; do sleep 0.1; done
}
until_up() { # links
    for link in "$@"; do
        until [ "$(cat "/sys/class/net/$link/operstate")" = up ]; do sleep 0.1; done
    done
}
until_active() { # bond port
    until [ "$(cat "/sys/class/net/$1/bonding/active_slave")" = "$2" ]; do sleep 0.1; done
}
until_alert() { # words of its sentence
    until api /nodes/configuration/alerts | grep -q "fired: [^\"]*$1"; do sleep 0.2; done
}
until_quiet() {
    until api /nodes/configuration/alerts/links | grep -q '"name":"state"[^}]*"value":"quiet"'; do sleep 0.2; done
}
until_no_problem() {
    while tree | grep -q 'reaches none of the probed hosts'; do sleep 0.2; done
}
