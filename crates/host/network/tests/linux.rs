//! The network of a Linux kernel: what a configuration makes of it is what iproute2 shows, field by
//! field, and is taken back without a trace; interrupted changes end in the old state.
//!
//! Each case has a network namespace of its own. A kernel that lacks kinds of links is replaced by
//! one in User Mode Linux, in which this program runs itself.

#[allow(dead_code, reason = "each program of tests uses a part")]
mod configurations;
#[path = "linux/guest.rs"]
mod guest;
#[path = "linux/iproute.rs"]
mod iproute;

use std::collections::BTreeSet;
use std::path::PathBuf;

use base::random::{Random, SeededRandom};
use host_network::backend::{Backend, reach};
use host_network::check::{Machine, check};
use host_network::compile::{Record, compile};
use host_network::configuration::{Class, Configuration, Datalink, Interface, RouteItem};
use host_network::linux::{Files, Linux};
use host_network::pkey::Pkey;
use host_network::plan::plan;
use host_network::state::{Dns, Kind, LinkMode, Mode, Owner, Policy, State, Timer};
use host_network::step::Step;

use guest::case;
use iproute::Dumps;

/// Pairs of configurations on a real kernel; `PLIMSOLL_NETWORK_PAIRS` sets another number.
const PAIRS: u64 = 4;
/// Interruptions of each change.
const CUTS: u64 = 2;

/// Changes next to links of others; `PLIMSOLL_NETWORK_CHANGES` sets another number.
const CHANGES: u64 = 10;
/// After how many of them iproute2 is asked: in a guest each of its programs takes a while.
const LOOK_EVERY: u64 = 5;

/// Pairs of veth links, the first end of each being a device; both ends are up. The other end has
/// no address: the kernel makes one some time after the link has come up.
fn devices(names: &[&str]) -> String {
    let line = |name: &&str| {
        format!(
            "ip link add {name} type veth peer name p-{name}\n\
             ip link set p-{name} addrgenmode none\n\
             ip link set p-{name} up\nip link set {name} up\n"
        )
    };
    names.iter().map(line).collect()
}

/// The folder of this program's files.
fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("network-{}", std::process::id()))
}

/// The network of this namespace, with files of a folder of its own.
fn open() -> Linux {
    let folder = folder();
    std::fs::create_dir_all(&folder).expect("a folder");
    let files =
        Files { run: folder.join("run"), resolv_conf: folder.join("resolv.conf"), dhcp: None };
    Linux::open(files).expect("a socket of netlink")
}

fn observe(linux: &mut Linux) -> State {
    linux.observe().unwrap_or_else(|e| panic!("{e}"))
}

fn sound(configuration: &Configuration, observed: &State, record: &Record) {
    let machine = Machine { observed, record, administration: &[], successor: None };
    assert_eq!(check(configuration, machine), [], "{configuration:#?}");
}

/// Reaches a configuration, compares it with what iproute2 shows, and takes it back.
fn round_trip(configuration: &Configuration) {
    let mut linux = open();
    let before = Dumps::take();
    let bare = observe(&mut linux);
    iproute::compare(&bare);
    let none = Record::default();
    sound(configuration, &bare, &none);
    let (target, record) = compile(configuration, &bare, &none);
    let adopted = record.adopted(&none);
    let steps = reach(&mut linux, &target, &adopted).unwrap_or_else(|e| panic!("{e}"));
    assert!(steps > 0);
    let now = observe(&mut linux);
    iproute::compare(&now);
    assert_eq!(configurations::made(&now), configurations::made(&target));
    assert_eq!(reach(&mut linux, &target, &adopted), Ok(0), "nothing is left to do");
    let (empty, next) = compile(&Configuration::default(), &now, &record);
    reach(&mut linux, &empty, &next.adopted(&record)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(observe(&mut linux), bare);
    before.wait_until_again();
}

fn datalink(configuration: &mut Configuration, name: &str, class: Class, mtu: Option<u32>) {
    configuration.datalinks.insert(name.to_owned(), Datalink { class, mtu });
}

fn interface(configuration: &mut Configuration, name: &str, link: &str, addresses: &[&str]) {
    let parsed = addresses.iter().map(|text| text.parse().expect("an address"));
    let interface = Interface::on(link, &parsed.collect::<Vec<_>>());
    configuration.interfaces.insert(name.to_owned(), interface);
}

fn route(configuration: &mut Configuration, name: &str, to: &str, gateway: &str, metric: u32) {
    let item = RouteItem {
        destination: to.parse().expect("a network"),
        gateway: gateway.parse().expect("an address"),
        metric,
    };
    configuration.routes.insert(name.to_owned(), item);
}

fn two_links() -> Vec<String> {
    vec!["e0".to_owned(), "e1".to_owned()]
}

#[test]
fn addresses_and_routes_of_a_device() {
    case("addresses_and_routes_of_a_device", &["veth"], || {
        let by_hand = "ip addr add 198.51.100.1/24 dev e0\n\
                       ip route add 203.0.113.0/24 via 198.51.100.9\n\
                       ip link set e1 down";
        guest::isolate(&(devices(&["e0", "e1"]) + by_hand));
        let mut configuration = Configuration::default();
        datalink(&mut configuration, "e0", Class::Device, Some(1400));
        datalink(&mut configuration, "e1", Class::Device, None);
        let addresses = ["10.0.0.1/24", "10.0.0.2/24", "2001:db8::1/64"];
        interface(&mut configuration, "lan", "e0", &addresses);
        interface(&mut configuration, "other", "e1", &["10.1.0.1/16"]);
        route(&mut configuration, "far", "10.9.0.0/16", "10.0.0.9", 0);
        route(&mut configuration, "default", "0.0.0.0/0", "10.1.0.9", 7);
        route(&mut configuration, "far6", "2001:db8:9::/48", "2001:db8::9", 1024);
        let servers = vec!["192.0.2.53".parse().expect("an address")];
        configuration.dns = Some(Dns { servers, domains: vec!["example.net".to_owned()] });
        round_trip(&configuration);
    });
}

#[test]
fn a_vlan_on_an_active_backup_aggregation() {
    case("a_vlan_on_an_active_backup_aggregation", &["veth", "bond", "vlan"], || {
        guest::isolate(&devices(&["e0", "e1"]));
        let mut configuration = Configuration::default();
        datalink(&mut configuration, "e0", Class::Device, None);
        datalink(&mut configuration, "e1", Class::Device, None);
        let mode = Mode::active_backup(Some("e1".to_owned()));
        let class = Class::Aggregation { links: two_links(), mode };
        datalink(&mut configuration, "g0", class, Some(9000));
        let class = Class::Vlan { link: "g0".to_owned(), id: 10 };
        datalink(&mut configuration, "g0.10", class, Some(1400));
        interface(&mut configuration, "lan", "g0.10", &["10.0.0.1/24", "2001:db8::1/64"]);
        interface(&mut configuration, "bare", "g0", &["10.1.0.1/24"]);
        route(&mut configuration, "far", "10.9.0.0/16", "10.0.0.9", 0);
        round_trip(&configuration);
    });
}

#[test]
fn an_aggregation_by_lacp_and_a_group() {
    case("an_aggregation_by_lacp_and_a_group", &["veth", "bond"], || {
        guest::isolate(&devices(&["e0", "e1", "e2", "e3"]));
        let mut configuration = Configuration::default();
        for name in ["e0", "e1", "e2", "e3"] {
            datalink(&mut configuration, name, Class::Device, None);
        }
        let mode = Mode::Lacp { policy: Policy::Layer34, timer: Timer::Fast };
        datalink(&mut configuration, "g0", Class::Aggregation { links: two_links(), mode }, None);
        interface(&mut configuration, "lan", "g0", &["10.0.0.1/24"]);
        let links = ["e2", "e3"].map(str::to_owned).to_vec();
        let addresses = vec!["10.1.0.1/24".parse().expect("an address")];
        let standbys = vec!["e2".to_owned()];
        let group = Interface { enabled: true, links, standbys, addresses, ..Interface::default() };
        configuration.interfaces.insert("group".to_owned(), group);
        round_trip(&configuration);
    });
}

#[test]
fn a_kind_that_the_kernel_does_not_have_is_refused_with_its_module() {
    case("a_kind_that_the_kernel_does_not_have_is_refused_with_its_module", &["veth"], || {
        guest::isolate(&devices(&["e0"]));
        let mut linux = open();
        let before = observe(&mut linux);
        let pkey = Pkey::new(0x8001).expect("a P_Key");
        let kind = Kind::Partition { on: "e0".to_owned(), pkey, mode: LinkMode::Datagram };
        let step = Step::CreateLink { name: "p".to_owned(), kind, mtu: 1500 };
        let why = linux.take(&step).expect_err("e0 is Ethernet").to_string();
        let start = "cannot create p: partition 0x0001 (limited 0x0001, full 0x8001) on e0, MTU \
                     1500: ";
        assert!(why.starts_with(start), "{why}");
        let module = "this kernel does not have it; load its module ib_ipoib";
        assert!(!why.contains("Unknown device type") || why.ends_with(module), "{why}");
        println!("{why}");
        assert_eq!(observe(&mut linux), before);
    });
}

/// A configuration without what the machine of these tests does not have.
fn limited(mut configuration: Configuration) -> Configuration {
    let is_here = |link: &str| !link.starts_with("ib");
    configuration.datalinks.retain(|name, _| is_here(name));
    configuration.interfaces.retain(|_, i| i.links.iter().all(|link| is_here(link)));
    configuration.interfaces.values_mut().for_each(|interface| interface.dhcp = false);
    configuration.host_name = None;
    let with_gateways = configuration.clone();
    configuration.routes.retain(|_, route| with_gateways.reaches(route.gateway).is_some());
    configuration
}

/// A configuration without this device and what is made of it.
fn without(device: &str, mut configuration: Configuration) -> Configuration {
    configuration.datalinks.remove(device);
    loop {
        let rest: BTreeSet<String> = configuration.datalinks.keys().cloned().collect();
        let is_whole =
            |datalink: &Datalink| datalink.class.links().iter().all(|l| rest.contains(l));
        configuration.datalinks.retain(|_, datalink| is_whole(datalink));
        configuration.interfaces.retain(|_, i| i.links.iter().all(|link| rest.contains(link)));
        if configuration.datalinks.len() == rest.len() {
            return limited(configuration);
        }
    }
}

/// A change and its interruptions; the network is bare before and after.
fn pair(linux: &mut Linux, seed: u64) {
    let mut random = SeededRandom::new(seed);
    let (bare, none) = (observe(linux), Record::default());
    let first = limited(configurations::generate(&mut random));
    sound(&first, &bare, &none);
    let (target, record) = compile(&first, &bare, &none);
    reach(linux, &target, &record.adopted(&none)).unwrap_or_else(|e| panic!("pair {seed}: {e}"));
    let old = observe(linux);
    iproute::compare(&old);
    let second = limited(configurations::generate(&mut random));
    sound(&second, &old, &record);
    let (new, next) = compile(&second, &old, &record);
    let adopted = next.adopted(&record);
    let steps = plan(&old, &new, &adopted);
    for _ in 0..CUTS {
        let cut = random.below(steps.len() as u64 + 1) as usize;
        for step in &steps[..cut] {
            linux.take(step).unwrap_or_else(|e| panic!("pair {seed}: {e}\n{steps:#?}"));
        }
        for step in plan(&observe(linux), &old, &adopted) {
            linux.take(&step).unwrap_or_else(|e| panic!("pair {seed}, cut {cut}: {e}"));
        }
        assert_eq!(observe(linux), old, "pair {seed}, cut {cut}");
    }
    reach(linux, &new, &adopted).unwrap_or_else(|e| panic!("pair {seed}: {e}"));
    let now = observe(linux);
    assert_eq!(configurations::made(&now), configurations::made(&new), "pair {seed}");
    let (empty, last) = compile(&Configuration::default(), &now, &next);
    reach(linux, &empty, &last.adopted(&next)).unwrap_or_else(|e| panic!("pair {seed}: {e}"));
    assert_eq!(observe(linux), bare, "pair {seed}: after all");
}

#[test]
fn interrupted_changes_end_in_the_old_state() {
    case("interrupted_changes_end_in_the_old_state", &["veth", "bond", "vlan"], || {
        let by_hand = "ip link set e3 down\n\
                       ip addr add 198.51.100.1/24 brd + dev hand\n\
                       ip addr add 198.51.100.2/24 brd + dev hand\n\
                       ip addr add 2001:db8:ff::1/64 dev hand\n\
                       ip route add 203.0.113.0/24 via 198.51.100.9";
        guest::isolate(&(devices(&["e0", "e1", "e2", "e3", "hand"]) + by_hand));
        let before = Dumps::take();
        let mut linux = open();
        let pairs = e2e::env_number(guest::PAIRS, PAIRS);
        (0..pairs).for_each(|seed| pair(&mut linux, seed));
        before.wait_until_again();
    });
}

/// The files that systemd-networkd leaves for a link that it manages.
fn give_to_networkd(link: &str) {
    let index = iproute::index(link);
    let folder = folder().join("run/systemd/netif/links");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(index), "ADMIN_STATE=configured\n").expect("a file");
}

#[test]
fn changes_leave_the_links_of_others() {
    case("changes_leave_the_links_of_others", &["veth", "bond", "vlan"], || {
        let of_others = "ip addr add 198.51.100.1/24 brd + dev hand\n\
                         ip addr add 198.51.100.2/24 brd + dev hand\n\
                         ip addr add 2001:db8:ff::1/64 dev hand\n\
                         ip route add 203.0.113.0/24 via 198.51.100.9\n\
                         ip addr add 192.0.2.7/24 brd + dev wan\n\
                         ip addr add 2001:db8:fe::1/64 dev wan\n\
                         ip link set wan mtu 1480\n\
                         ip route add default via 192.0.2.1 proto dhcp metric 1024";
        let names = ["e0", "e1", "e2", "e3", "hand", "wan"];
        guest::isolate(&(devices(&names) + "ip link set e3 down\n" + of_others));
        give_to_networkd("wan");
        let foreign = &["hand", "p-hand", "wan", "p-wan"];
        let before = Dumps::take();
        let beside = before.about(foreign);
        let mut linux = open();
        let bare = observe(&mut linux);
        assert_eq!(bare.links["wan"].owner, Owner::Manager("systemd-networkd".to_owned()));
        let changes = e2e::env_number(guest::CHANGES, CHANGES);
        let mut record = Record::default();
        let (mut random, mut steps) = (SeededRandom::new(40), 0);
        for at in 1..=changes {
            let observed = observe(&mut linux);
            let configuration = without("hand", configurations::generate(&mut random));
            sound(&configuration, &observed, &record);
            let (target, next) = compile(&configuration, &observed, &record);
            let adopted = next.adopted(&record);
            steps += reach(&mut linux, &target, &adopted).unwrap_or_else(|e| panic!("{at}: {e}"));
            record = next;
            if at % LOOK_EVERY == 0 {
                let now = Dumps::take().about(foreign);
                assert!(now == beside, "change {at}: {beside:#?}\nafter: {now:#?}");
            }
        }
        println!("{changes} changes, {steps} steps");
        assert!(steps > changes as usize);
        let (empty, last) = compile(&Configuration::default(), &observe(&mut linux), &record);
        reach(&mut linux, &empty, &last.adopted(&record)).unwrap_or_else(|e| panic!("{e}"));
        before.wait_until_again();
        assert_eq!(observe(&mut linux), bare);
        is_refused(&bare, "wan", "systemd-networkd");
    });
}

/// A configuration that takes another program's link is refused with the name of that program.
fn is_refused(observed: &State, link: &str, manager: &str) {
    let mut configuration = Configuration::default();
    datalink(&mut configuration, link, Class::Device, None);
    let record = Record::default();
    let machine = Machine { observed, record: &record, administration: &[], successor: None };
    let refusals = check(&configuration, machine);
    let named = refusals.iter().any(|refusal| refusal.sentence.contains(manager));
    assert!(named, "{refusals:#?}");
}
