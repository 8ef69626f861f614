//! The network through the program on a Linux kernel that has all kinds of links: a guest of User
//! Mode Linux. What the tree has is what iproute2 shows, field by field; all removed is as before;
//! a change that was not confirmed is gone after a power cut. The commands of the how-to are run as
//! they are printed.
//!
//! Guest side: `uml/network.sh`.

use std::path::Path;
use std::time::{Duration, Instant};

use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::uml::{self, Guest};
use e2e::{browser, has, skip};
use serde_json::Value;

#[path = "kernel_network/compare.rs"]
mod compare;
#[path = "kernel_network/ways.rs"]
mod ways;

use compare::{Dumps, compare, interface_of, lease, value};
use ways::Page;

/// Memory of a guest that holds the server.
const MEMORY: &str = "mem=768M";
/// How long a script may take: server, helper and guard share one processor.
const ANSWER: Duration = e2e::patience(120);
/// How long addresses may take to settle.
const SETTLE: Duration = e2e::patience(30);
/// How long a lease of 40 s may take to be extended.
const LEASES: Duration = e2e::patience(60);
const PAGE: &str = include_str!("../docs/howto/network.md");

/// VLAN 10 on an active-backup aggregation, LACP against another bond, and a group with a standby.
const BY_COMMAND_LINE: &str = "plimsoll cli --state $STATE <<'END'
configuration network
datalinks create a0 class=device mtu=1400
datalinks create a1 class=device mtu=1400
datalinks create trunk0 class=aggregation links=a0,a1 mode=active-backup primary=a1 mtu=1400
datalinks create trunk0.10 class=vlan link=trunk0 id=10
datalinks create l0 class=device
datalinks create l1 class=device
datalinks create lag0 class=aggregation links=l0,l1 mode=lacp policy=l34 timer=fast
interfaces create lan links=trunk0.10 v4addrs=10.10.0.1/24,10.11.0.1/16 v6addrs=2001:db8:10::1/64
interfaces create lag links=lag0 v4addrs=10.4.0.1/24
commit
END";
const OVER_THE_API: &str = r#"{"changes": [
  {"create": "/configuration/network/datalinks", "name": "g0", "properties": {"class": "device"}},
  {"create": "/configuration/network/datalinks", "name": "g1", "properties": {"class": "device"}},
  {"create": "/configuration/network/interfaces", "name": "store",
   "properties": {"links": ["g0", "g1"], "standbys": ["g1"], "v4addrs": ["10.3.0.1/24"]}},
  {"create": "/configuration/network/routes", "name": "far",
   "properties": {"destination": "10.99.0.0/16", "gateway": "10.10.0.9", "metric": 7}}]}"#;
const UNCONFIRMED: &str = r#"{"changes": [
  {"set": "/configuration/network", "property": "confirm_within", "value": 3600},
  {"set": "/configuration/network/interfaces/store", "property": "v4addrs",
   "value": ["10.33.0.1/24"]},
  {"destroy": "/configuration/network/routes/far", "confirm": true}]}"#;
const ALL_REMOVED: &str = "plimsoll cli --state $STATE <<'END'
configuration network
routes destroy far --yes
interfaces destroy store --yes
interfaces destroy lag --yes
interfaces destroy lan --yes
datalinks destroy g0 --yes
datalinks destroy g1 --yes
datalinks destroy lag0 --yes
datalinks destroy l0 --yes
datalinks destroy l1 --yes
datalinks destroy trunk0.10 --yes
datalinks destroy trunk0 --yes
datalinks destroy a0 --yes
datalinks destroy a1 --yes
commit
END";

/// Time for what is made and removed one by one.
const AN_HOUR: &str = r#"{"changes": [
  {"set": "/configuration/network", "property": "confirm_within", "value": 3600}]}"#;
/// An alert for links of interfaces.
const ALERT: &str = r#"{"changes": [
  {"create": "/configuration/alerts", "name": "links",
   "properties": {"when": "network", "for": 1, "clear_for": 1}}]}"#;

/// Waits for the carriers of all that is made: each brings a link-local address.
const ALL_UP: &str = "until_up trunk0 trunk0.10 lag0 store";

/// A guest with its devices; dropping it cuts its power.
struct Stage {
    guest: Guest,
    namespace: Namespace,
    scratch: Scratch,
}

impl Stage {
    fn new() -> Result<Self, String> {
        if let Some(why) = uml::server_unavailable() {
            return Err(why);
        }
        let namespace = uml::namespace(1)?;
        let scratch = Scratch::new("kernel-network");
        let guest = boot(&namespace, &scratch);
        Ok(Self { guest, namespace, scratch })
    }

    /// Cuts the power and boots again.
    fn boot_again(&mut self) {
        self.guest.cut();
        self.guest = boot(&self.namespace, &self.scratch);
    }

    fn run(&mut self, script: &str) -> String {
        self.guest.run(&format!(". /mnt/host/network.sh\n{script}"))
    }

    fn json(&mut self, script: &str) -> Value {
        let text = self.run(script);
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{script}: {e}: {text}"))
    }

    fn dumps(&mut self) -> Dumps {
        Dumps::of(self.json("dumps"))
    }

    /// Waits until the dumps are these: addresses are checked by the kernel for a second or two.
    fn wait_until(&mut self, wanted: &Dumps) {
        let end = Instant::now() + SETTLE;
        loop {
            let now = self.dumps();
            if now == *wanted {
                return;
            }
            assert!(Instant::now() < end, "{}", wanted.differences(&now));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The dumps once no address is being checked any more.
    fn settled(&mut self) -> Dumps {
        let end = Instant::now() + SETTLE;
        loop {
            let now = self.dumps();
            if now.is_settled() || Instant::now() > end {
                return now;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The alert has fired once, with this link, and cleared.
    fn alert_names(&mut self, sentence: &str) {
        self.run("until_quiet");
        let alerts = self.json("api /nodes/configuration/alerts");
        let recent = value(&alerts, "recent").as_array().cloned().unwrap_or_default();
        let fired = |line: &Value| line.as_str().is_some_and(|line| line.contains(" fired: "));
        let fired: Vec<&Value> = recent.iter().filter(|line| fired(line)).collect();
        assert_eq!(fired.len(), 1, "{recent:?}");
        assert!(fired[0].to_string().contains(sentence), "{recent:?}");
        println!("alert: {}", fired[0]);
    }

    /// The lease of `wan` with its end and its server, once it ends later than at this time.
    fn lease_after(&mut self, until: u64) -> (String, u64, String) {
        let end = Instant::now() + LEASES;
        loop {
            let tree = self.json("tree");
            let wan = interface_of(&tree, "wan");
            let now = value(wan, "lease_until").as_u64().unwrap_or(0);
            if now > until {
                let server = value(wan, "lease_server").as_str().unwrap_or_default().to_owned();
                return (lease(wan).unwrap_or_default(), now, server);
            }
            assert!(Instant::now() < end, "{wan}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn equals_the_tree(&mut self) -> Dumps {
        let dumps = self.settled();
        let tree = self.json("tree");
        compare(&tree, &dumps);
        dumps
    }
}

/// What is as if an operation had been skipped, and what repairs it: the comparison fails for each.
const SKIPPED: [(&str, &str); 5] = [
    (
        "ip route del 10.99.0.0/16",
        "ip route add 10.99.0.0/16 via 10.10.0.9 dev trunk0.10 metric 7 proto 215",
    ),
    ("ip link set a0 nomaster", "ip link set a0 down; ip link set a0 master trunk0"),
    ("ip link set trunk0 type bond primary a0", "ip link set trunk0 type bond primary a1"),
    (
        "ip link set lag0 type bond xmit_hash_policy layer2",
        "ip link set lag0 type bond xmit_hash_policy layer3+4",
    ),
    ("ip link set lag0 group 0", "ip link set lag0 group 215"),
];

/// Plants what the comparison has to find.
fn planted(stage: &mut Stage, skipped: &str) {
    stage.run(skipped);
    let (tree, dumps) = (stage.json("tree"), stage.dumps());
    let seen = std::panic::catch_unwind(|| compare(&tree, &dumps)).is_err();
    assert!(seen, "not seen: {skipped}");
}

fn boot(namespace: &Namespace, scratch: &Scratch) -> Guest {
    let mut guest = Guest::boot_with(uml::DEBIAN.as_ref(), MEMORY, namespace, 0, scratch.path());
    guest.answers_within(ANSWER);
    let program = guest.share().join("plimsoll");
    if !program.exists() {
        std::fs::copy(e2e::server::binary(), &program).expect("the server");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml/network.sh");
    std::fs::copy(script, guest.share().join("network.sh")).expect("the script");
    guest.run(". /mnt/host/network.sh\ndevices");
    guest
}

/// Reads before a link goes, while it is down, and when it is back.
const READS: u32 = 40;
/// The longest time without a read that is accepted; it is about 1 s.
const GAP_MAX: Duration = Duration::from_secs(5);

/// The blocks of commands of the how-to.
fn blocks() -> Vec<&'static str> {
    let all = PAGE.split("```\n").skip(1).step_by(2);
    all.collect()
}

#[test]
fn the_network_of_a_guest_is_what_the_tree_has_also_after_a_power_cut() {
    let _turn = uml::turn();
    let mut stage = match Stage::new() {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-network", "{why}"),
    };
    let before = stage.settled();
    stage.run("begin_server --state $STATE");
    stage.wait_until(&before);
    stage.run(&format!(
        "{BY_COMMAND_LINE}\nwaits\nplimsoll cli --state $STATE -c 'configuration network confirm'"
    ));
    stage.run("until_lacp lag0");
    stage.equals_the_tree();
    stage.run(&format!("change '{OVER_THE_API}'\nwaits\nact confirm\n{ALL_UP}"));
    let confirmed = stage.equals_the_tree();
    for (skipped, repair) in SKIPPED {
        planted(&mut stage, skipped);
        stage.run(repair);
    }
    stage.wait_until(&confirmed);
    // Not confirmed, and the power is cut.
    stage.run(&format!("change '{UNCONFIRMED}'\nwaits"));
    let unconfirmed = stage.equals_the_tree();
    assert_ne!(unconfirmed, confirmed);
    // Not every iproute2 can mark an address, which would repair it.
    planted(&mut stage, "ip addr del 10.4.0.1/24 dev lag0");
    stage.boot_again();
    stage.wait_until(&before);
    stage.run("begin_server --state $STATE\nuntil_lacp lag0");
    stage.wait_until(&confirmed);
    stage.equals_the_tree();
    let history = stage.run("api /configuration/history");
    assert!(history.contains("not confirmed"), "{history}");
    stage.run(&format!("{ALL_REMOVED}\nact confirm"));
    stage.wait_until(&before);
    compare(&stage.json("tree"), &before);
}

/// All kinds of links of the guest, a group that is probed, a route and an address by DHCP: made by
/// the command line, the API and the browser, each time equal to what iproute2 shows; removed the
/// same way, all is as before.
#[test]
fn each_way_makes_and_removes_the_whole_network() {
    let _turn = uml::turn();
    let mut stage = match Stage::new() {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-network-ways", "{why}"),
    };
    if let Some(what) = browser::missing() {
        skip!("kernel-network-ways", "{what}");
    }
    if !has("busybox") {
        skip!("kernel-network-ways", "not installed: busybox");
    }
    stage.run("own_folders\nfar_bridge\ndhcp_link\ndhcp_begin 10.5.0.1");
    let before = stage.settled();
    stage.run(&format!("begin_server --state $STATE --user admin:{}", browser::PASSWORD));
    stage.run(&format!("change '{AN_HOUR}'"));
    let tree = stage.json("api /tree");
    let mut page = Page::open(&stage.namespace, &tree);
    for way in ["command line", "API", "browser"] {
        let begin = Instant::now();
        match way {
            "command line" => drop(stage.run(&ways::made_by_command_line())),
            "API" => drop(stage.run(&ways::made_over_the_api())),
            _ => page.makes(),
        }
        stage.run(&format!("until_lacp lag0\n{ALL_UP}\nuntil_active store g0"));
        stage.run("until_shown /interfaces/wan lease_state bound\nuntil_shown '' state changeable");
        let made = stage.equals_the_tree();
        assert_ne!(made, before);
        match way {
            "command line" => drop(stage.run(&ways::removed_by_command_line())),
            "API" => drop(stage.run(&ways::removed_over_the_api())),
            _ => page.removes(),
        }
        stage.run("until_shown '' state changeable");
        stage.wait_until(&before);
        compare(&stage.json("tree"), &before);
        let items = ways::wanted().len();
        println!("by {way}: {items} items made and removed in {:.0?}", begin.elapsed());
    }
}

#[test]
fn the_commands_of_the_page_make_a_vlan_and_take_it_back() {
    let _turn = uml::turn();
    let mut stage = match Stage::new() {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-network-page", "{why}"),
    };
    let [shows, makes, removes] = blocks()[..] else { panic!("three blocks of commands") };
    let before = stage.settled();
    stage.run(
        "mount -t tmpfs tmpfs /var/lib\nSTATE=/var/lib/plimsoll/t\nbegin_server --state $STATE",
    );
    let text = stage.run(shows);
    assert!(text.contains("changeable") && text.contains("eth1"), "{text}");
    let text = stage.run(makes);
    assert!(
        text.contains("inet 10.0.10.2/24") && text.contains("vlan protocol 802.1Q id 10"),
        "{text}"
    );
    stage.run(removes);
    stage.wait_until(&before);
}

const BY_DHCP: &str = "plimsoll cli --state $STATE <<'END'
configuration network
datalinks create eth1 class=device
interfaces create wan links=eth1 v4dhcp=on
confirm
END
until_shown /interfaces/wan lease_state bound";

/// An interface by DHCP of busybox's udhcpd: lease with MTU and name servers, renewal, an extension
/// by another server, a restart of the server, and the way back.
#[test]
fn an_interface_by_dhcp_keeps_its_lease_and_gives_it_back() {
    let _turn = uml::turn();
    let mut stage = match Stage::new() {
        Ok(stage) if has("busybox") => stage,
        Ok(_) => skip!("kernel-network-dhcp", "not installed: busybox"),
        Err(why) => skip!("kernel-network-dhcp", "{why}"),
    };
    stage.run("own_folders\ndhcp_link\ndhcp_begin 10.5.0.1");
    let before = stage.settled();
    stage.run(&format!("begin_server --state $STATE\n{BY_DHCP}"));
    stage.equals_the_tree();
    let tree = stage.json("tree");
    let wan = interface_of(&tree, "wan");
    let first = lease(wan).expect("a lease");
    assert!(first.starts_with("10.5.0.5"), "{first}");
    let until = value(wan, "lease_until").as_u64().expect("an end");
    let routes = stage.run("ip route show proto 216");
    assert!(routes.contains("default via 10.5.0.1 dev eth1"), "{routes}");
    assert!(routes.contains("mtu 1400"), "{routes}");
    let names = stage.run("cat /etc/resolv.conf");
    assert!(names.contains("nameserver 10.5.0.53") && names.contains("lab.example"), "{names}");
    // Renewal, by the same server.
    let renewed = stage.lease_after(until);
    assert_eq!((&renewed.0, renewed.2.as_str()), (&first, "10.5.0.1"));
    // Another server with the same leases extends it.
    stage.run("dhcp_end\ndhcp_begin 10.5.0.2");
    let rebound = stage.lease_after(renewed.1);
    assert_eq!((&rebound.0, rebound.2.as_str()), (&first, "10.5.0.2"));
    // It is kept over a restart of server and helper.
    stage.run(
        "end_server\nbegin_server --state $STATE\nuntil_shown /interfaces/wan lease_state bound",
    );
    let kept = stage.json("tree");
    assert_eq!(lease(interface_of(&kept, "wan")), Some(first));
    stage.equals_the_tree();
    stage.run(
        "plimsoll cli --state $STATE <<'END'\nconfiguration network\n\
         interfaces destroy wan --yes\ndatalinks destroy eth1 --yes\nconfirm\nEND",
    );
    stage.wait_until(&before);
    assert_eq!(stage.run("cat /etc/resolv.conf 2>/dev/null || :"), "");
}

/// A client of NFS reads through a group; a link of it loses its carrier and has it again.
#[test]
fn reads_through_a_group_continue_when_a_link_is_down() {
    let _turn = uml::turn();
    let mut stage = match Stage::new() {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-network-group", "{why}"),
    };
    stage.run(
        "far_bridge\nSERVER=0.0.0.0\nbegin_server --state $STATE\n\
         head -c 1048576 /dev/urandom >/mnt/t/file",
    );
    stage.run(
        "plimsoll cli --state $STATE <<'END'\nconfiguration network\n\
         datalinks create g0 class=device\ndatalinks create g1 class=device\n\
         interfaces create store links=g0,g1 standbys=g1 v4addrs=10.3.0.1/24\n\
         confirm\nEND\nuntil_active store g0",
    );
    stage.run(&format!("change '{ALERT}'"));
    let options = "vers=4.2,proto=tcp,port=2049,noresvport";
    let mount =
        format!("mkdir -p /mnt/far\nfar mount -t nfs -o {options} 10.3.0.1:/export/t /mnt/far");
    stage.run(&mount);
    let reads = stage.guest.begin(". /mnt/host/network.sh\nread_on");
    stage.run(&format!("touch /tmp/reads\nuntil_reads {READS}\nip -n far link set r0 down"));
    stage.run(&format!("until_active store g1\nuntil_reads {READS}"));
    let sentence = "g0 has no carrier (interface store)";
    let tree = stage.run("tree");
    assert!(tree.contains(sentence), "{tree}");
    stage.run(&format!("until_alert '{sentence}'"));
    stage.run(&format!(
        "ip -n far link set r0 up\nuntil_active store g0\nuntil_reads {READS}\ntouch /tmp/stop"
    ));
    stage.alert_names(sentence);
    let (status, text) = stage.guest.end(&reads);
    assert_eq!(status, 0, "an error at the client: {text}");
    let gap: u64 = stage.run("cat /tmp/gap").trim().parse().expect("milliseconds");
    println!("the longest time without a read: {gap} ms");
    e2e::took_at_most("a read when a link is down", Duration::from_millis(gap), GAP_MAX);
}

/// The same of a group with a probed host: the far end of a link has a carrier, but is in no
/// network any more. (Without `arp off` it would answer for the address of the bridge.)
#[test]
fn reads_through_a_group_continue_when_a_link_reaches_no_host() {
    let _turn = uml::turn();
    let mut stage = match Stage::new() {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-network-probes", "{why}"),
    };
    stage.run(
        "far_bridge\nSERVER=0.0.0.0\nbegin_server --state $STATE\n\
         head -c 1048576 /dev/urandom >/mnt/t/file",
    );
    stage.run(
        "plimsoll cli --state $STATE <<'END'\nconfiguration network\n\
         datalinks create g0 class=device\ndatalinks create g1 class=device\n\
         interfaces create store links=g0,g1 standbys=g1 v4addrs=10.3.0.1/24 probes=10.3.0.2\n\
         confirm\nEND\nuntil_active store g0",
    );
    stage.run(&format!("change '{ALERT}'"));
    stage.equals_the_tree();
    let options = "vers=4.2,proto=tcp,port=2049,noresvport";
    let mount =
        format!("mkdir -p /mnt/far\nfar mount -t nfs -o {options} 10.3.0.1:/export/t /mnt/far");
    stage.run(&mount);
    let reads = stage.guest.begin(". /mnt/host/network.sh\nread_on");
    stage.run(&format!(
        "touch /tmp/reads\nuntil_reads {READS}\nip -n far link set r0 nomaster arp off"
    ));
    stage.run(&format!("until_active store g1\nuntil_reads {READS}"));
    assert_eq!(stage.run("cat /sys/class/net/g0/carrier").trim(), "1");
    let sentence = "g0 reaches none of the probed hosts (interface store)";
    let tree = stage.run("tree");
    assert!(tree.contains(sentence), "{tree}");
    stage.run(&format!("until_alert '{sentence}'"));
    // Back in its network it is a standby that works, and nothing moves.
    stage.run(&format!(
        "ip -n far link set r0 master br0 arp on\nuntil_no_problem\nuntil_reads {READS}"
    ));
    assert_eq!(stage.run("cat /sys/class/net/store/bonding/active_slave").trim(), "g1");
    stage.run("touch /tmp/stop");
    stage.alert_names(sentence);
    let (status, text) = stage.guest.end(&reads);
    assert_eq!(status, 0, "an error at the client: {text}");
    let gap: u64 = stage.run("cat /tmp/gap").trim().parse().expect("milliseconds");
    println!("the longest time without a read: {gap} ms");
    e2e::took_at_most("a read when a link is deaf", Duration::from_millis(gap), GAP_MAX);
}
