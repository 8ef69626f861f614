//! The states of a service, each with the ways that lead out of it.

use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::AtomicUsize;

use base::protocol::Service as Row;
use serve::transport::budget::Limits;

use super::*;

/// Keeps its sockets until it is drained.
struct Fake {
    ports: Vec<Port>,
    budgets: Arc<Budgets>,
    /// Whether all requests are answered when it is drained.
    answers: bool,
    running: Arc<AtomicUsize>,
    starts: AtomicUsize,
    fails: AtomicBool,
}

impl Service for Fake {
    fn id(&self) -> Row {
        Row::Ftp
    }

    fn set(&self, _document: &Document) {}

    fn ports(&self) -> Vec<Port> {
        self.ports.clone()
    }

    fn access(&self, _instance: &Instance, _share: &str) -> Vec<Access> {
        Vec::new()
    }

    fn tls(&self) -> Option<&Arc<Tls>> {
        None
    }

    fn budgets(&self) -> &Arc<Budgets> {
        &self.budgets
    }

    fn start(&self, sockets: Vec<(TcpListener, Port)>) -> Result<Drain, Failure> {
        if self.fails.load(Relaxed) {
            return Err(Failure::new("start it", "it does not want to", ""));
        }
        self.starts.fetch_add(1, Relaxed);
        self.running.fetch_add(1, Relaxed);
        let (running, answers) = (self.running.clone(), self.answers);
        Ok(Box::new(move || {
            drop(sockets);
            running.fetch_sub(1, Relaxed);
            Ok(answers)
        }))
    }
}

/// Ports that are free, according to the kernel.
fn free_ports<const N: usize>() -> [Port; N] {
    let sockets = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
    sockets.map(|socket| Port { name: "test", number: socket.local_addr().expect("bound").port() })
}

fn fake(ports: &[Port], answers: bool) -> (Arc<Fake>, Instance) {
    let fake = Arc::new(Fake {
        ports: ports.to_vec(),
        budgets: Arc::new(Budgets::new(Limits::default())),
        answers,
        running: Arc::default(),
        starts: AtomicUsize::new(0),
        fails: AtomicBool::new(false),
    });
    let at = (IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    (fake.clone(), Instance::offline(fake, at))
}

fn connects(port: Port) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port.number)).is_ok()
}

#[test]
fn it_is_online_at_all_of_its_ports_until_it_is_stopped() {
    let ports = free_ports::<2>();
    let (fake, instance) = fake(&ports, true);
    assert_eq!(instance.condition(), Condition::Offline);
    instance.start().expect("started");
    let Condition::Online(_, at) = instance.condition() else { panic!("online") };
    assert_eq!(at.iter().map(SocketAddr::port).collect::<Vec<_>>(), ports.map(|p| p.number));
    assert!(ports.into_iter().all(connects));
    instance.start().expect("it runs already");
    assert_eq!(fake.starts.load(Relaxed), 1);
    instance.stop(Condition::Offline);
    assert_eq!((instance.condition(), instance.was_cut()), (Condition::Offline, false));
    assert_eq!(fake.running.load(Relaxed), 0);
    assert!(!ports.into_iter().any(connects));
}

#[test]
fn one_port_that_is_taken_is_maintenance_and_leaves_the_others_free() {
    let [first, taken] = free_ports::<2>();
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, taken.number)).expect("free");
    let (fake, instance) = fake(&[first, taken], true);
    let why = instance.start().expect_err("taken").why().to_owned();
    assert!(why.contains("in use by another program"), "{why}");
    assert_eq!(instance.condition(), Condition::Maintenance(why));
    assert!(!connects(first), "all of its ports, or none");
    drop(other);
    instance.restart().expect("tried again");
    assert_eq!((instance.condition().name(), fake.starts.load(Relaxed)), ("online", 1));
    instance.stop(Condition::Offline);
}

#[test]
fn one_that_fails_to_start_again_is_in_maintenance() {
    let (fake, instance) = fake(&free_ports::<1>(), true);
    instance.start().expect("started");
    fake.fails.store(true, Relaxed);
    instance.restart().expect_err("it does not want to");
    assert_eq!(instance.condition(), Condition::Maintenance("it does not want to".to_owned()));
    assert_eq!(fake.running.load(Relaxed), 0, "it was drained first");
}

#[test]
fn one_that_is_disabled_is_started_and_not_restarted() {
    let (_, instance) = fake(&free_ports::<1>(), true);
    instance.start().expect("started");
    instance.stop(Condition::Disabled("disabled by ann".to_owned()));
    let refused = instance.restart().expect_err("disabled");
    assert_eq!(refused.why(), "it is disabled by ann");
    assert_eq!(instance.condition().name(), "disabled");
    instance.start().expect("enabled");
    assert_eq!(instance.condition().reason(), None);
    instance.stop(Condition::Offline);
}

#[test]
fn it_is_known_that_requests_were_left_unanswered() {
    let (_, instance) = fake(&free_ports::<1>(), false);
    instance.start().expect("started");
    instance.stop(Condition::Offline);
    assert!(instance.was_cut());
    instance.start().expect("started");
    assert!(instance.was_cut(), "of the last time that it stopped");
    instance.stop(Condition::Offline);
}
