//! A bed: a server and four clients in namespaces of their own, each client behind a shaper of
//! 100 Mbit/s, and processes in them that are this program again.

use std::io::BufRead;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a process of a bed is to do.
pub const ROLE: &str = "PLIMSOLL_TEST_BED";
/// Clients.
pub const CLIENTS: usize = 4;
/// More addresses of a client.
pub const ADDRESSES: usize = 60;
/// The server's interface, which no other bed has.
pub const DEVICE: &str = "plsegs0";
/// How often something is looked at again that gives no event.
pub const AGAIN: Duration = Duration::from_millis(20);
/// How long a step may take on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Runs shell lines, which must succeed.
pub fn sh(script: &str) {
    let out = Command::new("sh").args(["-ec", script]).output().expect("a shell");
    assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Namespaces of a server, a bridge and clients; gone with this value.
pub struct Bed(String);

impl Bed {
    /// Makes one. Needs root, `ip` and `tc`.
    pub fn new() -> Self {
        let bed = Self(format!("plseg{}", std::process::id() % 10_000));
        let n = &bed.0;
        sh(&format!(
            "ip netns add {n}S; ip netns add {n}W
             ip -n {n}W link add br0 type bridge; ip -n {n}W link set br0 up
             ip link add {DEVICE} netns {n}S type veth peer name ws netns {n}W
             ip -n {n}S addr add 10.77.0.1/24 dev {DEVICE}
             ip -n {n}S link set {DEVICE} up; ip -n {n}S link set lo up
             ip -n {n}W link set ws master br0 up"
        ));
        for i in 1..=CLIENTS {
            sh(&format!(
                "ip netns add {n}C{i}
                 ip link add c0 netns {n}C{i} type veth peer name w{i} netns {n}W
                 ip -n {n}C{i} addr add 10.77.0.1{i}/24 dev c0
                 ip -n {n}C{i} link set c0 up; ip -n {n}W link set w{i} master br0 up
                 tc -n {n}W qdisc add dev w{i} root tbf rate 100mbit burst 256k limit 2m"
            ));
        }
        bed
    }

    /// Gives each client more addresses: 10.77.0.15 to 10.77.0.254 in all.
    pub fn more_addresses(&self) {
        for i in 1..=CLIENTS {
            let first = 15 + (i - 1) * ADDRESSES;
            let add = |n: usize| format!("addr add 10.77.0.{}/24 dev c0\n", first + n);
            let all: String = (0..ADDRESSES).map(add).collect();
            sh(&format!("printf '{all}' | ip -n {}C{i} -batch -", self.0));
        }
    }

    /// Sets the congestion control of what the server sends: a namespace may not set its own.
    pub fn control(&self, control: &str) {
        let n = &self.0;
        sh(&format!(
            "ip -n {n}S route change 10.77.0.0/24 dev {DEVICE} src 10.77.0.1 congctl {control}"
        ));
    }

    /// This program in a namespace, as `role`.
    pub fn start(&self, namespace: &str, role: &str) -> Child {
        let own = std::env::current_exe().expect("this program");
        Command::new("ip")
            .args(["netns", "exec", &format!("{}{namespace}", self.0)])
            .arg(own)
            .args(["--exact", "role", "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process of the bed")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let clients = (1..=CLIENTS).map(|i| format!("C{i}"));
        for name in clients.chain(["S".to_owned(), "W".to_owned()]) {
            let name = format!("{}{name}", self.0);
            let _ = Command::new("ip").args(["netns", "del", &name]).status();
        }
    }
}

/// Waits for the end of a process.
pub fn ends(child: &mut Child, within: Duration) -> bool {
    let end = Instant::now() + within;
    while child.try_wait().expect("a state").is_none() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(AGAIN);
    }
    true
}

/// The rest of the first line with this word.
pub fn line(out: &mut impl BufRead, word: &str) -> String {
    loop {
        let mut text = String::new();
        assert!(out.read_line(&mut text).expect("a line") > 0, "no line with {word}");
        if let Some((_, rest)) = text.split_once(word) {
            return rest.trim().to_owned();
        }
    }
}
