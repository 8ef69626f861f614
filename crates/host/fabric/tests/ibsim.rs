//! A simulated InfiniBand fabric (ibsim) with OpenSM: 4 switches and 60 adapters. The tools of
//! infiniband-diags are the reference. Part of `make test-long NAME=fabric`.
//!
//! ibsim replaces the umad device of a process by a preloaded library, so the monitor runs in a
//! process of its own: this program, started again.

#[path = "ibsim/bed.rs"]
mod bed;
#[path = "ibsim/machine.rs"]
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use base::clock::monotonic_ns;
use host_fabric::attribute::ERRORS;
use host_fabric::monitor::{Monitor, Report};
use host_fabric::umad::Umad;
use host_fabric::walk::PortId;
use process::{CHILD, Machine, OwnBed};

/// Names of the error counters at the console of ibsim, in the order of [`ERRORS`].
const CONSOLE: [&str; ERRORS.len()] = [
    "SymbolErrorCounter",
    "LinkErrorRecoveryCounter",
    "LinkDownedCounter",
    "PortRcvErrors",
    "PortRcvRemotePhysicalErrors",
    "PortRcvSwitchRelayErrors",
    "PortXmitDiscards",
    "PortXmitConstraintErrors",
    "PortRcvConstraintErrors",
    "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors",
    "VL15Dropped",
];
/// Processor time of a pass, in part of the interval.
const CPU_PART_MAX: f64 = 0.005;

/// The monitor on a machine of the fabric: a pass for each line of its input.
#[test]
fn machine() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut monitor = Monitor::new(Umad::open(0).expect("a simulated device"));
    let mut output = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        assert_eq!(line.expect("a line"), "pass");
        let before = cpu_us();
        let report = monitor.pass().expect("a pass");
        print(&mut output, &report, cpu_us() - before);
    }
}

fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    stat.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).expect("nanoseconds") / 1_000
}

fn print(output: &mut impl Write, report: &Report, cpu: u64) {
    let mut text = String::new();
    for (guid, node) in &report.fabric.nodes {
        let kind = u8::from(node.info.kind);
        text += &format!("| node {guid:x} {kind} {} {}\n", node.info.ports, node.description);
    }
    for ((a, m), (b, n)) in report.fabric.links() {
        text += &format!("| link {a:x} {m} {b:x} {n}\n");
    }
    for ((guid, number), port) in &report.fabric.ports {
        let (mut bytes, mut errors) = (String::from("-"), Vec::new());
        if let Some(counted) = report.counters.ports.get(&(*guid, *number)) {
            bytes = counted.totals.bytes[1].to_string();
            errors = counted.errors.iter().map(u32::to_string).collect();
        }
        let up = u8::from(port.is_linked());
        text += &format!("| port {guid:x} {number} {up} {bytes} {}\n", errors.join(","));
    }
    let pkeys: Vec<String> =
        report.fabric.pkeys.iter().map(|pkey| format!("{pkey:#06x}")).collect();
    text += &format!("| pkeys {}\n", pkeys.join(" "));
    for problem in &report.problems {
        text += &format!("| problem {}\n", problem.id);
    }
    let (walk, reading) = (report.walk.as_micros(), report.reading.as_micros());
    text += &format!("| time {walk} {reading} {cpu}\n| end\n");
    output.write_all(text.as_bytes()).expect("a pipe");
    output.flush().expect("a pipe");
}

/// A pass as the parent reads it.
#[derive(Debug, Default)]
pub struct Pass {
    nodes: BTreeMap<u64, (u8, u8, String)>,
    links: BTreeSet<(PortId, PortId)>,
    ports: BTreeMap<PortId, PortState>,
    pkeys: Vec<String>,
    problems: Vec<String>,
    walk: Duration,
    reading: Duration,
    cpu: Duration,
}

#[derive(Debug, Default, Clone)]
struct PortState {
    up: bool,
    bytes_out: u64,
    errors: Vec<u32>,
}

impl Pass {
    /// Enters a line; `false`: it was the last.
    pub fn enter(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        let hex = |n: usize| u64::from_str_radix(words[n], 16).expect("a GUID");
        let number = |n: usize| words[n].parse::<u64>().expect("a number");
        match words[0] {
            "node" => {
                let kind = (number(2) as u8, number(3) as u8, words[4].to_owned());
                self.nodes.insert(hex(1), kind);
            }
            "link" => {
                self.links.insert(((hex(1), number(2) as u8), (hex(3), number(4) as u8)));
            }
            "port" => {
                let errors = words[5].split(',').filter_map(|n| n.parse().ok()).collect();
                let bytes_out = words[4].parse().unwrap_or(0);
                let seen = PortState { up: words[3] == "1", bytes_out, errors };
                self.ports.insert((hex(1), number(2) as u8), seen);
            }
            "pkeys" => self.pkeys = words[1..].iter().map(|&word| word.to_owned()).collect(),
            "problem" => self.problems.push(words[1..].join(" ")),
            "time" => {
                [self.walk, self.reading, self.cpu] =
                    [1, 2, 3].map(|n| Duration::from_micros(number(n)));
            }
            _ => return false,
        }
        true
    }

    /// The node of this description.
    fn guid(&self, description: &str) -> u64 {
        let found = self.nodes.iter().find(|(_, (_, _, one))| one == description);
        *found.expect("a node of this description").0
    }
}

/// What `ibnetdiscover` prints: nodes and links.
fn discovered(text: &str) -> (BTreeSet<u64>, BTreeSet<(PortId, PortId)>) {
    let (mut nodes, mut links, mut node) = (BTreeSet::new(), BTreeSet::new(), 0);
    let guid = |word: &str| u64::from_str_radix(word, 16).expect("a GUID");
    for line in text.lines() {
        let quoted: Vec<&str> = line.split('"').collect();
        if line.starts_with("Switch") || line.starts_with("Ca") {
            node = guid(&quoted[1][2..]);
            nodes.insert(node);
        } else if let Some(rest) = line.strip_prefix('[') {
            let own = rest.split(']').next().and_then(|n| n.parse().ok()).expect("a port");
            let other = quoted[2].trim_start_matches('[').split(']').next();
            let other = other.and_then(|n| n.parse().ok()).expect("a port");
            let (a, b) = ((node, own), (guid(&quoted[1][2..]), other));
            links.insert((a.min(b), a.max(b)));
        }
    }
    (nodes, links)
}

#[test]
fn a_fabric_is_what_the_tools_show() {
    let Some(bed) = OwnBed::start("a_fabric_is_what_the_tools_show", 4, 60) else { return };
    let mut machine = Machine::start(&bed, "host1");
    let pass = machine.pass();
    let began = Instant::now();
    let text = bed.on("host1", &["ibnetdiscover"]);
    let tool = began.elapsed();
    let (nodes, links) = discovered(&text);
    assert_eq!(pass.nodes.keys().copied().collect::<BTreeSet<_>>(), nodes);
    assert_eq!(pass.links, links);
    assert_eq!((pass.nodes.len(), pass.links.len(), pass.ports.len()), (64, 66, 264));
    println!("walk {:?}, ibnetdiscover {tool:?}, reading {:?}", pass.walk, pass.reading);
    assert!(pass.walk < 2 * tool, "{:?}, ibnetdiscover {tool:?}", pass.walk);
    let again = machine.pass();
    assert!(!again.cpu.is_zero());
    let part = again.cpu.as_secs_f64() / 10.0;
    println!("processor time of a pass {:?}: {:.2} % of a core", again.cpu, 100.0 * part);
    assert!(part < CPU_PART_MAX, "{part}");
}

#[test]
fn counters_are_those_that_ibsim_has() {
    let Some(bed) = OwnBed::start("counters_are_those_that_ibsim_has", 2, 10) else { return };
    let mut machine = Machine::start(&bed, "host1");
    let first = machine.pass();
    let host = (first.guid("host7"), 1);
    for (n, name) in CONSOLE.iter().enumerate() {
        bed.console(&format!("PerformanceSet \"host7\"[1] PortCounters.{name}=9"));
        let pass = machine.pass();
        let mut expected = vec![0; ERRORS.len()];
        expected[n] = 9;
        assert_eq!(pass.ports[&host].errors, expected, "{name}");
        let growing = pass.problems.iter().any(|id| id.starts_with("fabric-symbol-errors"));
        assert_eq!(growing, n == 0, "{:?}", pass.problems);
    }
    bed.console("PerformanceSet \"host7\"[1] PortCountersExtended.PortXmitData=0");
    let before = machine.pass().ports[&host].bytes_out;
    bed.console("PerformanceSet \"host7\"[1] PortCountersExtended.PortXmitData=1000000");
    let bytes = machine.pass().ports[&host].bytes_out - before;
    // The datagrams of each pass are counted, too: 288 bytes for each reply of this port.
    assert!((4_000_000..4_100_000).contains(&bytes), "{bytes}");
}

#[test]
fn a_port_goes_down_and_comes_back() {
    let Some(bed) = OwnBed::start("a_port_goes_down_and_comes_back", 2, 10) else { return };
    let mut machine = Machine::start(&bed, "host1");
    let first = machine.pass();
    let (host, other) = ((first.guid("host7"), 1), (first.guid("host8"), 1));
    let switch = (first.guid("sw2"), 2);
    bed.console("PerformanceSet \"host7\"[1] PortCountersExtended.PortXmitData=0");
    let before = machine.pass();
    assert!(before.ports[&switch].up && before.links.contains(&(host, switch)));
    bed.console("PerformanceSet \"host7\"[1] PortCountersExtended.PortXmitData=5000");
    bed.console("Unlink \"host7\"[1]");
    let down = machine.pass();
    assert!(!down.ports[&switch].up && !down.nodes.contains_key(&host.0));
    assert!(
        down.ports[&other].up && down.ports[&other].bytes_out >= before.ports[&other].bytes_out
    );
    assert!(down.walk < Duration::from_secs(2), "{:?}", down.walk);
    bed.console("ReLink \"host7\"[1]");
    // It is counted as soon as the subnet manager has configured it.
    let back = machine.until("the port counts on", |pass| {
        pass.ports
            .get(&host)
            .is_some_and(|port| port.bytes_out >= before.ports[&host].bytes_out + 20_000)
    });
    assert!(back.ports[&switch].up);
}

#[test]
fn partitions_and_the_subnet_manager_come_and_go() {
    let Some(bed) = OwnBed::start("partitions_and_the_subnet_manager_come_and_go", 1, 4) else {
        return;
    };
    let mut machine = Machine::start(&bed, "host2");
    assert_eq!(machine.pass().pkeys, ["0xffff"]);
    let full = "Default=0x7fff, ipoib : ALL=full;\n";
    bed.partitions(&format!("{full}one=0x0001 : ALL=full;\n"));
    let began = monotonic_ns();
    machine.until("the P_Key appears", |pass| pass.pkeys.contains(&"0x8001".to_owned()));
    println!("0x8001 appeared after {} ms", (monotonic_ns() - began) / 1_000_000);
    let table = bed.on("host2", &["smpquery", "pkeys", "-D", "0"]);
    assert!(table.contains("0x8001"), "{table}");
    bed.partitions(full);
    machine.until("the P_Key is removed", |pass| !pass.pkeys.contains(&"0x8001".to_owned()));
    bed.stop_manager();
    let gone = machine.until("the manager is missed", |pass| !pass.problems.is_empty());
    assert_eq!(gone.problems, ["fabric-no-subnet-manager-host2:1"]);
}
