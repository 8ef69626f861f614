//! Subnets of a run: the clients in each network reach the server at its address there. Clients on
//! this machine are spread over the networks; agents elsewhere belong to the network of their
//! address.

use super::agents::{Agents, AgentsError};
use super::network::Subnet;
use crate::client::Target;
use crate::observe::ServerSample;
use crate::record::observed::{SubnetStep, WholeStep};
use crate::record::{RunResult, Step};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

/// The whole of a step: bytes by client, samples of the server before and after.
pub(super) type Moved = (Vec<(u32, u64)>, Option<[ServerSample; 2]>);

/// Enters what each network carried in the whole step.
pub(super) fn enter_whole(found: &mut [SubnetStep], step: &Step, (moved, around): &Moved) {
    for subnet in found.iter_mut().filter(|subnet| subnet.lost == 0) {
        let there = |number: u32| {
            let client = step.by_client.iter().find(|client| client.client == number);
            client.is_some_and(|client| client.subnet.as_ref() == Some(&subnet.network))
        };
        let payload = moved.iter().filter(|(n, _)| there(*n)).map(|(_, bytes)| bytes).sum();
        subnet.whole = around.as_ref().and_then(|around| {
            let name = subnet.interface.as_ref()?;
            let [before, after] = around.each_ref().map(|sample| {
                let interfaces = &sample.observed.as_ref()?.interfaces;
                let found = interfaces.iter().find(|interface| interface.name == *name)?;
                Some((found.bytes, found.packets))
            });
            let ((bytes, packets), (bytes_after, packets_after)) = before.zip(after)?;
            let since = |after: [u64; 2], before: [u64; 2], n: usize| {
                after.get(n)?.checked_sub(*before.get(n)?)
            };
            Some(WholeStep {
                payload,
                rx: since(bytes_after, bytes, 0)?,
                tx: since(bytes_after, bytes, 1)?,
                rx_packets: since(packets_after, packets, 0)?,
                tx_packets: since(packets_after, packets, 1)?,
            })
        });
    }
}

/// Gives each agent its network.
///
/// # Errors
/// An agent elsewhere is in none of them.
pub(super) fn assign(agents: &mut Agents, subnets: &[Subnet]) -> Result<(), AgentsError> {
    if subnets.is_empty() {
        return Ok(());
    }
    for agent in &mut agents.all {
        let found = if agent.is_here() {
            let turn = agent.number as usize % subnets.len();
            subnets.get(turn).copied()
        } else {
            let address: Option<SocketAddr> = agent.address.parse().ok();
            let address = address.map(|address| address.ip());
            address.and_then(|ip| subnets.iter().find(|subnet| subnet.contains(ip)).copied())
        };
        let Some(subnet) = found else {
            return Err(AgentsError::NoSubnet(agent.number, agent.address.clone()));
        };
        if agent.is_here() {
            agent.bind = Some(subnet.local_address(agent.number));
        }
        agent.subnet = Some(subnet);
    }
    Ok(())
}

/// The target as the clients of a network reach it.
pub(super) fn target_in(target: &Target, subnet: Option<Subnet>) -> Target {
    subnet.map_or_else(|| target.clone(), |subnet| target.clone().served_at(subnet.server))
}

/// The server's interface in each network, as its routes are at the start of a run: those of one
/// that is taken down later are gone.
pub(super) fn interfaces(subnets: &[Subnet], server: Option<u32>) -> Vec<Option<String>> {
    subnets.iter().map(|subnet| interface_of(server, subnet.server)).collect()
}

/// What each network carried in a step, of which the clients have their networks already; `taking`
/// is the number of clients that began it.
pub(super) fn of_step(
    step: &Step,
    (subnets, interfaces): (&[Subnet], &[Option<String>]),
    result: &RunResult,
    taking: u32,
) -> Vec<SubnetStep> {
    let seconds = step.used.1.saturating_sub(step.used.0).max(1) as f64 * step.window_s;
    let of = |(subnet, interface): (&Subnet, &Option<String>)| {
        let network = subnet.to_string();
        let own = |name: &Option<String>| name.as_deref() == Some(network.as_str());
        let began = result.clients.iter().take(taking as usize);
        let began = began.filter(|client| own(&client.subnet)).count() as u32;
        let mut found = SubnetStep { network: network.clone(), ..SubnetStep::default() };
        for client in step.by_client.iter().filter(|client| own(&client.subnet)) {
            found.clients += 1;
            found.ops_s += client.ops as f64 / seconds;
            found.bytes_s += client.bytes as f64 / seconds;
            found.errors += client.errors;
        }
        found.lost = began.saturating_sub(found.clients);
        found.server = subnet.server.to_string();
        found.interface.clone_from(interface);
        found
    };
    subnets.iter().zip(interfaces).map(of).collect()
}

/// Networks of which all clients were lost.
pub(super) fn lost(result: &RunResult, subnets: &[Subnet]) -> Vec<String> {
    let of = |subnet: &Subnet| {
        let network = subnet.to_string();
        let own = result.clients.iter().filter(|c| c.subnet.as_ref() == Some(&network));
        let (lost, all) = (own.clone().filter(|c| c.lost.is_some()).count(), own.count());
        (all > 0 && lost == all).then(|| {
            format!(
                "lost subnet {network} (server {}): all {all} of its clients; figures from then on \
                 are those of the others",
                subnet.server
            )
        })
    };
    subnets.iter().filter_map(of).collect()
}

/// The interface of a process's network namespace that has the route to an address's network.
fn interface_of(pid: Option<u32>, address: IpAddr) -> Option<String> {
    let IpAddr::V4(address) = address else { return None };
    if address.is_loopback() {
        return Some("lo".to_owned());
    }
    let table = Path::new("/proc").join(pid?.to_string()).join("net/route");
    interface_in(&std::fs::read_to_string(table).ok()?, address)
}

/// The same in the text of `/proc/net/route`: the route with the longest mask.
fn interface_in(table: &str, address: Ipv4Addr) -> Option<String> {
    // Addresses are printed as the machine has them in memory.
    let number = |word: &str| u32::from_str_radix(word, 16).ok().map(u32::to_ne_bytes);
    let to_bits = |bytes: [u8; 4]| u32::from_be_bytes(bytes);
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, destination, mask) = (words.first()?, words.get(1)?, words.get(7)?);
        let (destination, mask) = (to_bits(number(destination)?), to_bits(number(mask)?));
        (address.to_bits() & mask == destination).then(|| (mask, (*name).to_owned()))
    };
    table.lines().filter_map(route).max().map(|(_, name)| name)
}

#[cfg(test)]
mod tests;
