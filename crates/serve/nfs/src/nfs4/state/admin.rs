//! Looking at clients: their identities and addresses, and what they hold.

use std::net::IpAddr;
use std::sync::Arc;

use super::{Client, ClientCounts, ClientInfo, State, lock};

impl State {
    /// A confirmed client speaks from this address, in this minor version.
    pub fn meet(&self, id: u64, minor: u32, address: IpAddr) {
        if let Some(client) = self.live.get(&id) {
            lock(&client.seen).add(minor, address.to_canonical());
        }
    }

    fn info(&self, client: &Client, now_ns: u64) -> ClientInfo {
        let (opens, locks) = client.held.lock().counts();
        let (minor, addresses) = {
            let seen = lock(&client.seen);
            (seen.minor, seen.addresses.clone())
        };
        ClientInfo {
            id: client.id,
            name: client.name.1.clone(),
            has_sessions: client.name.0,
            minor,
            addresses,
            principal: client.principal,
            silent_ns: now_ns.saturating_sub(client.renewed_ns()),
            is_lapsed: self.is_lapsed(client, now_ns),
            sessions: lock(&client.sessions).len(),
            opens,
            locks,
            delegations: client.way_back.delegations(),
        }
    }

    /// All confirmed clients.
    pub fn clients(&self, now_ns: u64) -> Vec<ClientInfo> {
        let all: Vec<Arc<Client>> = self.live.all();
        all.iter().map(|client| self.info(client, now_ns)).collect()
    }

    /// A confirmed client.
    pub fn client_info(&self, id: u64, now_ns: u64) -> Option<ClientInfo> {
        self.live.get(&id).map(|client| self.info(&client, now_ns))
    }

    /// How many clients and sessions there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.live.count(), self.sessions.count())
    }

    /// The same in more detail, for statistics.
    pub fn client_counts(&self, now_ns: u64) -> ClientCounts {
        let all = self.live.all();
        let courtesy = all.iter().filter(|client| self.is_lapsed(client, now_ns)).count();
        ClientCounts { active: all.len() - courtesy, courtesy, sessions: self.sessions.count() }
    }
}
