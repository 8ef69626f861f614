//! Agents that observe, and those that do not.

use super::*;
use crate::agent::allow::Allowed;
use crate::client::Target;
use std::net::{IpAddr, TcpListener};

fn agent(observe: bool) -> Observing {
    let observing = || Allowed::observing(ObserveOptions::default());
    let allowed = if observe { observing() } else { Allowed::default() };
    Observing::new(&Origin::Tcp(allowed))
}

fn target(port: u16) -> ObservedTarget {
    let addresses = vec![IpAddr::from([127, 0, 0, 1])];
    ObservedTarget { addresses, port: Some(port), ..Default::default() }
}

#[test]
fn a_server_of_this_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut agent = agent(true);
    let FromAgent::Observing { server } = agent.observe(&target(port)) else { panic!("none") };
    assert_eq!(server.pids, [std::process::id()]);
    let FromAgent::Sample { sample: Some(sample) } = agent.sample() else { panic!("none") };
    assert!(sample.process.unwrap().seconds > 0.0);
    let observed = sample.observed.unwrap();
    assert_eq!(observed.family.unwrap().processes[0], std::process::id());
    // Another one at once: the last one that was asked for counts.
    drop(listener);
    assert!(matches!(agent.observe(&target(port)), FromAgent::Failed { .. }));
}

#[test]
fn only_the_owner_of_an_agent_makes_it_observe() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut agent = agent(false);
    let FromAgent::Failed { what } = agent.observe(&target(port)) else { panic!("it observes") };
    assert!(what.contains("--observe"), "{what}");
    assert_eq!(agent.sample(), FromAgent::Sample { sample: None });
}

#[test]
fn an_agent_that_observes_makes_no_load() {
    let allowed = Allowed::observing(ObserveOptions::default());
    for url in ["null:", "nfs3://192.0.2.1:1/x", "path:/tmp"] {
        let refused = allowed.grant(Target::parse(url).unwrap()).unwrap_err();
        assert!(refused.contains("only observes"), "{url}: {refused}");
    }
}
