//! The fake does what Linux does; `tests/kernel.rs` runs the same lines on a Linux kernel.

use super::*;
use crate::state::{Address, Kind, Link, Mode};

fn kernel() -> Kernel {
    let mut state = State::default();
    for name in ["a", "b"] {
        state.links.insert(name.to_owned(), Link::ethernet(1500, 9000));
    }
    Kernel::new(state)
}

fn address(text: &str) -> Address {
    Address::made(text.parse().expect("an address"))
}

fn route(text: &str, gateway: &str, link: &str) -> Route {
    Route {
        destination: text.parse().expect("a network"),
        gateway: Some(gateway.parse().expect("an address")),
        link: link.to_owned(),
        metric: 0,
        source: None,
        protocol: crate::state::MARK,
    }
}

fn take(kernel: &mut Kernel, step: Step) {
    kernel.take(&step).unwrap_or_else(|e| panic!("{e}"));
}

fn set(kernel: &mut Kernel, link: &str, text: &str) {
    take(kernel, Step::SetAddress { link: link.to_owned(), address: address(text) });
}

#[test]
fn the_last_address_takes_the_routes_along() {
    let mut kernel = kernel();
    set(&mut kernel, "a", "10.0.0.1/24");
    take(&mut kernel, Step::SetRoute(route("10.9.0.0/16", "10.0.0.2", "a")));
    let address = address("10.0.0.1/24");
    take(&mut kernel, Step::RemoveAddress { link: "a".to_owned(), address });
    let state = kernel.observe().expect("a state");
    assert!(state.routes.is_empty() && state.addresses.is_empty(), "{state:?}");
    let again = Step::SetRoute(route("10.9.0.0/16", "10.0.0.2", "a"));
    assert!(kernel.take(&again).is_err(), "its gateway is not reached");
}

#[test]
fn a_primary_takes_its_secondary_addresses_along() {
    let mut kernel = kernel();
    for text in ["10.0.0.1/24", "10.0.0.2/24", "10.1.0.1/24"] {
        set(&mut kernel, "a", text);
    }
    let primary = address("10.0.0.1/24");
    take(&mut kernel, Step::RemoveAddress { link: "a".to_owned(), address: primary });
    assert_eq!(kernel.observe().expect("a state").addresses("a"), [address("10.1.0.1/24")]);
}

#[test]
fn down_flushes_routes_and_ipv6() {
    let mut kernel = kernel();
    set(&mut kernel, "a", "10.0.0.1/24");
    set(&mut kernel, "a", "2001:db8::1/64");
    take(&mut kernel, Step::SetRoute(route("10.9.0.0/16", "10.0.0.2", "a")));
    take(&mut kernel, Step::SetUp { link: "a".to_owned(), up: false });
    let state = kernel.observe().expect("a state");
    assert_eq!(state.addresses("a"), [address("10.0.0.1/24")]);
    assert!(state.routes.is_empty());
}

#[test]
fn a_vlan_follows_its_device() {
    let mut kernel = kernel();
    let kind = Kind::Vlan { on: "a".to_owned(), id: 10 };
    let create =
        |name: &str, mtu| Step::CreateLink { name: name.to_owned(), kind: kind.clone(), mtu };
    assert!(kernel.take(&create("a.10", 1501)).is_err(), "above the MTU of its device");
    take(&mut kernel, create("a.10", 1500));
    assert!(kernel.take(&create("v10", 1500)).is_err(), "the number is in use");
    take(&mut kernel, Step::SetMtu { link: "a".to_owned(), mtu: 1400 });
    assert_eq!(kernel.observe().expect("a state").links["a.10"].mtu, 1400);
    take(&mut kernel, Step::SetUp { link: "a".to_owned(), up: false });
    take(&mut kernel, Step::SetUp { link: "a".to_owned(), up: true });
    assert!(kernel.observe().expect("a state").links["a.10"].up);
    take(&mut kernel, Step::SetUp { link: "a".to_owned(), up: false });
    assert!(kernel.take(&Step::SetUp { link: "a.10".to_owned(), up: true }).is_err());
    take(&mut kernel, Step::DeleteLink("a".to_owned()));
    assert!(!kernel.observe().expect("a state").links.contains_key("a.10"));
}

#[test]
fn ports_are_attached_while_down_and_come_back_as_they_were() {
    let mut kernel = kernel();
    let kind = Kind::Aggregation(Mode::active_backup(None));
    take(&mut kernel, Step::CreateLink { name: "g".to_owned(), kind, mtu: 9000 });
    let attach = Step::Attach { port: "a".to_owned(), aggregation: "g".to_owned() };
    assert!(kernel.take(&attach).is_err(), "it is up");
    take(&mut kernel, Step::SetUp { link: "a".to_owned(), up: false });
    take(&mut kernel, attach);
    let state = kernel.observe().expect("a state");
    let port = &state.links["a"];
    assert_eq!((port.mtu, port.up, port.controller.as_deref()), (9000, true, Some("g")));
    let mode = Mode::active_backup(Some("a".to_owned()));
    take(&mut kernel, Step::SetMode { link: "g".to_owned(), mode: mode.clone() });
    assert_eq!(kernel.observe().expect("a state").links["g"].kind, Kind::Aggregation(mode));
    take(&mut kernel, Step::DeleteLink("g".to_owned()));
    let state = kernel.observe().expect("a state");
    let port = &state.links["a"];
    assert_eq!((port.mtu, port.up, port.controller.as_deref()), (1500, false, None));
}
