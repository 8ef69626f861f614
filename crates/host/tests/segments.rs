//! Our counts of segments against bpftrace's and the counters of IP, in one run: a server and four
//! clients in namespaces of their own, each client behind a shaper of 100 Mbit/s, cubic on the
//! route. Long: `make test-long NAME=segments`, as root, with `ip`, `tc` and bpftrace.
//!
//! The processes of a bed are this program again, with `PLIMSOLL_TEST_BED` set: the server with
//! the observer, and clients that request a load and read the data.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::time::{Duration, Instant};

use host::Root;
use host::connections::ConnectionSampler;
use host::segments::fallback::Sent;
use host::segments::{Context, Count, Observer};
use probe::sample::Sampler;

use bed::{Bed, CLIENTS, DEADLINE, ROLE, ends, line};
use other::{Counts, Other};

#[path = "segments/bed.rs"]
mod bed;
#[path = "segments/many.rs"]
mod many;
#[path = "segments/other.rs"]
mod other;

const PORT: u16 = 7700;

/// A load: bytes of a write, whether each waits for a request, clients, connections of each, and
/// the congestion control.
struct Load {
    name: &'static str,
    write: usize,
    requests: bool,
    clients: usize,
    connections: usize,
    control: &'static str,
}

/// Streams of one connection for each client.
const STREAM: Load = Load {
    name: "stream 64K",
    write: 65_536,
    requests: false,
    clients: CLIENTS,
    connections: 1,
    control: "cubic",
};
const REQUEST: Load = Load { name: "request 64K", requests: true, ..STREAM };

/// The five examples of docs/howto/segments.md, and the first with BBR.
const LOADS: [Load; 6] = [
    STREAM,
    REQUEST,
    Load { name: "request 64K, 1", clients: 1, ..REQUEST },
    Load { name: "stream 1K", write: 1024, ..STREAM },
    Load { name: "400 connections", connections: 100, ..STREAM },
    Load { name: "stream 64K, BBR", control: "bbr", ..STREAM },
];
const SECONDS: u64 = 4;

#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("server") => server(),
        Ok("many server") => many::server(),
        Ok(role) if role.starts_with("many client ") => many::client(role),
        Ok(load) => client(load),
        Err(_) => {}
    }
}

/// Serves one load: `WRITE REQUESTS CONNECTIONS`, all connections of all clients, for a time.
fn server() {
    let observer = Observer::start(&Root::default()).expect("all rights");
    let listener = TcpListener::bind(("0.0.0.0", PORT)).expect("the port");
    println!("ready:");
    let mut load = String::new();
    std::io::stdin().read_line(&mut load).expect("a load");
    let mut words = load.split_whitespace();
    let mut number = || words.next().and_then(|w| w.parse::<usize>().ok()).expect("a number");
    let (write, requests, connections) = (number(), number() == 1, number());
    let before = Sent::read(&Root::default());
    let all: Vec<TcpStream> =
        (0..connections).map(|_| listener.accept().expect("a client").0).collect();
    let end = Instant::now() + Duration::from_secs(SECONDS);
    let mut connections = Connections::begin();
    let serve = |mut stream: TcpStream| {
        let (bytes, mut request) = (vec![7; write], [0; 64]);
        while Instant::now() < end {
            if requests {
                stream.read_exact(&mut request).expect("a request");
            }
            stream.write_all(&bytes).expect("written");
        }
        stream.shutdown(std::net::Shutdown::Write).expect("its end");
        // Until the client has everything.
        stream.read_exact(&mut [0]).expect("an answer");
        stream
    };
    let open: Vec<TcpStream> = std::thread::scope(|scope| {
        let all: Vec<_> = all.into_iter().map(|stream| scope.spawn(|| serve(stream))).collect();
        all.into_iter().map(|one| one.join().expect("served")).collect()
    });
    println!("retransmits: {}", connections.end("tcp.retransmits", "snmp", "Tcp", "RetransSegs"));
    let mean = Sent::read(&Root::default()).mean_since(before).unwrap_or_default();
    let mut contexts = [Count::default(); Context::ALL.len()];
    for (key, count) in observer.counts().expect("counts") {
        let n = Context::ALL.iter().position(|c| *c == key.context).unwrap_or_default();
        contexts[n] = contexts[n].plus(count);
    }
    let text = |n: &Count| format!("{} {} {}", n.segments, n.bytes, n.squares);
    let all: Vec<String> = contexts.iter().map(text).collect();
    println!("counts: {mean} {}", all.join(" "));
    drop(open);
}

/// What the sampler of connections gives between two looks, and the counter of the namespace.
struct Connections(ConnectionSampler);

impl Connections {
    fn begin() -> Self {
        let mut sampler = ConnectionSampler::new(Root::default());
        sampler.sample(1);
        Self(sampler)
    }

    /// The sum over clients, and the counter: it began at nothing with the namespace.
    fn end(&mut self, stat: &str, file: &str, group: &str, name: &str) -> String {
        // The seconds that the sampler waits for.
        for _ in 1..self.0.interval() {
            self.0.sample(1);
        }
        let samples = self.0.sample(1_000_000_001);
        let rows = samples.iter().filter(|s| s.stat == stat).flat_map(|s| &s.rows);
        let sum: f64 = rows.map(|row| row.2).sum();
        let sum = (sum * f64::from(self.0.interval())).abs();
        let text = Root::default().read(&format!("proc/net/{file}")).expect("counters");
        let counter = host::counters::protocol_counter(&text, group, name).unwrap_or_default();
        format!("{sum:.0} {counter}")
    }
}

fn client(load: &str) {
    let mut words = load.split_whitespace();
    let mut number = || words.next().and_then(|w| w.parse::<usize>().ok()).expect("a number");
    let (write, requests, connections) = (number(), number() == 1, number());
    let read = || {
        let mut stream = TcpStream::connect(("10.77.0.1", PORT)).expect("the server");
        let mut room = vec![0; write];
        loop {
            if requests && stream.write_all(&[1; 64]).is_err() {
                break;
            }
            let got = match requests {
                true => stream.read_exact(&mut room).map(|()| write),
                false => stream.read(&mut room),
            };
            if !matches!(got, Ok(n) if n > 0) {
                break;
            }
        }
        let _ = stream.write_all(&[1]);
        stream
    };
    let open: Vec<TcpStream> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..connections).map(|_| scope.spawn(read)).collect();
        all.into_iter().map(|one| one.join().expect("read")).collect()
    });
    // Open until the server has looked at its ends.
    let _ = std::io::stdin().read(&mut [0]);
    drop(open);
}

/// Means of a load: plain, by bytes; and the share of the pacing timer.
struct SegmentMeans {
    mean: f64,
    by_bytes: f64,
    pacing: f64,
}

fn run(load: &Load) -> SegmentMeans {
    let bed = Bed::new();
    bed.control(load.control);
    let mut server = bed.start("S", "server");
    let mut out = BufReader::new(server.stdout.take().expect("its output"));
    line(&mut out, "ready:");
    let other = Other::start();
    let order =
        |connections: usize| format!("{} {} {connections}", load.write, u8::from(load.requests));
    let mut input = server.stdin.take().expect("its input");
    writeln!(input, "{}", order(load.connections * load.clients)).expect("asked");
    let clients: Vec<Child> =
        (1..=load.clients).map(|i| bed.start(&format!("C{i}"), &order(load.connections))).collect();
    let retransmits = line(&mut out, "retransmits: ");
    let counts = line(&mut out, "counts: ");
    server.wait().expect("its end");
    for mut client in clients {
        drop(client.stdin.take());
        assert!(ends(&mut client, DEADLINE), "a client does not end");
    }
    let (by_client, counter) = retransmits.split_once(' ').expect("two numbers");
    println!("{:15} retransmits: {by_client} by client, {counter} by the machine", load.name);
    let [by_client, counter] = [by_client, counter].map(|n| n.parse::<f64>().expect("a number"));
    assert!((by_client - counter).abs() <= 0.01 * counter, "{}: retransmits", load.name);
    compare(load, &counts, &other.stop())
}

fn compare(load: &Load, counts: &str, other: &Counts) -> SegmentMeans {
    let n: Vec<f64> = counts.split_whitespace().filter_map(|w| w.parse().ok()).collect();
    let (ip, ours) = (n[0], n[1..].chunks(3).collect::<Vec<_>>());
    let sum = |at: usize| ours.iter().map(|c| c[at]).sum::<f64>();
    let (segments, bytes, squares) = (sum(0), sum(1), sum(2));
    let theirs: (u64, u64) = other.iter().fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let (mean, by_bytes) = (bytes / segments, squares / bytes);
    println!(
        "{:15} segments {segments}, bpftrace {}; bytes {bytes}, bpftrace {}; mean {mean:.0}, by \
         bytes {by_bytes:.0}, IP counters {ip:.0}",
        load.name, theirs.0, theirs.1
    );
    let share = |part: f64, all: f64| 100.0 * part / all;
    let mut pacing = 0.0;
    let mut failed = Vec::new();
    for (at, context) in Context::ALL.into_iter().enumerate() {
        let own = share(ours[at][0], segments);
        let its = share(other[at].0 as f64, theirs.0 as f64);
        if own > 0.05 || its > 0.05 {
            println!("    {:22} {own:5.1} %, bpftrace {its:5.1} %", context.name());
        }
        if (own - its).abs() > 2.5 {
            failed.push(format!("share of {}: {own} and {its}", context.name()));
        }
        if context == Context::Pacing {
            pacing = own;
        }
    }
    let apart = |a: f64, b: f64| (a - b).abs() / b;
    let limits = [
        ("segments", apart(segments, theirs.0 as f64), 0.02),
        ("bytes", apart(bytes, theirs.1 as f64), 0.02),
        ("mean and IP counters", apart(mean, ip), 0.03),
    ];
    let over = limits.into_iter().filter(|(_, is, most)| is > most);
    failed.extend(over.map(|(what, is, most)| format!("{what}: {is} apart, at most {most}")));
    assert!(failed.is_empty(), "{}: {failed:?}", load.name);
    SegmentMeans { mean, by_bytes, pacing }
}

#[test]
#[ignore = "long: make test-long NAME=segments"]
fn our_counts_are_those_of_bpftrace_and_of_ip() {
    let [stream, request, single, small, many, paced] = LOADS.map(|load| run(&load));
    assert!(stream.by_bytes < request.by_bytes, "by bytes: streams below requests");
    assert!(many.mean < small.mean, "400 connections below streams of 1 KiB");
    assert!(small.mean < stream.mean, "streams of 1 KiB below those of 64 KiB");
    assert!(
        request.mean < stream.mean,
        "a reply of 64 KiB is a segment of 65,160 bytes and a rest"
    );
    assert!(single.by_bytes >= 0.99 * request.by_bytes, "one client: no smaller than four");
    assert!(paced.pacing > 5.0, "the pacing timer is a context of its own: {} %", paced.pacing);
}
