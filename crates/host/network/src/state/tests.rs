//! Orders of links and addresses.

use super::*;

#[test]
fn links_come_after_what_they_are_made_of() {
    let mut state = State::default();
    let vlan = |on: &str| Kind::Vlan { on: on.to_owned(), id: 10 };
    let mode = Mode::active_backup(None);
    for (name, kind, controller) in [
        ("a.10", vlan("b"), None),
        ("b", Kind::Aggregation(mode), None),
        ("y", Kind::ethernet(), Some("b")),
        ("z", Kind::ethernet(), Some("b")),
    ] {
        let controller = controller.map(str::to_owned);
        let link = Link { kind, controller, ..Link::ethernet(1500, 9000) };
        state.links.insert(name.to_owned(), link);
    }
    assert_eq!(state.bottom_up(), ["y", "z", "b", "a.10"]);
    assert_eq!(state.ports("b").collect::<Vec<_>>(), ["y", "z"]);
    assert_eq!(state.made_on("b").collect::<Vec<_>>(), ["a.10"]);
}

#[test]
fn the_order_within_a_network_stays() {
    let address = |text: &str| Address::made(text.parse().expect("an address"));
    let mut state = State::default();
    let texts = ["10.2.0.9/24", "10.1.0.2/24", "2001:db8::2/64", "10.2.0.1/24", "2001:db8::1/64"];
    state.addresses.insert("a".to_owned(), texts.map(address).to_vec());
    state.normalise();
    let order = ["10.1.0.2/24", "10.2.0.9/24", "10.2.0.1/24", "2001:db8::1/64", "2001:db8::2/64"];
    assert_eq!(state.addresses("a"), order.map(address));
}

#[test]
fn a_change_of_the_timer_of_lacp_makes_an_aggregation_again() {
    let lacp = |policy, timer| Kind::Aggregation(Mode::Lacp { policy, timer });
    let slow = lacp(Policy::Layer2, Timer::Slow);
    assert!(slow.can_become(&lacp(Policy::Layer34, Timer::Slow)));
    assert!(!slow.can_become(&lacp(Policy::Layer2, Timer::Fast)));
    let backup = Kind::Aggregation(Mode::active_backup(None));
    assert!(!slow.can_become(&backup) && !backup.can_become(&slow));
    let other = Kind::Aggregation(Mode::active_backup(Some("a".to_owned())));
    assert!(backup.can_become(&other));
}
