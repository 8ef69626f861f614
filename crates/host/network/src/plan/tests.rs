//! Steps, their order, and what they leave alone.

use super::*;
use crate::backend::{Backend, Failure, ObserveOnly, reach};
use crate::compile::{Record, compile};
use crate::configuration::{Class, Configuration, Datalink, Interface, RouteItem};
use crate::fake::Kernel;

fn devices() -> State {
    let mut state = State::default();
    for name in ["a", "b"] {
        state.links.insert(name.to_owned(), Link::ethernet(1500, 9000));
    }
    state
}

fn device(configuration: &mut Configuration, name: &str) {
    let datalink = Datalink { class: Class::Device, mtu: None };
    configuration.datalinks.insert(name.to_owned(), datalink);
}

/// VLAN 10 on an aggregation of two devices, with an address and a route.
fn vlan_on_aggregation() -> Configuration {
    let mut configuration = Configuration::default();
    device(&mut configuration, "a");
    device(&mut configuration, "b");
    let mode = Mode::active_backup(Some("a".to_owned()));
    let links = vec!["a".to_owned(), "b".to_owned()];
    let aggregation = Datalink { class: Class::Aggregation { links, mode }, mtu: None };
    configuration.datalinks.insert("g".to_owned(), aggregation);
    let class = Class::Vlan { link: "g".to_owned(), id: 10 };
    configuration.datalinks.insert("g.10".to_owned(), Datalink { class, mtu: Some(1400) });
    let address = "10.0.0.1/24".parse().expect("an address");
    configuration.interfaces.insert("lan".to_owned(), Interface::on("g.10", &[address]));
    let route = RouteItem {
        destination: "10.9.0.0/16".parse().expect("a network"),
        gateway: "10.0.0.2".parse().expect("an address"),
        metric: 0,
    };
    configuration.routes.insert("far".to_owned(), route);
    configuration
}

/// A device with an MTU below the least of IPv6 has no settings of IPv6: a further change leaves
/// them, and they are set again with the MTU; so they are on the way back from each step.
#[test]
fn an_mtu_below_that_of_ipv6_is_changed_further() {
    let with_mtu = |mtu| {
        let mut configuration = Configuration::default();
        let datalink = Datalink { class: Class::Device, mtu };
        configuration.datalinks.insert("a".to_owned(), datalink);
        let address = "10.0.0.1/24".parse().expect("an address");
        configuration.interfaces.insert("lan".to_owned(), Interface::on("a", &[address]));
        configuration
    };
    let (mut kernel, mut record) = (Kernel::new(devices()), Record::default());
    let bare = kernel.observe().expect("a state");
    let of_change = |kernel: &mut Kernel, configuration: &Configuration, record: &mut Record| {
        let old = kernel.observe().expect("a state");
        let (target, next) = compile(configuration, &old, record);
        let adopted = next.adopted(record);
        let steps = plan(&old, &target, &adopted);
        for cut in 0..=steps.len() {
            let mut cut_off = kernel.clone();
            for step in &steps[..cut] {
                cut_off.take(step).unwrap_or_else(|e| panic!("{e}: {steps:#?}"));
            }
            let found = cut_off.observe().expect("a state");
            for step in plan(&found, &old, &adopted) {
                cut_off.take(&step).unwrap_or_else(|e| panic!("back from {cut}: {e}"));
            }
            assert_eq!(cut_off.observe().expect("a state"), old, "back from {cut}");
        }
        reach(kernel, &target, &adopted).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(kernel.observe().expect("a state"), target);
        *record = next;
    };
    for mtu in [Some(1000), Some(1001), Some(1400), Some(1000), None] {
        of_change(&mut kernel, &with_mtu(mtu), &mut record);
        assert!(!kernel.observe().expect("a state").links["a"].advertisements);
    }
    of_change(&mut kernel, &with_mtu(Some(1000)), &mut record);
    of_change(&mut kernel, &Configuration::default(), &mut record);
    assert_eq!(kernel.observe().expect("a state"), bare);
}

#[test]
fn steps_are_listed_bottom_up() {
    let (observed, record) = (devices(), Record::default());
    let (target, next) = compile(&vlan_on_aggregation(), &observed, &record);
    let steps = plan(&observed, &target, &next.adopted(&record));
    let texts: Vec<String> = steps.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "create g: aggregation (active-backup), MTU 1500, primary a",
            "set a down",
            "attach a to g",
            "set b down",
            "attach b to g",
            "set g: primary a",
            "set g up",
            "ignore router advertisements on g",
            "create g.10: VLAN 10 on g, MTU 1400",
            "set g.10 up",
            "ignore router advertisements on g.10",
            "set 10.0.0.1/24 on g.10",
            "set the route 10.9.0.0/16 via 10.0.0.2 on g.10 with metric 0",
        ]
    );
}

#[test]
fn what_is_reached_needs_no_step_and_is_taken_back() {
    let (observed, record) = (devices(), Record::default());
    let mut kernel = Kernel::new(observed.clone());
    let (target, next) = compile(&vlan_on_aggregation(), &observed, &record);
    let adopted = next.adopted(&record);
    assert_eq!(reach(&mut kernel, &target, &adopted), Ok(13));
    assert_eq!(reach(&mut kernel, &target, &adopted), Ok(0));
    let now = kernel.observe().expect("a state");
    let (empty, none) = compile(&Configuration::default(), &now, &next);
    assert_eq!(none, Record::default());
    reach(&mut kernel, &empty, &none.adopted(&next)).expect("the way back");
    assert_eq!(kernel.observe(), Ok(observed));
}

#[test]
fn links_that_are_not_adopted_are_never_touched() {
    let mut observed = devices();
    observed.links.get_mut("b").expect("b").up = false;
    let mut target = devices();
    target.links.remove("a");
    target.links.get_mut("b").expect("b").mtu = 9000;
    assert_eq!(plan(&observed, &target, &BTreeSet::new()), []);
}

#[test]
fn a_back_end_that_only_observes_gives_its_reason() {
    let mut backend = ObserveOnly::new(Kernel::new(devices()), "no helper runs");
    let (target, next) = compile(&vlan_on_aggregation(), &devices(), &Record::default());
    let why = reach(&mut backend, &target, &next.adopted(&next)).expect_err("it takes no steps");
    assert_eq!(why, Failure::ObserveOnly("no helper runs".to_owned()));
}

#[test]
fn a_new_primary_address_sets_the_others_again() {
    let set = |texts: &[&str]| {
        let mut state = devices();
        let list = texts.iter().map(|t| Address::made(t.parse().expect("an address"))).collect();
        state.addresses.insert("a".to_owned(), list);
        state
    };
    let adopted = BTreeSet::from(["a".to_owned()]);
    let steps = |from: &[&str], to: &[&str]| -> Vec<String> {
        plan(&set(from), &set(to), &adopted).iter().map(ToString::to_string).collect()
    };
    let (one, two) = ("10.0.0.1/24", "10.0.0.2/24");
    assert_eq!(steps(&[one], &[one, two]), ["set 10.0.0.2/24 on a"]);
    assert_eq!(steps(&[one, two], &[one]), ["remove 10.0.0.2/24 from a"]);
    let again = ["remove 10.0.0.2/24 from a", "set 10.0.0.1/24 on a", "set 10.0.0.2/24 on a"];
    assert_eq!(steps(&[two], &[one, two]), again);
}

#[test]
fn probes_of_a_group_are_changed_without_making_it_again() {
    let (mut observed, mut record) = (devices(), Record::default());
    let mut configuration = Configuration::default();
    device(&mut configuration, "a");
    device(&mut configuration, "b");
    let address = "10.0.0.1/24".parse().expect("an address");
    let links = vec!["a".to_owned(), "b".to_owned()];
    let group = Interface { links, ..Interface::on("a", &[address]) };
    configuration.interfaces.insert("g".to_owned(), group);
    let mut texts = Vec::new();
    for hosts in ["", "10.0.0.8 10.0.0.9", ""] {
        let hosts = hosts.split_whitespace().map(|host| host.parse().expect("an address"));
        let group = configuration.interfaces.get_mut("g").expect("it");
        group.probes = hosts.collect();
        let (target, next) = compile(&configuration, &observed, &record);
        let adopted = next.adopted(&record);
        texts = plan(&observed, &target, &adopted).iter().map(ToString::to_string).collect();
        let mut kernel = Kernel::new(observed);
        reach(&mut kernel, &target, &adopted).expect("reached");
        observed = kernel.observe().expect("a state");
        record = next;
        if !configuration.interfaces["g"].probes.is_empty() {
            assert_eq!(texts, ["set g: primary a, probes of 10.0.0.8, 10.0.0.9"]);
        }
    }
    assert_eq!(texts, ["set g: primary a"]);
    // A group without its addresses is not probed.
    let group = configuration.interfaces.get_mut("g").expect("it");
    (group.enabled, group.probes) = (false, ["10.0.0.9".parse().expect("an address")].into());
    let (target, _) = compile(&configuration, &observed, &record);
    let kind = Kind::Aggregation(Mode::active_backup(Some("a".to_owned())));
    assert_eq!(target.links["g"].kind, kind);
}
