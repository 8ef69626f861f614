//! NFS clients for the administrator: their identities, their state, and the expiry of a client
//! that will not return. The rows of all protocols come from the one table of opens and locks.

mod levels;
pub mod show;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use analytics::names::Resolver;
use base::limits::API_STATE_ROWS_MAX;
use control::nfs::{Listing, NfsClient, NfsLock, NfsOpen, NfsState};
use probe::hub::Hub;
use probe::names::NO_USER;
use serve::nfs4::state::ClientInfo;
use serve::nlm::HostInfo;
use vfs::locks::{ClientKey, Owner, Protocol, Row, Tally, What};

use super::Nfs;
use crate::names::{ShareNames, label};

pub use levels::Levels;

/// All clients of all versions of NFS.
pub struct NfsClients {
    nfs: Arc<Nfs>,
    names: ShareNames,
    hub: Arc<Hub>,
}

impl NfsClients {
    /// The clients of this service, with these names of files and users.
    pub fn new(nfs: &Arc<Nfs>, names: ShareNames, hub: &Arc<Hub>) -> Self {
        Self { nfs: nfs.clone(), names, hub: hub.clone() }
    }

    /// An existing client of NFSv4.
    fn nfs4_info(&self, id: u64) -> Option<ClientInfo> {
        self.nfs.online()?.clients.client(id)
    }

    fn nlm_hosts(&self) -> Vec<HostInfo> {
        self.nfs.online().map_or_else(Vec::new, |online| online.nlm.hosts())
    }

    /// The client that an id means, if it is there.
    fn find(&self, id: &str) -> Option<ClientKey> {
        let key = show::key(id)?;
        let there = match key.protocol {
            Protocol::Nfs4 => self.nfs4_info(key.id).is_some(),
            _ => self.nfs.locks().tally().contains_key(&key),
        };
        there.then_some(key)
    }

    fn user(&self, uid: u32) -> String {
        match uid {
            NO_USER => "none".to_owned(),
            uid => self.names.user(uid).unwrap_or_else(|| uid.to_string()),
        }
    }

    /// An address with what the machine there calls itself.
    fn label(&self, address: Option<&IpAddr>) -> String {
        label(&self.hub, address, &address.map(IpAddr::to_string).unwrap_or_default())
    }

    fn nfs4_client(&self, info: &ClientInfo, tally: Tally) -> NfsClient {
        let key = ClientKey { protocol: Protocol::Nfs4, id: info.id };
        NfsClient {
            version: format!("4.{}", info.minor),
            addresses: info.addresses.iter().map(ToString::to_string).collect(),
            label: self.label(info.addresses.first()),
            name: show::bytes(&info.name),
            principal: self.user(info.principal),
            state: if info.is_lapsed { "courtesy" } else { "active" }.to_owned(),
            silent_s: Some((info.silent_ns / 1_000_000) as f64 / 1e3),
            sessions: info.sessions as u64,
            ..held(key, tally)
        }
    }

    /// A host of NFSv3: it sends nothing between its locks, so its presence is unknown.
    fn nlm_host(&self, host: &HostInfo, tally: Tally) -> NfsClient {
        NfsClient {
            addresses: vec![host.address.to_string()],
            label: self.label(Some(&host.address)),
            name: show::bytes(&host.name),
            ..held(ClientKey { protocol: Protocol::Nlm, id: host.id }, tally)
        }
    }

    fn client_of(&self, key: ClientKey, tally: Tally) -> Option<NfsClient> {
        match key.protocol {
            Protocol::Nfs4 => Some(self.nfs4_client(&self.nfs4_info(key.id)?, tally)),
            Protocol::Nlm => {
                let hosts = self.nlm_hosts();
                Some(self.nlm_host(hosts.iter().find(|host| host.id == key.id)?, tally))
            }
            _ => Some(held(key, tally)),
        }
    }

    /// Rows of the table, each with the label of its client, in the order of clients and files.
    fn rows<T>(
        &self,
        client: Option<&str>,
        wanted: fn(&What) -> bool,
        shown: impl Fn(&Row, &str) -> T,
    ) -> Option<Listing<T>> {
        let client = match client {
            Some(id) => Some(self.find(id)?),
            None => None,
        };
        let whose = |owner: &Owner| client.is_none_or(|client| client == owner.client);
        let most = API_STATE_ROWS_MAX;
        let mut found =
            self.nfs.locks().find(&|owner, what| whose(owner) && wanted(what), most + 1);
        let more = found.len() > most;
        found.truncate(most);
        found.sort_by_key(|row| (row.owner.client, row.key, show::lock(&row.what).1));
        let mut labels = HashMap::<ClientKey, String>::new();
        let rows = found.iter().map(|row| {
            let key = row.owner.client;
            let label = labels.entry(key).or_insert_with(|| {
                self.client_of(key, Tally::default()).map_or_else(|| show::id(key), |c| c.label)
            });
            shown(row, label)
        });
        Some(Listing { rows: rows.collect(), more })
    }
}

/// What every client has; what only some protocols know is left empty.
fn held(key: ClientKey, tally: Tally) -> NfsClient {
    NfsClient {
        id: show::id(key),
        protocol: key.protocol.id().to_owned(),
        version: "3".to_owned(),
        addresses: Vec::new(),
        label: show::id(key),
        name: String::new(),
        principal: "none".to_owned(),
        state: "active".to_owned(),
        silent_s: None,
        sessions: 0,
        opens: tally.opens,
        locks: tally.locks(),
        waiting: tally.waiting,
        delegations: tally.leases,
    }
}

impl NfsState for NfsClients {
    fn clients(&self) -> Listing<NfsClient> {
        let mut tally = self.nfs.locks().tally();
        let mut rows: Vec<NfsClient> = Vec::new();
        let there = self.nfs.online().map(|online| online.clients.clients());
        for info in there.into_iter().flatten() {
            let key = ClientKey { protocol: Protocol::Nfs4, id: info.id };
            rows.push(self.nfs4_client(&info, tally.remove(&key).unwrap_or_default()));
        }
        for host in self.nlm_hosts() {
            let key = ClientKey { protocol: Protocol::Nlm, id: host.id };
            // Those that hold nothing any more are forgotten a while later.
            rows.extend(tally.remove(&key).map(|tally| self.nlm_host(&host, tally)));
        }
        rows.sort_by(|a, b| (&a.label, &a.id).cmp(&(&b.label, &b.id)));
        Listing::cut(rows)
    }

    fn opens(&self, client: Option<&str>) -> Option<Listing<NfsOpen>> {
        let wanted = |what: &What| matches!(what, What::Open(_) | What::Lease(..));
        self.rows(client, wanted, |row, label| {
            let (kind, access, deny) = show::open(&row.what);
            NfsOpen {
                client: show::id(row.owner.client),
                protocol: row.owner.client.protocol.id().to_owned(),
                label: label.to_owned(),
                file: self.names.file_of(row.key),
                kind: kind.to_owned(),
                access: access.to_owned(),
                deny: deny.to_owned(),
                owner: show::bytes(row.owner.id()),
            }
        })
    }

    fn locks(&self, client: Option<&str>) -> Option<Listing<NfsLock>> {
        let wanted = |what: &What| matches!(what, What::Lock(..) | What::Wait(..));
        self.rows(client, wanted, |row, label| {
            let (kind, offset, length) = show::lock(&row.what);
            NfsLock {
                client: show::id(row.owner.client),
                protocol: row.owner.client.protocol.id().to_owned(),
                label: label.to_owned(),
                file: self.names.file_of(row.key),
                kind: kind.to_owned(),
                offset,
                length,
                waiting: matches!(row.what, What::Wait(..)),
                owner: show::bytes(row.owner.id()),
            }
        })
    }

    fn expire(&self, client: &str, by: &str) -> Option<NfsClient> {
        let key = self.find(client)?;
        let tally = self.nfs.locks().tally().remove(&key).unwrap_or_default();
        let was = self.client_of(key, tally)?;
        match key.protocol {
            // Another request may have been faster.
            Protocol::Nfs4 => self.nfs.online()?.clients.expire(key.id).then_some(())?,
            Protocol::Nlm => self.nfs.online()?.nlm.expire(key.id).then_some(())?,
            // Clients of other protocols end with their connections; their state is shown so that
            // conflicts can be explained.
            _ => return None,
        }
        let (id, label, by) = (&was.id, &was.label, show::bytes(by.as_bytes()));
        let (opens, locks, delegations) = (was.opens, was.locks, was.delegations);
        base::info!(
            "nfs",
            "{by} expired the NFS client {id} at {label}, and with it {opens} opens, \
             {locks} locks, {delegations} delegations"
        );
        Some(was)
    }
}
