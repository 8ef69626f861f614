//! Both ends in one process, over loopback.

use super::{Engine, Peer, Ports, Setup, Timing};
use crate::count::{ConnCount, Ended};
use crate::read::{Variables, read};
use crate::script::End;
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

fn setup(threads: u32, body: &str, end: End) -> Setup {
    let text = format!("<profile><group nthreads='{threads}'>{body}</group></profile>");
    let profile = read("p.xml", &text, &Variables::default()).expect("profile");
    Setup { profile, end, secret: [7; 16], seed: 1, bind: Some(HERE) }
}

/// One connection by TCP, this transaction, and its end.
fn over_tcp(options: &str, transaction: &str) -> String {
    format!(
        "<transaction><flowop type='connect' options='remotehost=a protocol=tcp {options}'/>\
         </transaction>{transaction}<transaction><flowop type='disconnect'/></transaction>"
    )
}

/// Both ends.
struct Pair {
    near: Engine,
    far: Engine,
    number: u32,
}

/// A transaction at both ends.
struct Both {
    near: Ended,
    far: Ended,
}

impl Pair {
    fn new(threads: u32, body: &str) -> Self {
        Self::with(threads, body, |ports| ports)
    }

    /// The near end reaches the far one at other ports.
    fn with(threads: u32, body: &str, at: impl FnOnce(Ports) -> Ports) -> Self {
        let near = Engine::new(&setup(threads, body, End::Near), now).expect("near");
        let far = Engine::new(&setup(threads, body, End::Far(0)), now).expect("far");
        near.meet(vec![Peer { host: 0, address: HERE, ports: at(far.ports()) }]);
        far.meet(vec![Peer { host: 0, address: HERE, ports: near.ports() }]);
        Self { near, far, number: 0 }
    }

    /// Runs the next transaction at both ends.
    fn next(&mut self) -> Both {
        self.next_late(0)
    }

    /// The same; the far end begins later by this time, ns.
    fn next_late(&mut self, late_ns: u64) -> Both {
        let begin_ns = now() + 1_000_000;
        let timing = Timing { transaction: self.number, begin_ns, window_ns: 50_000_000 };
        let late = Timing { begin_ns: begin_ns + late_ns, ..timing };
        self.number += 1;
        let Self { near, far, .. } = self;
        std::thread::scope(|scope| {
            let far = scope.spawn(|| far.run(&late, &mut || {}));
            let near = near.run(&timing, &mut || {});
            Both { near, far: far.join().expect("far") }
        })
    }

    /// What both ends have after they have received all.
    fn drain(&mut self, both: &Both) -> (Vec<ConnCount>, Vec<ConnCount>) {
        let near = self.near.drain(&both.far.counts);
        let far = self.far.drain(&both.near.counts);
        (sorted(near), sorted(far))
    }
}

fn sorted(mut counts: Vec<ConnCount>) -> Vec<ConnCount> {
    counts.sort_by_key(|count| count.key);
    counts
}

/// What one end sent is what the other one received, connection by connection.
fn assert_equal(near: &[ConnCount], far: &[ConnCount]) {
    let mirrored = |c: &ConnCount| ConnCount { sent: c.received, received: c.sent, ..*c };
    assert_eq!(near, far.iter().map(mirrored).collect::<Vec<_>>());
}

#[test]
fn streams_end_with_the_same_bytes_at_both_ends() {
    let body = over_tcp(
        "",
        "<transaction duration='300ms'><flowop type='write' options='size=64k'/></transaction>\
         <transaction iterations='5'><flowop type='write' options='size=64k'/></transaction>",
    );
    let mut pair = Pair::new(40, &body);
    let opened = pair.next();
    assert_eq!(opened.near.faults.count + opened.far.faults.count, 0, "{:?}", opened.near.faults);
    pair.drain(&opened);
    let ran = pair.next();
    assert_eq!(ran.near.windows.len(), 6, "{:?}", ran.near.windows);
    let (near, far) = pair.drain(&ran);
    // On a busy machine a thread may have no turn within the duration.
    assert!(near.iter().any(|count| count.sent > 0), "{near:?}");
    assert!(near.iter().all(|count| count.received == 0), "{near:?}");
    assert_equal(&near, &far);
    let counted = pair.next();
    let (near, far) = pair.drain(&counted);
    assert_equal(&near, &far);
    let sent: Vec<u64> = near.iter().map(|count| count.sent).collect();
    assert_eq!(sent, [5 * 65_536; 40]);
    let calls: u64 = counted.near.flowops.iter().map(|flowop| flowop.calls).sum();
    assert!(calls == 200 && counted.near.flowops[0].latency.len() == calls);
    pair.next();
    let accounts = pair.near.close();
    assert_eq!(accounts.len(), 40);
    assert!(accounts.iter().all(|(_, account)| account.segments_out > 0));
}

#[test]
fn an_end_that_begins_late_receives_all() {
    let body = over_tcp(
        "",
        "<transaction duration='400ms'><flowop type='write' options='size=64k'/></transaction>",
    );
    let mut pair = Pair::new(8, &body);
    let opened = pair.next_late(200_000_000);
    assert_eq!(opened.near.faults.count + opened.far.faults.count, 0, "{:?}", opened.far.faults);
    pair.drain(&opened);
    let ran = pair.next_late(300_000_000);
    assert!(ran.far.begun_ns >= ran.near.begun_ns + 250_000_000, "it began late");
    let (near, far) = pair.drain(&ran);
    assert!(near.iter().any(|count| count.sent > 0), "{near:?}");
    assert_equal(&near, &far);
}

#[test]
fn requests_replies_files_and_random_sizes_agree() {
    let body = over_tcp(
        "tcp_nodelay wndsz=64k",
        "<transaction iterations='50'><flowop type='read' options='size=64'/>\
         <flowop type='write' options='size=rand(1,9k) count=3'/>\
         <flowop type='sendfile' options='size=5000'/></transaction>",
    );
    let mut pair = Pair::new(3, &body);
    let opened = pair.next();
    pair.drain(&opened);
    let ran = pair.next();
    assert_eq!((ran.near.faults.count, ran.far.faults.count), (0, 0), "{:?}", ran.near.faults);
    let (near, far) = pair.drain(&ran);
    assert!(near.iter().all(|count| count.sent > 10_000 && count.received > 0), "{near:?}");
    assert_equal(&near, &far);
}

#[test]
fn the_peer_may_connect_and_datagrams_are_counted() {
    let body = "<transaction><flowop type='accept' options='remotehost=a protocol=udp'/>\
        </transaction><transaction iterations='50'>\
        <flowop type='write' options='size=512'/><flowop type='read' options='size=100'/>\
        </transaction><transaction><flowop type='disconnect'/></transaction>";
    let mut pair = Pair::new(2, body);
    let opened = pair.next();
    assert_eq!(opened.near.faults.count + opened.far.faults.count, 0, "{:?}", opened.far.faults);
    pair.drain(&opened);
    let ran = pair.next();
    let (near, far) = pair.drain(&ran);
    let bytes: Vec<_> = near.iter().map(|count| (count.sent, count.received)).collect();
    assert_eq!(bytes, [(25_600, 5_000); 2], "{:?} {:?}", ran.near.faults, ran.far.faults);
    assert_equal(&near, &far);
}

#[test]
fn connections_are_opened_and_closed_repeatedly() {
    let body = "<transaction iterations='20'>\
        <flowop type='connect' options='remotehost=a protocol=tcp'/>\
        <flowop type='write' options='size=1000'/><flowop type='disconnect'/></transaction>";
    let mut pair = Pair::new(2, body);
    let ran = pair.next();
    assert_eq!((ran.near.faults.count, ran.far.faults.count), (0, 0), "{:?}", ran.far.faults);
    let (near, far) = pair.drain(&ran);
    assert_eq!(near.iter().map(|count| count.sent).collect::<Vec<_>>(), [20_000; 2]);
    assert_equal(&near, &far);
    assert_eq!(pair.near.close()[0].1.connections, 20);
}

/// Forwards connections to a port; of the one with this number it drops what comes after this many
/// bytes, and then ends it.
fn forwarder(to: u16, planted: usize, after: usize) -> u16 {
    let listener = TcpListener::bind((HERE, 0)).expect("listener");
    let port = listener.local_addr().expect("address").port();
    std::thread::spawn(move || {
        for (number, near) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || {
                let mut far = TcpStream::connect((HERE, to)).expect("far");
                let (mut passed, mut buffer, mut near) = (0, vec![0; 16 << 10], near);
                while let Ok(read @ 1..) = near.read(&mut buffer) {
                    passed += read;
                    if number == planted && passed > after {
                        return;
                    }
                    if far.write_all(&buffer[..read]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn the_planted_loss_of_one_connection_is_named() {
    let body = over_tcp(
        "",
        "<transaction duration='200ms'><flowop type='write' options='size=8k'/></transaction>",
    );
    let mut pair =
        Pair::with(5, &body, |ports| Ports { tcp: forwarder(ports.tcp, 2, 100_000), ..ports });
    let opened = pair.next();
    pair.drain(&opened);
    let ran = pair.next();
    let (near, far) = pair.drain(&ran);
    let lost: Vec<u32> = near
        .iter()
        .filter(|n| far.iter().find(|f| f.key == n.key).map(|f| f.received) != Some(n.sent))
        .map(|n| n.key.thread)
        .collect();
    assert_eq!(lost.len(), 1, "{near:?} {far:?}");
    let faults = ran.far.faults.first.iter().chain(&ran.near.faults.first);
    let named: Vec<_> = faults.map(|fault| (fault.key.thread, fault.what.as_str())).collect();
    assert!(!named.is_empty() && named.iter().all(|(thread, _)| *thread == lost[0]), "{named:?}");
}

/// The first fault of the near end, and how long it took.
fn fault_of(pair: &mut Pair, transactions: usize) -> (String, Duration) {
    let begun = Instant::now();
    let faults: Vec<_> = (0..transactions).flat_map(|_| pair.next().near.faults.first).collect();
    (faults.first().map(|fault| fault.what.clone()).unwrap_or_default(), begun.elapsed())
}

#[test]
fn a_refused_connection_is_named() {
    let refused = TcpListener::bind((HERE, 0)).expect("port").local_addr().expect("address").port();
    let body = over_tcp("", "").replace("protocol=tcp", "protocol=tcp timeout=300ms");
    let mut pair = Pair::with(2, &body, |ports| Ports { tcp: refused, ..ports });
    let (what, took) = fault_of(&mut pair, 1);
    assert!(what.contains("refused") && what.starts_with("a at 127.0.0.1:"), "{what}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_reader_that_does_not_read_is_named() {
    // It accepts and never reads.
    let silent = TcpListener::bind((HERE, 0)).expect("listener");
    let port = silent.local_addr().expect("address").port();
    let write = "<transaction iterations='1000'>\
        <flowop type='write' options='size=1m timeout=300ms'/></transaction>";
    let body = over_tcp("timeout=300ms", write);
    let mut pair = Pair::with(1, &body, |ports| Ports { tcp: port, ..ports });
    let (what, took) = fault_of(&mut pair, 2);
    assert_eq!(what, "the other end read nothing within 300 ms");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn transactions_that_never_meet_end_in_time() {
    // Both ends receive first: the far end has its connection by another secret.
    let body = "<transaction>\
        <flowop type='accept' options='remotehost=a protocol=tcp timeout=300ms'/></transaction>";
    let near = Engine::new(&setup(1, body, End::Near), now).expect("near");
    let other = Setup { secret: [8; 16], ..setup(1, body, End::Far(0)) };
    let far = Engine::new(&other, now).expect("far");
    near.meet(Vec::new());
    far.meet(vec![Peer { host: 0, address: HERE, ports: near.ports() }]);
    let mut pair = Pair { near, far, number: 0 };
    let (what, took) = fault_of(&mut pair, 1);
    assert_eq!(what, "the other end did not connect within 300 ms");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

thread_local! {
    /// Time of [`own_clock`], and by how much each reading moves it, ns.
    static OWN: Cell<(u64, u64)> = const { Cell::new((0, 1_000_000)) };
}

/// A clock of each thread: a millisecond passes with each reading of it.
fn own_clock() -> u64 {
    OWN.with(|own| {
        let (now_ns, step_ns) = own.get();
        own.set((now_ns + step_ns, step_ns));
        now_ns + step_ns
    })
}

#[test]
fn a_transfer_reads_the_clock_once() {
    let write = "<transaction duration='300ms'><flowop type='write' options='size=1'/>\
        </transaction>";
    let body = over_tcp("", write);
    let mut near = Engine::new(&setup(3, &body, End::Near), own_clock).expect("near");
    let mut far = Engine::new(&setup(3, &body, End::Far(0)), now).expect("far");
    near.meet(vec![Peer { host: 0, address: HERE, ports: far.ports() }]);
    far.meet(vec![Peer { host: 0, address: HERE, ports: near.ports() }]);
    let timing = |transaction, begin_ns| Timing { transaction, begin_ns, window_ns: 50_000_000 };
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            for transaction in [0, 1] {
                far.run(&timing(transaction, now()), &mut || {});
            }
        });
        near.run(&timing(0, 0), &mut || {});
        near.run(&timing(1, 20_000_000), &mut || {})
    });
    assert_eq!(ended.faults.count, 0, "{:?}", ended.faults);
    let calls: Vec<u64> = ended.windows.iter().map(|sums| sums.calls).collect();
    // Of three threads: a millisecond for each reading, three of them before the first call.
    assert_eq!(calls, [141, 150, 150, 150, 150, 150]);
}

#[test]
fn windows_do_not_depend_on_when_they_are_collected() {
    let body = "<transaction duration='300ms'><flowop type='nop'/></transaction>";
    let timing = Timing { transaction: 0, begin_ns: 5_000_000, window_ns: 50_000_000 };
    // The thread that collects: in time, stopped until all have ended, and later than all.
    for clock in [(0, 1_000_000), (0, 0), (1 << 40, 0)] {
        OWN.set(clock);
        let mut near = Engine::new(&setup(3, body, End::Near), own_clock).expect("near");
        let ended = near.run(&timing, &mut || {});
        let calls: Vec<u64> = ended.windows.iter().map(|sums| sums.calls).collect();
        // Of three threads: one reading for each call, three before the first.
        assert_eq!(calls, [141, 150, 150, 150, 150, 150], "{clock:?}");
    }
}
