//! DHCP clients of the helper against busybox's udhcpd over a pair of links between namespaces:
//! lease, renewal, rebinding by another server, the end of a lease, refusals, and what starts and
//! stops them. What counts is what iproute2 shows.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use e2e::api::wait_for;
use e2e::netns::{self, Namespace};
use e2e::process;
use e2e::scratch::Scratch;
use e2e::{has, is_root, skip};
use host_helper::dhcp;
use host_helper::files::Folder;
use host_network::backend::{Backend, reach};
use host_network::dhcp::{Holding, Phase};
use host_network::linux::{Files, Linux};
use host_network::step::Step;

/// Seconds of a lease: renewed after half of it, asked for elsewhere after seven eighths.
const LEASE_S: u64 = 24;
/// Seconds of a lease that does not end while a test runs.
const DAY_S: u64 = 86_400;
/// How long is waited for what takes a lease.
const LONG: Duration = e2e::patience(2 * LEASE_S);
/// How long a server of the test waits for a request.
const REQUEST: Duration = Duration::from_secs(120);

struct Bed {
    scratch: Scratch,
    /// The namespace of the server.
    other: Namespace,
    folder: Folder,
    files: Files,
    linux: Linux,
}

/// A server; it ends with this value, and writes its leases.
struct Udhcpd(Child);

impl Drop for Udhcpd {
    fn drop(&mut self) {
        // SAFETY: the process of a child that was not waited for.
        let _ = unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

fn ip(words: &str) -> String {
    let output = process::run(Command::new("ip").args(words.split(' ')), process::DEADLINE);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Bed {
    fn new() -> Self {
        let other = Namespace::with("set -e\nip link set lo up\n").expect("a namespace");
        let lines = "set -e\nip link set lo up\nip link add e0 type veth peer name p0\n\
                     ip link set e0 up\nip addr add 192.0.2.1/24 dev e0\n";
        netns::isolate(lines).expect("a namespace");
        ip(&format!("link set p0 netns {}", other.pid()));
        let scratch = Scratch::new("helper-dhcp");
        let folder = Folder::open(&scratch.path().join("host")).expect("a folder");
        let files = Files {
            run: scratch.path().join("run"),
            resolv_conf: scratch.path().join("resolv.conf"),
            dhcp: Some(folder.dhcp()),
        };
        dhcp::start(folder.clone(), files.clone()).expect("DHCP");
        let linux = Linux::open(files.clone()).expect("netlink");
        let bed = Self { scratch, other, folder, files, linux };
        bed.there("ip link set p0 up");
        let has_carrier = || ip("link show dev e0").contains(" state UP ").then_some(());
        wait_for("a carrier", LONG, has_carrier);
        bed
    }

    fn there(&self, line: &str) {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        self.other.enter(&mut command);
        assert!(command.status().expect("a shell").success(), "{line}");
    }

    /// A server at this address, that gives addresses from this one on.
    fn serve(&self, at: &str, first: u8, (leases, seconds): (&Path, u64)) -> Udhcpd {
        self.there(&format!("ip addr flush dev p0; ip link set p0 up; ip addr add {at}/24 dev p0"));
        let pid = self.scratch.path().join("pid");
        let last = first + 9;
        let text = format!(
            "start 10.0.0.{first}\nend 10.0.0.{last}\ninterface p0\nmax_leases 10\nmin_lease 5\n\
             lease_file {}\npidfile {}\noption subnet 255.255.255.0\noption router 10.0.0.1\n\
             option dns 10.0.0.53\noption domain a.example\noption mtu 1400\n\
             option lease {seconds}\n",
            leases.display(),
            pid.display()
        );
        let file = self.scratch.path().join(format!("udhcpd-{first}-{at}"));
        std::fs::write(&file, text).expect("a file");
        if !leases.exists() {
            std::fs::write(leases, "").expect("a file");
        }
        let mut command = Command::new("busybox");
        command.args(["udhcpd", "-f"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        self.other.enter(&mut command);
        Udhcpd(command.spawn().expect("udhcpd"))
    }

    fn leases(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn entry(&self) -> Holding {
        self.folder.dhcp().read("e0").expect("DHCP is on")
    }

    fn names(&self) -> String {
        std::fs::read_to_string(&self.files.resolv_conf).unwrap_or_default()
    }

    fn set(&mut self, on: bool) {
        self.linux.take(&Step::SetDhcp { link: "e0".to_owned(), on }).expect("a step");
    }

    fn wait(&self, what: &str, limit: Duration, is: impl Fn(&Holding) -> bool) -> Holding {
        let entry = wait_for(what, limit, || Some(self.entry()).filter(|entry| is(entry)));
        // It is on disk first: the kernel has it when the lock is free.
        drop(self.folder.lock().expect("the lock"));
        entry
    }
}

fn now_s() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("a clock").as_secs()
}

fn address(entry: &Holding) -> String {
    entry.lease.as_ref().map(|lease| lease.cidr.to_string()).unwrap_or_default()
}

/// Refuses the first renewal that comes to this address, as a server does that has forgotten the
/// lease; udhcpd is silent then.
fn refuse_one(there: &Namespace, at: &str) -> thread::JoinHandle<()> {
    let at: Ipv4Addr = at.parse().expect("an address");
    let serve = move || {
        let socket = UdpSocket::bind((at, 67)).expect("a socket");
        socket.set_read_timeout(Some(REQUEST)).expect("a limit");
        let mut bytes = [0; 1500];
        let (length, client) = socket.recv_from(&mut bytes).expect("a request");
        let request = &mut bytes[..length];
        // DHCPREQUEST with its address, but neither the option for an address nor for a server.
        assert_eq!(request[240..243], [53, 1, 3]);
        assert_eq!(IpAddr::from(<[u8; 4]>::try_from(&request[12..16]).expect("4")), client.ip());
        assert!(!request[243..].windows(2).any(|two| two == [50, 4] || two == [54, 4]));
        request[0] = 2;
        request[12..16].fill(0);
        request[240..].fill(0);
        request[240..243].copy_from_slice(&[53, 1, 6]);
        request[243..245].copy_from_slice(&[54, 4]);
        request[245..249].copy_from_slice(&at.octets());
        request[249] = 255;
        socket.send_to(request, client).expect("sent");
    };
    there.spawn(serve)
}

#[test]
fn leases_from_their_start_to_their_end() {
    if !is_root() || !has("ip") || !has("unshare") || !has("busybox") {
        skip!("helper-dhcp-times", "needs root, ip, unshare and busybox");
    }
    let mut bed = Bed::new();
    let before = (ip("-4 addr show dev e0"), ip("-4 route"));
    let leases = bed.leases("leases");
    let server = bed.serve("10.0.0.1", 10, (&leases, LEASE_S));
    bed.set(true);
    let first = bed.wait("a lease", LONG, |entry| entry.phase == Phase::Bound);

    // Renewal, by the same server.
    let given = |entry: &Holding| entry.lease.as_ref().map_or(0, |lease| lease.obtained);
    let renewed = bed.wait("a renewal", LONG, |entry| given(entry) > given(&first));
    assert_eq!((address(&renewed), renewed.since), (address(&first), first.since));

    // Another server, which knows the lease, extends it when all are asked.
    drop(server);
    let server = bed.serve("10.0.0.2", 10, (&leases, LEASE_S));
    let rebound = bed.wait("an extension", LONG, |entry| given(entry) > given(&renewed));
    assert_eq!((address(&rebound), rebound.since), (address(&first), first.since));
    let by = rebound.lease.as_ref().map(|lease| lease.server.to_string());
    assert_eq!(by.as_deref(), Some("10.0.0.2"), "{rebound:?}");
    let waited = given(&rebound) - given(&renewed);
    assert!(waited >= LEASE_S * 3 / 4, "{waited} s: by a request to all, not to its server");

    // It refuses the lease at a renewal: another one is searched for, of another server.
    drop(server);
    let refusing = refuse_one(&bed.other, "10.0.0.2");
    let refused = bed.wait("the end of the lease", LONG, |entry| entry.lease.is_none());
    refusing.join().expect("a request as it has to be");
    assert!(refused.since - given(&rebound) < LEASE_S * 3 / 4, "at the renewal");
    assert_eq!((ip("-4 addr show dev e0"), ip("-4 route")), before);
    let server = bed.serve("10.0.0.1", 40, (&bed.leases("others"), LEASE_S));
    let second = bed.wait("a lease", LONG, |entry| entry.phase == Phase::Bound);
    assert!(address(&second).starts_with("10.0.0.4"), "{second:?}");

    // No server: the lease ends, and its address with it.
    drop(server);
    bed.there("ip addr flush dev p0");
    let rebinding = bed.wait("the last attempt", LONG, |entry| entry.phase == Phase::Rebinding);
    let problem = rebinding.problem(now_s()).expect("a problem");
    assert!(problem.contains("does not answer") || problem.contains("no address"), "{problem}");
    let lost = bed.wait("the end of the lease", LONG, |entry| entry.lease.is_none());
    assert!(lost.problem(now_s()).expect("a problem").contains("no server answers"));
    assert_eq!((ip("-4 addr show dev e0"), ip("-4 route")), before);
    assert_eq!(bed.names(), "");
}

#[test]
fn a_lease_and_what_takes_it_back() {
    if !is_root() || !has("ip") || !has("unshare") || !has("busybox") {
        skip!("helper-dhcp", "needs root, ip, unshare and busybox");
    }
    let mut bed = Bed::new();
    let before = (ip("-4 addr show dev e0"), ip("-4 route"));
    let without = bed.linux.observe().expect("a state");
    let leases = bed.leases("leases");
    let server = bed.serve("10.0.0.1", 30, (&leases, DAY_S));
    bed.set(true);
    let first = bed.wait("a lease", LONG, |entry| entry.phase == Phase::Bound);
    assert!(address(&first).starts_with("10.0.0.3"), "{first:?}");
    let addresses = ip("-4 addr show dev e0");
    assert!(addresses.contains(&format!("inet {}", address(&first))), "{addresses}");
    assert!(addresses.contains("dynamic") && addresses.contains("inet 192.0.2.1/24"));
    let routes = ip("-4 route");
    assert!(routes.contains("default via 10.0.0.1 dev e0 proto 216 src 10.0.0."), "{routes}");
    assert!(routes.contains("mtu 1400") && routes.contains("10.0.0.0/24 dev e0 proto 216"));
    assert!(bed.names().contains("nameserver 10.0.0.53") && bed.names().contains("a.example"));
    let mut with = bed.linux.observe().expect("a state");
    assert!(std::mem::take(&mut with.links.get_mut("e0").expect("it").dhcp), "DHCP is on");
    assert_eq!(with, without, "an address by DHCP is no part of the state");

    // As after a restart of the helper, with a lease that the server does not know.
    let mut other = first.clone();
    other.started += 1;
    other.lease.as_mut().expect("a lease").cidr = "10.0.0.99/24".parse().expect("an address");
    bed.linux.hold("e0", &other).expect("entry");
    let is_other =
        |entry: &Holding| entry.phase == Phase::Bound && address(entry).starts_with("10.0.0.3");
    bed.wait("another lease", LONG, is_other);
    let addresses = ip("-4 addr show dev e0");
    assert!(!addresses.contains("10.0.0.99"), "{addresses}");

    // Started again without a change, and taken back as the guard does it, in both directions.
    let with = bed.linux.observe().expect("a state");
    let entry = bed.entry();
    ip("route del default");
    bed.set(true);
    assert!(ip("-4 route").contains("default via 10.0.0.1"), "set again");
    assert_eq!(bed.entry(), entry);
    let adopted = ["e0".to_owned()].into();
    reach(&mut bed.linux, &without, &adopted).expect("the way back");
    assert_eq!((ip("-4 addr show dev e0"), ip("-4 route")), before);
    assert!(!bed.folder.dhcp().has("e0") && bed.names().is_empty());
    reach(&mut bed.linux, &with, &adopted).expect("the way back to DHCP");
    let again = bed.wait("a lease", LONG, |entry| entry.phase == Phase::Bound);
    assert!(again.started > entry.started);
    bed.set(false);
    assert_eq!((ip("-4 addr show dev e0"), ip("-4 route")), before);
    drop(server);
}
