//! The nodes, ports and links of a fabric, by directed routes from a port of this machine.
//!
//! A request without a reply is a fact about its port, not the end of the walk. Only switches pass
//! directed routes on, so a walk ends at adapters.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use crate::attribute::{
    self, NODE_DESCRIPTION, NODE_INFO, NodeInfo, NodeType, PKEY_TABLE, PORT_INFO, PortInfo, SM_INFO,
};
use crate::exchange::{Exchange, Query, QueryError, Work};
use crate::mad::Route;
use crate::transport::{Target, Transport};

/// Most nodes of a fabric; the others are left out, and the fabric is marked as partial. A node
/// takes about 500 bytes, and 16 ports of 100 bytes each.
pub const NODES_MAX: usize = 2_048;
/// Most ports: as many as a fabric of [`NODES_MAX`] nodes has with switches of 40 ports.
pub const PORTS_MAX: usize = 16_384;
/// Longest walk: 2,048 nodes have 20,000 requests of a millisecond each.
pub const WALK_MAX: Duration = Duration::from_secs(60);
/// Blocks of the P_Key table that are read: adapters have 128 entries.
const PKEY_BLOCKS: u32 = 4;
/// State of a subnet manager that is the master.
const MASTER: u8 = 3;

/// A port: GUID of its node, and its number.
pub type PortId = (u64, u8);

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// NodeInfo.
    pub info: NodeInfo,
    /// NodeDescription; empty without a reply.
    pub description: String,
    /// Route to it.
    pub route: Route,
    /// Local identifier of a switch; 0: none.
    pub lid: u16,
}

/// A port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Port {
    /// GUID of the port of an adapter; 0: not received.
    pub guid: u64,
    /// PortInfo, or why there is none.
    pub info: Option<Result<PortInfo, QueryError>>,
    /// The other end of its link.
    pub peer: Option<PortId>,
    /// Why the node at the other end of a link has not replied.
    pub silent: Option<QueryError>,
}

impl Port {
    /// PortInfo, if there was a reply.
    pub fn info(&self) -> Option<&PortInfo> {
        self.info.as_ref().and_then(|info| info.as_ref().ok())
    }

    /// Whether its physical link is up.
    pub fn is_linked(&self) -> bool {
        self.info().is_some_and(PortInfo::is_linked)
    }
}

/// The subnet manager, as a port of this machine knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Manager {
    /// The link of the port is down.
    #[default]
    Unlinked,
    /// None has assigned a local identifier.
    None,
    /// One has, and it does not reply or is no master.
    Silent(u16),
    /// At this local identifier.
    Master(u16),
}

/// A fabric.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fabric {
    /// The port of this machine that it was walked from.
    pub local: Option<PortId>,
    /// Its nodes by GUID.
    pub nodes: BTreeMap<u64, Node>,
    /// Their ports, port 0 of switches left out.
    pub ports: BTreeMap<PortId, Port>,
    /// P_Keys of the local port.
    pub pkeys: Vec<u16>,
    /// Its subnet manager.
    pub manager: Manager,
    /// Why it is not complete: more nodes or ports than the limits, or no time left.
    pub partial: Option<&'static str>,
}

impl Fabric {
    /// The links, each once.
    pub fn links(&self) -> impl Iterator<Item = (PortId, PortId)> + '_ {
        let peers = self.ports.iter().filter_map(|(id, port)| Some((*id, port.peer?)));
        peers.filter(|(id, peer)| id <= peer)
    }

    /// Local identifier by which the counters of a port are read; `None`: it has none.
    pub fn lid(&self, (guid, port): PortId) -> Option<u16> {
        let node = self.nodes.get(&guid)?;
        let lid = match node.info.kind {
            NodeType::Switch => node.lid,
            _ => self.ports.get(&(guid, port))?.info()?.lid,
        };
        (lid != 0).then_some(lid)
    }
}

enum Tag {
    /// The node behind a port; `None`: that of this machine.
    Node(Option<PortId>, Route),
    Description(u64),
    Port(u64, u8),
    Pkeys,
    Manager(u16),
}

#[derive(Default)]
struct Walk {
    fabric: Fabric,
    queue: VecDeque<(Tag, Query)>,
    /// Whether it ends at this machine.
    local: bool,
}

/// Walks the fabric.
///
/// # Errors
/// The transport's.
pub fn walk<T: Transport>(exchange: &mut Exchange<T>) -> io::Result<Fabric> {
    let mut walk = Walk::default();
    walk.request_node(None, Route::default());
    exchange.run(&mut walk, WALK_MAX)?;
    Ok(walk.fabric)
}

/// The node of this machine alone: its ports, its P_Keys, the subnet manager.
///
/// # Errors
/// The transport's.
pub fn local<T: Transport>(exchange: &mut Exchange<T>) -> io::Result<Fabric> {
    let mut walk = Walk { local: true, ..Walk::default() };
    walk.request_node(None, Route::default());
    exchange.run(&mut walk, WALK_MAX)?;
    Ok(walk.fabric)
}

impl Walk {
    fn request(&mut self, tag: Tag, target: Target, attribute: u16, modifier: u32) {
        self.queue.push_back((tag, Query { target, attribute, modifier, data: Vec::new() }));
    }

    fn request_node(&mut self, from: Option<PortId>, route: Route) {
        self.request(Tag::Node(from, route.clone()), Target::Route(route), NODE_INFO, 0);
    }

    fn node(&mut self, from: Option<PortId>, route: Route, info: NodeInfo) {
        let guid = info.node_guid;
        let id = (guid, info.local_port);
        let is_new = !self.fabric.nodes.contains_key(&guid);
        if is_new && self.fabric.nodes.len() >= NODES_MAX {
            self.fabric.partial = Some("it has more nodes than are recorded");
            return;
        }
        if from.is_none() {
            self.fabric.local = Some(id);
        }
        if info.local_port != 0 {
            let port = self.port(id);
            let adapter = info.kind != NodeType::Switch;
            port.guid = if adapter { info.port_guid } else { 0 };
            port.peer = from.or(port.peer);
        }
        if let Some(from) = from {
            let port = self.port(from);
            (port.peer, port.silent) = (Some(id), None);
        }
        if !is_new {
            return;
        }
        let at = Target::Route(route.clone());
        let node = Node { info, description: String::new(), route, lid: 0 };
        self.fabric.nodes.insert(guid, node);
        self.request(Tag::Description(guid), at.clone(), NODE_DESCRIPTION, 0);
        let first = u8::from(info.kind != NodeType::Switch);
        for port in first..=info.ports.min(254) {
            if self.fabric.ports.len() >= PORTS_MAX {
                self.fabric.partial = Some("it has more ports than are recorded");
                return;
            }
            if port != 0 {
                self.port((guid, port));
            }
            self.request(Tag::Port(guid, port), at.clone(), PORT_INFO, port.into());
        }
    }

    fn port(&mut self, id: PortId) -> &mut Port {
        self.fabric.ports.entry(id).or_default()
    }

    fn port_info(&mut self, id: PortId, result: Result<PortInfo, QueryError>) {
        let (guid, number) = id;
        let Some(node) = self.fabric.nodes.get_mut(&guid) else { return };
        if number == 0 {
            node.lid = result.map_or(0, |info| info.lid);
            return;
        }
        let (route, kind) = (node.route.clone(), node.info.kind);
        let port = self.fabric.ports.entry(id).or_default();
        port.info = Some(result);
        let has_peer = port.peer.is_some();
        let Some(info) = result.ok().filter(PortInfo::is_linked) else { return };
        let is_local = self.fabric.local == Some(id);
        if is_local {
            self.local(&info);
        }
        // A route leaves this machine by the port of the device only.
        if self.local || has_peer || !is_local && kind != NodeType::Switch {
            return;
        }
        if let Some(next) = route.then(number) {
            self.request_node(Some(id), next);
        }
    }

    /// What only the port of this machine is asked for.
    fn local(&mut self, info: &PortInfo) {
        let local = Target::Route(Route::default());
        for block in 0..PKEY_BLOCKS {
            self.request(Tag::Pkeys, local.clone(), PKEY_TABLE, block);
        }
        self.fabric.manager = match info.sm_lid {
            0 => Manager::None,
            lid => {
                self.request(Tag::Manager(lid), Target::Manager(lid), SM_INFO, 0);
                Manager::Silent(lid)
            }
        };
    }
}

impl Work for Walk {
    type Tag = Tag;

    fn next(&mut self) -> Option<(Tag, Query)> {
        self.queue.pop_front()
    }

    fn end(&mut self, tag: Tag, result: Result<&[u8], QueryError>) {
        if result == Err(QueryError::Late) {
            self.fabric.partial = Some("its walk takes longer than its limit");
        }
        match (tag, result) {
            (Tag::Node(from, route), Ok(data)) => self.node(from, route, NodeInfo::decode(data)),
            (Tag::Node(Some(from), _), Err(lack)) => self.port(from).silent = Some(lack),
            (Tag::Description(guid), Ok(data)) => {
                if let Some(node) = self.fabric.nodes.get_mut(&guid) {
                    node.description = attribute::description(data);
                }
            }
            (Tag::Port(guid, port), result) => {
                self.port_info((guid, port), result.map(PortInfo::decode));
            }
            (Tag::Pkeys, Ok(data)) => self.fabric.pkeys.extend(attribute::pkeys(data)),
            (Tag::Manager(lid), Ok(data)) if attribute::sm_state(data) == MASTER => {
                self.fabric.manager = Manager::Master(lid);
            }
            (Tag::Node(None, _) | Tag::Description(_) | Tag::Pkeys | Tag::Manager(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests;
