//! A simulated fabric: nodes that reply as their management agents do, with losses by a seed and a
//! clock of its own, so that no test waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Duration;

use base::random::{Random, SeededRandom};

use crate::attribute::{
    self, CLASS_PORT_INFO, ExtendedCounters, NODE_DESCRIPTION, NODE_INFO, NodeInfo, NodeType,
    PKEY_TABLE, PORT_COUNTERS, PORT_COUNTERS_EXTENDED, PORT_INFO, PortCounters, PortInfo, SM_INFO,
};
use crate::mad::{Class, Mad, Method, Route, SMP_DATA_BYTES};
use crate::transport::{Received, Target, Transport};
use crate::walk::PortId;

/// How long a reply takes.
const DELAY: Duration = Duration::from_micros(50);
/// Status of an attribute that an agent does not support (13.4.7).
const UNSUPPORTED: u16 = 0x000c;

/// A node of it.
#[derive(Debug, Clone)]
pub struct FakeNode {
    /// NodeInfo; the receiving port is filled in.
    pub info: NodeInfo,
    /// NodeDescription.
    pub description: String,
    /// Local identifier of a switch.
    pub lid: u16,
    /// Whether it has counters of 64 bits.
    pub wide: bool,
    /// Ports by number.
    pub ports: BTreeMap<u8, FakePort>,
}

/// A port of it.
#[derive(Debug, Clone, Default)]
pub struct FakePort {
    /// PortInfo.
    pub info: PortInfo,
    /// The other end of its cable.
    pub peer: Option<PortId>,
    /// Counters of 64 bits; those of 32 are their lower half.
    pub counters: ExtendedCounters,
    /// Errors and waiting.
    pub narrow: PortCounters,
}

/// A simulated fabric and one of its ports.
pub struct Fake {
    /// Its nodes by GUID.
    pub nodes: BTreeMap<u64, FakeNode>,
    /// The port that requests leave by.
    pub local: PortId,
    /// P_Keys of the local port.
    pub pkeys: Vec<u16>,
    /// State in SMInfo; `None`: no subnet manager replies.
    pub manager: Option<u8>,
    /// Nodes that do not reply.
    pub silent: BTreeSet<u64>,
    /// Datagrams in a thousand that are lost.
    pub lost: u64,
    /// Whether each reply is preceded by one that is not a reply to the request.
    pub noise: bool,
    random: SeededRandom,
    clock: Duration,
    replies: VecDeque<(Duration, Vec<u8>)>,
}

impl Fake {
    /// Switches in a row, with two links between neighbours, and hosts spread over them; `host1`
    /// is this machine and runs the subnet manager.
    pub fn new(switches: u8, hosts: u16, seed: u64) -> Self {
        let mut fake = Self {
            nodes: BTreeMap::new(),
            local: (host(1), 1),
            pkeys: vec![0xffff],
            manager: Some(3),
            silent: BTreeSet::new(),
            lost: 0,
            noise: false,
            random: SeededRandom::new(seed),
            clock: Duration::ZERO,
            replies: VecDeque::new(),
        };
        for n in 1..=switches {
            fake.add(switch(n), NodeType::Switch, 36, &format!("sw{n}"), 1_000 + u16::from(n));
        }
        let each = hosts.div_ceil(switches.max(1).into()).max(1);
        for n in 1..=hosts {
            fake.add(host(n), NodeType::Adapter, 2, &format!("host{n}"), n);
            let at = switch(((n - 1) / each + 1) as u8);
            fake.link((host(n), 1), (at, ((n - 1) % each + 1) as u8));
        }
        for n in 1..switches {
            fake.link((switch(n), 33), (switch(n + 1), 35));
            fake.link((switch(n), 34), (switch(n + 1), 36));
        }
        fake
    }

    fn add(&mut self, guid: u64, kind: NodeType, ports: u8, description: &str, lid: u16) {
        let mut node = FakeNode {
            info: NodeInfo {
                kind,
                ports,
                system_guid: guid,
                node_guid: guid,
                port_guid: guid,
                device: 0,
                revision: 0,
                local_port: 0,
                vendor: 0,
            },
            description: description.to_owned(),
            lid,
            wide: true,
            ports: BTreeMap::new(),
        };
        for number in 1..=ports {
            let info = PortInfo {
                local_port: number,
                width_enabled: 3,
                width_supported: 3,
                speed_enabled: 7,
                speed_supported: 7,
                state: 1,
                physical: 2,
                ..PortInfo::default()
            };
            node.ports.insert(number, FakePort { info, ..FakePort::default() });
        }
        self.nodes.insert(guid, node);
    }

    /// A port, if there is one.
    pub fn port(&mut self, (guid, port): PortId) -> Option<&mut FakePort> {
        self.nodes.get_mut(&guid)?.ports.get_mut(&port)
    }

    /// Links two ports at 4x QDR.
    pub fn link(&mut self, a: PortId, b: PortId) {
        for (one, other) in [(a, b), (b, a)] {
            let adapter = self.nodes.get(&one.0).filter(|n| n.info.kind != NodeType::Switch);
            let lid = adapter.map_or(0, |node| node.lid);
            let Some(port) = self.port(one) else { continue };
            port.peer = Some(other);
            let linked =
                PortInfo { state: 4, physical: 5, width_active: 2, speed_active: 4, ..port.info };
            port.info = PortInfo { lid, sm_lid: 1, ..linked };
        }
    }

    /// Takes the cable of a port out.
    pub fn unlink(&mut self, a: PortId) {
        let Some(b) = self.port(a).and_then(|port| port.peer) else { return };
        for one in [a, b] {
            let Some(port) = self.port(one) else { continue };
            port.peer = None;
            port.info = PortInfo { state: 1, physical: 2, lid: 0, ..port.info };
        }
    }

    /// Lets time pass.
    pub fn advance(&mut self, by: Duration) {
        self.clock += by;
    }

    fn lose(&mut self) -> bool {
        self.lost > 0 && self.random.next_u64() % 1_000 < self.lost
    }

    /// The node at the end of a route, and the port that it is entered by.
    fn at_route(&self, route: &Route) -> Option<PortId> {
        let mut at = self.local;
        for (hop, port) in route.ports().iter().enumerate() {
            let node = self.nodes.get(&at.0)?;
            let passes =
                if hop == 0 { *port == self.local.1 } else { node.info.kind == NodeType::Switch };
            if !passes {
                return None;
            }
            let port = node.ports.get(port).filter(|port| port.info.is_linked())?;
            at = port.peer?;
        }
        Some(at)
    }

    fn at_lid(&self, lid: u16) -> Option<u64> {
        let has = |node: &&FakeNode| node.lid == lid;
        self.nodes.values().find(has).map(|node| node.info.node_guid)
    }

    fn reply(&self, target: &Target, request: &Mad) -> Option<Mad> {
        let (data, status) = match target {
            Target::Route(route) => {
                let at = self.at_route(route)?;
                self.subnet(at, request)?
            }
            Target::Manager(lid) => {
                let mut data = vec![0; SMP_DATA_BYTES];
                let is_there = self.at_lid(*lid).is_some() && request.attribute == SM_INFO;
                data[20] = self.manager.filter(|_| is_there)?;
                (data, 0)
            }
            Target::Performance(lid) => self.performance(self.at_lid(*lid)?, request)?,
        };
        Some(Mad { method: Method::GetResponse, status, data, ..request.clone() })
    }

    fn subnet(&self, (guid, entered): PortId, request: &Mad) -> Option<(Vec<u8>, u16)> {
        let node = self.nodes.get(&guid).filter(|_| !self.silent.contains(&guid))?;
        Some(match request.attribute {
            NODE_INFO => (NodeInfo { local_port: entered, ..node.info }.encode(), 0),
            NODE_DESCRIPTION => {
                let mut data = node.description.as_bytes().to_vec();
                data.resize(SMP_DATA_BYTES, 0);
                (data, 0)
            }
            PORT_INFO if request.modifier == 0 => {
                (PortInfo { lid: node.lid, ..PortInfo::default() }.encode(), 0)
            }
            PORT_INFO => match node.ports.get(&(request.modifier as u8)) {
                Some(port) => (port.info.encode(), 0),
                None => (vec![0; SMP_DATA_BYTES], UNSUPPORTED),
            },
            PKEY_TABLE if request.modifier == 0 => (attribute::pkey_block(&self.pkeys), 0),
            _ => (vec![0; SMP_DATA_BYTES], UNSUPPORTED),
        })
    }

    fn performance(&self, guid: u64, request: &Mad) -> Option<(Vec<u8>, u16)> {
        let node = self.nodes.get(&guid).filter(|_| !self.silent.contains(&guid))?;
        let number = *request.data.get(1)?;
        let port = node.ports.get(&number)?;
        let narrow = |pair: [u64; 2]| pair.map(|value| value as u32);
        Some(match request.attribute {
            CLASS_PORT_INFO => (attribute::class_port_info(node.wide), 0),
            PORT_COUNTERS => {
                let ExtendedCounters { words, packets, .. } = port.counters;
                let (words, packets) = (narrow(words), narrow(packets));
                let counters = PortCounters { port: number, words, packets, ..port.narrow };
                (counters.encode(), 0)
            }
            PORT_COUNTERS_EXTENDED if node.wide => {
                (ExtendedCounters { port: number, ..port.counters }.encode(), 0)
            }
            _ => (vec![0; 192], UNSUPPORTED),
        })
    }

    /// Something that is not the reply: short, foreign, of another class or attribute.
    fn noise(&mut self, reply: &Mad) -> Vec<u8> {
        let mut other = reply.clone();
        match self.random.next_u64() % 5 {
            0 => {
                let length = self.random.next_u64() as usize % 256;
                return other.encode()[..length].to_vec();
            }
            1 => other.transaction = other.transaction.wrapping_add(1 << 20),
            2 if other.class == Class::Performance => other.class = Class::SubnetByLid,
            2 => other.class = Class::Performance,
            3 => other.attribute ^= 0x80,
            _ => other.method = Method::Get,
        }
        other.encode().to_vec()
    }
}

/// GUID of a host of a simulated fabric.
pub fn host(number: u16) -> u64 {
    0x0010_0000 + u64::from(number)
}

/// GUID of a switch of it.
pub fn switch(number: u8) -> u64 {
    0x0020_0000 + u64::from(number)
}

impl Transport for Fake {
    fn send(&mut self, target: &Target, mad: &Mad) -> io::Result<()> {
        if self.lose() {
            return Ok(());
        }
        // As bytes, so that the codec is part of every test.
        let request = Mad::decode(&mad.encode()).map_err(io::Error::other)?;
        let Some(reply) = self.reply(target, &request) else { return Ok(()) };
        let due = self.clock + DELAY;
        if self.noise {
            let noise = self.noise(&reply);
            self.replies.push_back((due, noise));
        }
        if !self.lose() {
            self.replies.push_back((due, reply.encode().to_vec()));
        }
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Received>> {
        match self.replies.front() {
            Some((due, _)) if *due <= self.clock + wait => {
                self.clock = self.clock.max(*due);
                let bytes = self.replies.pop_front().map(|(_, bytes)| bytes).unwrap_or_default();
                Ok(Some(Received { error: 0, bytes }))
            }
            _ => {
                self.clock += wait;
                Ok(None)
            }
        }
    }

    fn now(&self) -> Duration {
        self.clock
    }
}
