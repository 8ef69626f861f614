//! Links of interfaces that are missing or have no carrier.

use host_network::configuration::{Datalink, Interface};
use host_network::state::Mode;

use super::*;

fn configuration() -> Configuration {
    let mut configuration = Configuration::default();
    let mut add = |name: &str, class: Class| {
        configuration.datalinks.insert(name.to_owned(), Datalink { class, mtu: None });
    };
    for device in ["e0", "e1", "e2", "e3"] {
        add(device, Class::Device);
    }
    let mode = Mode::active_backup(None);
    let links = vec!["e0".to_owned(), "e1".to_owned()];
    add("trunk", Class::Aggregation { links, mode });
    add("trunk.10", Class::Vlan { link: "trunk".to_owned(), id: 10 });
    configuration.interfaces.insert("lan".to_owned(), Interface::on("trunk.10", &[]));
    let mut group = Interface::on("e2", &[]);
    group.links.push("e3".to_owned());
    configuration.interfaces.insert("store".to_owned(), group);
    configuration
}

fn carrier(dark: &[&str], name: &str) -> Carrier {
    if dark.contains(&name) { Carrier::None } else { Carrier::Works }
}

fn found(dark: &[&str], missing: &[&str]) -> Option<String> {
    let all = ["e0", "e1", "e2", "e3", "trunk", "trunk.10", "store", "other"];
    let there = all.iter().filter(|name| !missing.contains(name));
    let carriers = there.map(|name| ((*name).to_owned(), carrier(dark, name))).collect();
    problem(&configuration(), &carriers)
}

#[test]
fn a_link_of_an_aggregation_or_a_group_is_named() {
    assert_eq!(found(&[], &[]), None);
    assert_eq!(found(&["other"], &["other"]), None);
    assert_eq!(found(&["e1"], &[]).as_deref(), Some("e1 has no carrier (interface lan)"));
    assert_eq!(found(&["e3"], &[]).as_deref(), Some("e3 has no carrier (interface store)"));
}

#[test]
fn urgency_is_what_is_left() {
    let urgency = |without: &[&str]| -> Vec<(String, Severity)> {
        let all = ["e0", "e1", "e2", "e3", "trunk", "trunk.10"];
        let carriers = all.iter().map(|name| ((*name).to_owned(), carrier(without, name)));
        let dark = dark(&configuration(), &carriers.collect());
        dark.iter().map(CarrierLoss::fault).map(|fault| (fault.id, fault.severity)).collect()
    };
    assert_eq!(urgency(&["e1"]), [("link-lan-e1".to_owned(), Severity::Major)]);
    let both = urgency(&["e2", "e3"]);
    assert_eq!(both.len(), 2);
    assert!(both.iter().all(|(_, severity)| *severity == Severity::Critical));
}

#[test]
fn a_link_without_answers_is_named() {
    let mut carriers: Carriers = ["e0", "e1", "e2", "e3", "trunk", "trunk.10"]
        .map(|n| (n.to_owned(), Carrier::Works))
        .into();
    carriers.insert("e2".to_owned(), Carrier::Unanswered);
    let sentence = "e2 reaches none of the probed hosts (interface store)";
    assert_eq!(problem(&configuration(), &carriers).as_deref(), Some(sentence));
    let dark = dark(&configuration(), &carriers);
    assert_eq!(dark.iter().map(|one| one.left).collect::<Vec<_>>(), [1], "e3 is left");
}

#[test]
fn what_is_made_of_others_is_not_named_twice() {
    let all = "e0 has no carrier (interface lan); e1 has no carrier (interface lan)";
    assert_eq!(found(&["e0", "e1", "trunk", "trunk.10"], &[]).as_deref(), Some(all));
    let missing = "trunk.10 is missing (interface lan)";
    assert_eq!(found(&[], &["trunk.10"]).as_deref(), Some(missing));
}

#[test]
fn disabled_interfaces_have_no_problem() {
    let mut configuration = configuration();
    configuration.interfaces.values_mut().for_each(|interface| interface.enabled = false);
    assert_eq!(problem(&configuration, &Carriers::new()), None);
}
