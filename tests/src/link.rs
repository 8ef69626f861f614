//! Two network namespaces with one cable between them and a rate that a test may limit: the
//! server's end is 10.0.3.1, the clients' 10.0.3.2.

use std::process::Command;

use crate::netns::Namespace;
use crate::process;

/// Address of the server's end.
pub const SERVER: &str = "10.0.3.1";
/// What both ends begin with.
const LOOPBACK: &str = "ip link set lo up";

/// The cable. It goes with this value, once nothing runs at either end any more.
pub struct Link {
    /// Where the server runs.
    pub server: Namespace,
    /// Where the clients run.
    pub clients: Namespace,
}

impl Link {
    /// Makes one; `megabits` limits what the server sends, per second. Needs root, `ip` and `tc`.
    ///
    /// # Errors
    /// What is missing, for a SKIP line.
    pub fn new(megabits: Option<u32>) -> Result<Self, String> {
        let end = || Namespace::with(LOOPBACK).map_err(|e| format!("no namespace: {e}"));
        let link = Self { server: end()?, clients: end()? };
        let (server, clients) = (link.server.pid().to_string(), link.clients.pid().to_string());
        // Named only within the namespaces, so that none of the devices shows up outside.
        tool(
            Command::new("ip")
                .args(["link", "add", "wire0", "netns", &server, "type", "veth"])
                .args(["peer", "name", "wire0", "netns", &clients]),
        )?;
        for (namespace, address) in [(&link.server, "10.0.3.1/24"), (&link.clients, "10.0.3.2/24")]
        {
            let within = |command: &mut Command| {
                namespace.enter(command);
                tool(command)
            };
            within(Command::new("ip").args(["addr", "add", address, "dev", "wire0"]))?;
            within(Command::new("ip").args(["link", "set", "wire0", "up"]))?;
        }
        if let Some(megabits) = megabits {
            limit(&link.server, megabits)?;
        }
        Ok(link)
    }

    /// Limits what the clients send as well.
    ///
    /// # Errors
    /// What is missing.
    pub fn limit_clients(&self, megabits: u32) -> Result<(), String> {
        limit(&self.clients, megabits)
    }
}

/// A token bucket with some 20 ms of queue behind it, as a shaped line has.
fn limit(end: &Namespace, megabits: u32) -> Result<(), String> {
    let rate = format!("{megabits}mbit");
    let queue = (megabits * 1_000_000 / 8 / 50).to_string();
    let mut tc = Command::new("tc");
    tc.args(["qdisc", "add", "dev", "wire0", "root", "tbf", "rate", &rate]);
    tc.args(["burst", "65536", "limit", &queue]);
    end.enter(&mut tc);
    tool(&mut tc)
}

fn tool(command: &mut Command) -> Result<(), String> {
    let output = process::run(command, process::DEADLINE);
    let why = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", why.trim())) }
}
