//! 10,000 connections of 240 clients: what looking at them costs, with a given clock, and that
//! retransmits by client are the machine's.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

use host::Root;
use host::connections::ConnectionSampler;
use host::counters::protocol_counter;
use probe::core::thread_cpu_ns;
use probe::sample::{Sample, Sampler};
use socket2::{Domain, Socket, Type};

use super::bed::{ADDRESSES, Bed, CLIENTS, DEADLINE, ends, line};

/// Connections that do nothing, and those that carry data: the port behind.
const PORT: u16 = 7800;
const IDLE: usize = 2_440;
const BUSY: usize = 60;
/// Seconds of the given clock.
const SECONDS: u64 = 120;
const NS: u64 = 1_000_000_000;
/// The part of a core that it may cost.
const COST: f64 = 0.01;

/// As many descriptors as this process may have.
fn raise_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: one valid structure, read and written by these calls only.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
}

fn retransmits() -> u64 {
    let text = Root::default().read("proc/net/snmp").expect("counters");
    protocol_counter(&text, "Tcp", "RetransSegs").expect("a counter")
}

/// Accepts all connections, then looks at them while some carry data.
pub fn server() {
    raise_descriptors();
    let [idle, busy] = [0, 1].map(|n| TcpListener::bind(("0.0.0.0", PORT + n)).expect("the port"));
    println!("ready:");
    let accept = |listener: &TcpListener| listener.accept().expect("a client").0;
    let _idle: Vec<TcpStream> = (0..IDLE * CLIENTS).map(|_| accept(&idle)).collect();
    let busy: Vec<TcpStream> = (0..BUSY * CLIENTS).map(|_| accept(&busy)).collect();
    let before = retransmits();
    let mut sampler = ConnectionSampler::new(Root::default());
    sampler.begin(0);
    let end = AtomicBool::new(false);
    let write = |mut stream: TcpStream| {
        while !end.load(Ordering::Relaxed) {
            stream.write_all(&[7; 65_536]).expect("written");
        }
        stream.shutdown(std::net::Shutdown::Write).expect("its end");
        stream.read_exact(&mut [0]).expect("the client has everything");
        stream
    };
    let mut used_ns = 0;
    let mut events = 0.0;
    let mut second = |n: u64, sampler: &mut ConnectionSampler| {
        let before = thread_cpu_ns();
        let samples = sampler.sample(n * NS);
        used_ns += thread_cpu_ns() - before;
        let one = |stat: &str| samples.iter().find(|s| s.stat == stat);
        events += one("tcp.retransmits").map_or(0.0, rows);
        one("tcp.connections").map_or(0.0, |s| s.total)
    };
    let mut seen = 0.0;
    let open: Vec<TcpStream> = std::thread::scope(|scope| {
        let all: Vec<_> = busy.into_iter().map(|s| scope.spawn(|| write(s))).collect();
        for n in 1..=SECONDS {
            seen = second(n, &mut sampler);
        }
        end.store(true, Ordering::Relaxed);
        all.into_iter().map(|one| one.join().expect("written")).collect()
    });
    // Until what the last look has seen is spread.
    let last = SECONDS + 3 * u64::from(sampler.interval());
    for n in SECONDS + 1..=last {
        let _connections = second(n, &mut sampler);
    }
    let machine = retransmits() - before;
    let (interval, cost) = (sampler.interval(), used_ns as f64 / (last * NS) as f64);
    println!("result: {seen} {interval} {cost} {events} {machine}");
    drop(open);
}

fn rows(sample: &Sample) -> f64 {
    sample.rows.iter().map(|row| row.2).sum()
}

/// Connects from all of its addresses; reads what comes until the end.
pub fn client(role: &str) {
    raise_descriptors();
    let number: usize = role.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    let connect = |n: usize, port: u16| {
        let last = 15 + (number - 1) * ADDRESSES + n % ADDRESSES;
        let from = SocketAddr::from((Ipv4Addr::new(10, 77, 0, last as u8), 0));
        let to = SocketAddr::from((Ipv4Addr::new(10, 77, 0, 1), port));
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&from.into()).expect("an address");
        socket.connect(&to.into()).expect("the server");
        TcpStream::from(socket)
    };
    let _idle: Vec<TcpStream> = (0..IDLE).map(|n| connect(n, PORT)).collect();
    let busy: Vec<TcpStream> = (0..BUSY).map(|n| connect(n, PORT + 1)).collect();
    let read = |mut stream: TcpStream| {
        let mut room = vec![0; 65_536];
        while stream.read(&mut room).is_ok_and(|n| n > 0) {}
        let _ = stream.write_all(&[1]);
        stream
    };
    let _open: Vec<TcpStream> = std::thread::scope(|scope| {
        let all: Vec<_> = busy.into_iter().map(|s| scope.spawn(move || read(s))).collect();
        all.into_iter().map(|one| one.join().expect("read")).collect()
    });
    // Open until the server has looked at them for the last time.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
#[ignore = "long: make test-long NAME=segments"]
fn ten_thousand_connections_cost_a_hundredth_of_a_core() {
    let bed = Bed::new();
    bed.control("cubic");
    bed.more_addresses();
    let mut server = bed.start("S", "many server");
    let mut out = BufReader::new(server.stdout.take().expect("its output"));
    line(&mut out, "ready:");
    let role = |i: usize| bed.start(&format!("C{i}"), &format!("many client {i}"));
    let clients: Vec<Child> = (1..=CLIENTS).map(role).collect();
    let result = line(&mut out, "result: ");
    assert!(ends(&mut server, DEADLINE), "the server does not end");
    for mut client in clients {
        drop(client.stdin.take());
        assert!(ends(&mut client, DEADLINE), "a client does not end");
    }
    let figures: Vec<f64> = result.split(' ').filter_map(|n| n.parse().ok()).collect();
    let [seen, interval, cost, by_client, machine] = figures[..] else { panic!("{result}") };
    println!(
        "{seen} connections: interval {interval} s, {:.2} % of a core; retransmits {by_client:.0} \
         by client, {machine} by the machine",
        100.0 * cost
    );
    assert_eq!(seen as usize, (IDLE + BUSY) * CLIENTS);
    assert!(interval > 1.0 && cost <= COST, "{result}");
    assert!(machine > 0.0 && (by_client - machine).abs() <= 0.01 * machine, "{result}");
}
