//! Links, addresses and routes of the kernel by rtnetlink(7), over one blocking socket.
//!
//! This file and those below it are the only ones that use `netlink-packet-route`, which changes
//! its interface with each release.

mod bond;

use std::io::{self, Read};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_EXCL, NLM_F_REPLACE,
    NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressMessage, AddressProtocol, AddressScope, CacheInfo,
};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, InfoData, InfoIpoib, InfoKind, InfoVlan, IpoibMode, LinkAttribute,
    LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use socket2::{Domain, Protocol, Socket, Type};

use crate::cidr::Cidr;
use crate::dhcp::DHCP_MARK;
use crate::pkey::Pkey;
use crate::state::{Address, Kind, LinkMode, MARK, Mode, RESOURCE_MARK, Route};
use bond::{Bond, new_bond};

/// Longest datagram that is read: the kernel fills 32 KiB at most.
const DATAGRAM_MAX: usize = 128 << 10;
/// How long the kernel may take to answer: a link is deleted within some hundreds of milliseconds.
const ANSWER: Duration = Duration::from_secs(20);
/// How often a list is read again that changed while it was read.
const LISTS_MAX: usize = 5;
/// The main table of routes (RT_TABLE_MAIN).
const MAIN: u8 = 254;

/// The attribute with the kind of a link, in IFLA_LINKINFO.
const IFLA_INFO_KIND: u16 = 1;
/// Flags of a request that makes a link which must not exist.
const MAKE: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// What the kernel calls a kind of links that it does not have.
const UNKNOWN_KIND: &str = "Unknown device type";

/// A connection with the kernel.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

/// A link as the kernel describes it.
#[derive(Debug, Default)]
pub(crate) struct RawLink {
    pub index: u32,
    pub name: String,
    /// `vlan`, `bond`; nothing for a device.
    pub kind: String,
    pub mtu: u32,
    pub mtu_range: (u32, u32),
    pub up: bool,
    /// Up, with a carrier.
    pub carrier: bool,
    /// A port that its aggregation does not use.
    pub unused: bool,
    pub infiniband: bool,
    /// Index of the aggregation or bridge; 0 if there is none.
    pub controller: u32,
    /// Index of the link that it is made on or paired with, if it is in this namespace.
    pub on: Option<u32>,
    /// The group of links (`ip link show group`).
    pub group: u32,
    pub advertisements: bool,
    vlan: Option<u16>,
    partition: Option<(u16, LinkMode)>,
    bond: Bond,
}

/// An address as the kernel has it, with the index of its link.
#[derive(Debug)]
pub(crate) struct RawAddress {
    pub index: u32,
    pub address: Address,
}

/// A route as the kernel has it, with the index of its link.
#[derive(Debug)]
pub(crate) struct RawRoute {
    pub index: u32,
    pub route: Route,
}

impl Netlink {
    /// Opens the socket, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn open() -> io::Result<Self> {
        let route = Some(Protocol::from(libc::NETLINK_ROUTE));
        let socket =
            Socket::new(Domain::from(libc::AF_NETLINK), Type::from(libc::SOCK_RAW), route)?;
        socket.set_read_timeout(Some(ANSWER))?;
        let on: libc::c_int = 1;
        // Reasons in words, and lists that contain what was requested.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_GET_STRICT_CHK] {
            // SAFETY: the pointer and length describe `on`, which outlives the call.
            let done = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_NETLINK,
                    option,
                    (&raw const on).cast(),
                    size_of::<libc::c_int>() as libc::socklen_t,
                )
            };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self { socket, sequence: 0, buffer: vec![0; DATAGRAM_MAX] })
    }

    /// Sends a request and gathers what the kernel replies with.
    fn call(&mut self, message: Message, flags: u16) -> Result<Vec<Message>, String> {
        for _ in 0..LISTS_MAX {
            if let Some(list) = self.call_once(message.clone(), flags)? {
                return Ok(list);
            }
        }
        Err("the network changes too quickly to be listed".to_owned())
    }

    /// The same; nothing if the list changed while it was read.
    fn call_once(&mut self, message: Message, flags: u16) -> Result<Option<Vec<Message>>, String> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = encode(message, flags, self.sequence);
        self.socket.send(&bytes).map_err(|e| e.to_string())?;
        let (mut list, mut changed) = (Vec::new(), false);
        loop {
            let length = self.socket.read(&mut self.buffer).map_err(|e| e.to_string())?;
            let mut rest = self.buffer.get(..length).unwrap_or_default();
            while !rest.is_empty() {
                let reply = NetlinkMessage::<Message>::deserialize(rest)
                    .map_err(|e| format!("the kernel's message is not understood: {e}"))?;
                let header = reply.header;
                let length = (header.length as usize).min(rest.len());
                let (whole, _) = rest.split_at(length);
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
                if header.sequence_number != self.sequence {
                    continue;
                }
                changed |= header.flags & NLM_F_DUMP_INTR != 0;
                match reply.payload {
                    NetlinkPayload::Done(_) => return Ok((!changed).then_some(list)),
                    NetlinkPayload::Error(e) if e.code.is_none() => {
                        return Ok((!changed).then_some(list));
                    }
                    NetlinkPayload::Error(e) => return Err(reason(&e.to_io(), whole)),
                    NetlinkPayload::InnerMessage(message) => list.push(message),
                    _ => {}
                }
            }
        }
    }

    /// All links.
    pub(crate) fn links(&mut self) -> Result<Vec<RawLink>, String> {
        let list = self.call(Message::GetLink(LinkMessage::default()), NLM_F_DUMP)?;
        let links = list.into_iter().filter_map(|message| match message {
            Message::NewLink(link) => Some(raw_link(link)),
            _ => None,
        });
        Ok(links.collect())
    }

    /// The addresses that were set: not those that the kernel or a router has given.
    pub(crate) fn addresses(&mut self) -> Result<Vec<RawAddress>, String> {
        let list = self.call(Message::GetAddress(AddressMessage::default()), NLM_F_DUMP)?;
        let addresses = list.into_iter().filter_map(|message| match message {
            Message::NewAddress(address) => raw_address(&address),
            _ => None,
        });
        Ok(addresses.collect())
    }

    /// Unicast routes of the main table with one next hop, but those of the kernel and of routers.
    pub(crate) fn routes(&mut self) -> Result<Vec<RawRoute>, String> {
        let mut routes = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut request = RouteMessage::default();
            request.header.address_family = family;
            let list = self.call(Message::GetRoute(request), NLM_F_DUMP)?;
            routes.extend(list.into_iter().filter_map(|message| match message {
                Message::NewRoute(route) => raw_route(&route),
                _ => None,
            }));
        }
        Ok(routes)
    }

    /// The index of a link.
    fn index(&mut self, name: &str) -> Result<u32, String> {
        Ok(self.link(name)?.header.index)
    }

    fn link(&mut self, name: &str) -> Result<LinkMessage, String> {
        let mut request = LinkMessage::default();
        request.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        let list = self.call(Message::GetLink(request), NLM_F_ACK)?;
        let link = list.into_iter().find_map(|message| match message {
            Message::NewLink(link) => Some(link),
            _ => None,
        });
        link.ok_or_else(|| format!("there is no link {name}"))
    }

    /// Makes a link of Plimsoll's, which is down.
    pub(crate) fn create(&mut self, name: &str, kind: &Kind, mtu: u32) -> Result<(), String> {
        let (module, on) = match kind {
            Kind::Vlan { on, .. } => ("8021q", Some(on)),
            Kind::Partition { on, .. } => ("ib_ipoib", Some(on)),
            Kind::Aggregation(_) => ("bonding", None),
            Kind::Device { .. } => return Err("devices are not made".to_owned()),
        };
        let on = on.map(|on| self.index(on)).transpose()?;
        let message = Message::NewLink(new_link(name, kind, mtu, on));
        self.change(message, MAKE).map_err(|why| match why.contains(UNKNOWN_KIND) {
            true => format!("{why}: this kernel does not have it; load its module {module}"),
            false => why,
        })
    }

    /// Deletes a link.
    pub(crate) fn delete(&mut self, name: &str) -> Result<(), String> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(name)?;
        self.change(Message::DelLink(message), 0)
    }

    /// Attaches a link to an aggregation, or detaches it.
    pub(crate) fn set_controller(&mut self, port: &str, to: Option<&str>) -> Result<(), String> {
        let controller = to.map_or(Ok(0), |to| self.index(to))?;
        self.set(port, LinkAttribute::Controller(controller))
    }

    /// Sets the MTU of a link.
    pub(crate) fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), String> {
        self.set(name, LinkAttribute::Mtu(mtu))
    }

    /// Sets a link up or down.
    pub(crate) fn set_up(&mut self, name: &str, up: bool) -> Result<(), String> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(name)?;
        message.header.change_mask = LinkFlags::Up;
        message.header.flags = if up { LinkFlags::Up } else { LinkFlags::empty() };
        self.change(Message::SetLink(message), 0)
    }

    /// Sets what of an aggregation can be set while it has ports.
    pub(crate) fn set_mode(&mut self, name: &str, mode: &Mode) -> Result<(), String> {
        let primary = match mode {
            Mode::ActiveBackup { primary: Some(port), .. } => self.index(port)?,
            _ => 0,
        };
        let mut message = LinkMessage::default();
        message.header.index = self.index(name)?;
        message.attributes = vec![LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Bond),
            LinkInfo::Data(InfoData::Bond(bond::change(mode, primary))),
        ])];
        self.change(Message::NewLink(message), 0)
    }

    fn set(&mut self, name: &str, attribute: LinkAttribute) -> Result<(), String> {
        let mut message = LinkMessage::default();
        message.header.index = self.index(name)?;
        message.attributes = vec![attribute];
        self.change(Message::SetLink(message), 0)
    }

    /// Sets an address, which may be set already.
    pub(crate) fn set_address(&mut self, link: &str, address: &Address) -> Result<(), String> {
        let message = self.address_message(link, address)?;
        self.change(Message::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Removes an address.
    pub(crate) fn remove_address(&mut self, link: &str, address: &Address) -> Result<(), String> {
        let message = self.address_message(link, address)?;
        self.change(Message::DelAddress(message), 0)
    }

    fn address_message(&mut self, link: &str, address: &Address) -> Result<AddressMessage, String> {
        let Cidr { address: ip, prefix } = address.cidr;
        let mut message = AddressMessage::default();
        message.header.family = family(ip);
        message.header.prefix_len = prefix;
        message.header.index = self.index(link)?;
        message.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
        if let (IpAddr::V4(last), 0..31) = (address.cidr.last(), prefix) {
            message.attributes.push(AddressAttribute::Broadcast(last));
        }
        if address.made {
            let mark = AddressProtocol::Other(MARK);
            message.attributes.push(AddressAttribute::Protocol(mark));
        }
        Ok(message)
    }

    /// Sets a route, in the place of one with its destination and metric.
    pub(crate) fn set_route(&mut self, route: &Route) -> Result<(), String> {
        let message = self.route_message(route)?;
        self.change(Message::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Sets an address of a lease, without the route to its network, for this number of seconds.
    pub(crate) fn set_leased(&mut self, link: &str, cidr: Cidr, left: u32) -> Result<(), String> {
        let mut message = self.address_message(link, &Address { cidr, made: false })?;
        let mut lifetime = CacheInfo::default();
        (lifetime.ifa_preferred, lifetime.ifa_valid) = (left, left);
        let attributes = &mut message.attributes;
        attributes.push(AddressAttribute::Protocol(AddressProtocol::Other(DHCP_MARK)));
        attributes.push(AddressAttribute::Flags(AddressFlags::Noprefixroute));
        attributes.push(AddressAttribute::CacheInfo(lifetime));
        self.change(Message::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Sets an address of a resource for this number of seconds, without duplicate detection: its
    /// owner is decided elsewhere.
    pub(crate) fn set_for(&mut self, link: &str, cidr: Cidr, left: u32) -> Result<(), String> {
        let mut message = self.address_message(link, &Address { cidr, made: false })?;
        let mut lifetime = CacheInfo::default();
        (lifetime.ifa_preferred, lifetime.ifa_valid) = (left, left);
        let attributes = &mut message.attributes;
        attributes.push(AddressAttribute::Protocol(AddressProtocol::Other(RESOURCE_MARK)));
        if !cidr.is_ipv4() {
            attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        attributes.push(AddressAttribute::CacheInfo(lifetime));
        self.change(Message::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Sets a route of a lease, for packets of at most `mtu` bytes.
    pub(crate) fn set_leased_route(
        &mut self,
        route: &Route,
        mtu: Option<u16>,
    ) -> Result<(), String> {
        let mut route = route.clone();
        route.metric += self.index(&route.link)?;
        let mut message = self.route_message(&route)?;
        let mtu = mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu.into())]));
        message.attributes.extend(mtu);
        self.change(Message::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// The index of a link and its hardware address.
    pub(crate) fn hardware(&mut self, name: &str) -> Result<(u32, Vec<u8>), String> {
        let link = self.link(name)?;
        let address = link.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => Some(bytes),
            _ => None,
        });
        Ok((link.header.index, address.unwrap_or_default()))
    }

    /// Whether a link is up and has a carrier.
    pub(crate) fn has_carrier(&mut self, name: &str) -> Result<bool, String> {
        Ok(raw_link(self.link(name)?).carrier)
    }

    /// Removes a route.
    pub(crate) fn remove_route(&mut self, route: &Route) -> Result<(), String> {
        let message = self.route_message(route)?;
        self.change(Message::DelRoute(message), 0)
    }

    fn route_message(&mut self, route: &Route) -> Result<RouteMessage, String> {
        let Cidr { address, prefix } = route.destination;
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = prefix;
        message.header.table = MAIN;
        message.header.protocol = RouteProtocol::from(route.protocol);
        message.header.kind = RouteType::Unicast;
        let connected = route.gateway.is_none() && address.is_ipv4();
        message.header.scope = if connected { RouteScope::Link } else { RouteScope::Universe };
        let attributes = &mut message.attributes;
        if prefix != 0 {
            attributes.push(RouteAttribute::Destination(route_address(address)));
        }
        attributes.push(RouteAttribute::Oif(self.index(&route.link)?));
        attributes.extend(route.gateway.map(|ip| RouteAttribute::Gateway(route_address(ip))));
        attributes.extend(route.source.map(|ip| RouteAttribute::PrefSource(route_address(ip))));
        if route.metric != 0 {
            attributes.push(RouteAttribute::Priority(route.metric));
        }
        Ok(message)
    }

    fn change(&mut self, message: Message, flags: u16) -> Result<(), String> {
        self.call(message, NLM_F_ACK | flags).map(drop)
    }
}

impl RawLink {
    /// What it is, given the name of each index.
    pub(crate) fn kind(&self, name: impl Fn(u32) -> Option<String>) -> Kind {
        let on = self.on.and_then(&name);
        let device = |on| Kind::Device { infiniband: self.infiniband, kind: self.kind.clone(), on };
        match (self.kind.as_str(), on) {
            ("vlan", Some(on)) => match self.vlan {
                Some(id) => Kind::Vlan { on, id },
                None => device(Some(on)),
            },
            ("ipoib", Some(on)) => match self.partition {
                Some((pkey, mode)) => match Pkey::new(pkey) {
                    Ok(pkey) => Kind::Partition { on, pkey, mode },
                    Err(_) => device(Some(on)),
                },
                None => device(Some(on)),
            },
            ("bond", on) => match self.bond.mode(&name) {
                Some(mode) => Kind::Aggregation(mode),
                None => device(on),
            },
            ("macvlan" | "macvtap" | "ipvlan" | "ipvtap" | "macsec", on) => device(on),
            // What a pair of veth links is connected to is not what it is made on.
            _ => device(None),
        }
    }
}

/// The request for a link of Plimsoll's, with attributes in the order of iproute2.
fn new_link(name: &str, kind: &Kind, mtu: u32, on: Option<u32>) -> LinkMessage {
    let info = match kind {
        Kind::Vlan { id, .. } => Some((InfoKind::Vlan, InfoData::Vlan(vec![InfoVlan::Id(*id)]))),
        Kind::Partition { pkey, mode, .. } => {
            let mode = match mode {
                LinkMode::Datagram => IpoibMode::Datagram,
                LinkMode::Connected => IpoibMode::Connected,
            };
            let data = vec![InfoIpoib::Pkey(pkey.full()), InfoIpoib::Mode(mode)];
            Some((InfoKind::Ipoib, InfoData::Ipoib(data)))
        }
        Kind::Aggregation(mode) => Some((InfoKind::Bond, InfoData::Bond(new_bond(mode)))),
        Kind::Device { .. } => None,
    };
    let mut message = LinkMessage::default();
    // It is marked from the first moment on.
    message.attributes = vec![LinkAttribute::Mtu(mtu), LinkAttribute::Group(MARK.into())];
    message.attributes.extend(on.map(LinkAttribute::Link));
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message.attributes.extend(info.map(|(kind, data)| {
        // The library would send the kind with a NUL, which iproute2 does not.
        let kind = DefaultNla::new(IFLA_INFO_KIND, kind.to_string().into_bytes());
        LinkAttribute::LinkInfo(vec![LinkInfo::Other(kind), LinkInfo::Data(data)])
    }));
    message
}

/// A request as it is sent.
fn encode(message: Message, flags: u16, sequence: u32) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.sequence_number = sequence;
    header.flags = NLM_F_REQUEST | flags;
    let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    bytes
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(a) => RouteAddress::Inet(a),
        IpAddr::V6(a) => RouteAddress::Inet6(a),
    }
}

fn raw_link(message: LinkMessage) -> RawLink {
    let header = &message.header;
    let mut link = RawLink {
        index: header.index,
        up: header.flags.contains(LinkFlags::Up),
        carrier: header.flags.contains(LinkFlags::LowerUp),
        infiniband: header.link_layer_type == LinkLayerType::Infiniband,
        ..RawLink::default()
    };
    let (mut on, mut elsewhere) = (None, false);
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::MinMtu(mtu) => link.mtu_range.0 = mtu,
            LinkAttribute::MaxMtu(mtu) => link.mtu_range.1 = mtu,
            LinkAttribute::Controller(index) => link.controller = index,
            LinkAttribute::Link(index) => on = Some(index),
            LinkAttribute::LinkNetNsId(_) => elsewhere = true,
            LinkAttribute::Group(group) => link.group = group,
            LinkAttribute::LinkInfo(list) => list.into_iter().for_each(|info| link.info(info)),
            LinkAttribute::AfSpecUnspec(list) => {
                link.advertisements = list.iter().any(accepts_advertisements);
            }
            _ => {}
        }
    }
    link.on = on.filter(|_| !elsewhere);
    link
}

fn accepts_advertisements(family: &AfSpecUnspec) -> bool {
    let AfSpecUnspec::Inet6(list) = family else { return false };
    list.iter().any(|spec| matches!(spec, AfSpecInet6::DevConf(conf) if conf.accept_ra > 0))
}

impl RawLink {
    fn info(&mut self, info: LinkInfo) {
        match info {
            LinkInfo::Kind(kind) => self.kind = kind.to_string(),
            LinkInfo::Data(InfoData::Vlan(list)) => {
                for attribute in list {
                    if let InfoVlan::Id(id) = attribute {
                        self.vlan = Some(id);
                    }
                }
            }
            LinkInfo::Data(InfoData::Ipoib(list)) => {
                let mut mode = LinkMode::Datagram;
                let mut number = None;
                for attribute in list {
                    match attribute {
                        InfoIpoib::Pkey(pkey) => number = Some(pkey),
                        InfoIpoib::Mode(IpoibMode::Connected) => mode = LinkMode::Connected,
                        _ => {}
                    }
                }
                self.partition = number.map(|pkey| (pkey, mode));
            }
            LinkInfo::PortData(port) => self.unused = bond::is_down(&port),
            LinkInfo::Data(InfoData::Bond(list)) => {
                list.into_iter().for_each(|attribute| self.bond.take(attribute));
            }
            _ => {}
        }
    }
}

fn raw_address(message: &AddressMessage) -> Option<RawAddress> {
    let header = &message.header;
    let (mut local, mut peer, mut protocol) = (None, None, 0);
    let mut permanent = false;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => local = Some(*ip),
            AddressAttribute::Address(ip) => peer = Some(*ip),
            AddressAttribute::Flags(flags) => permanent = flags.contains(AddressFlags::Permanent),
            AddressAttribute::Protocol(of) => protocol = u8::from(*of),
            _ => {}
        }
    }
    let ip = local.or(peer)?;
    let of_kernel =
        header.scope == AddressScope::Host || (header.scope == AddressScope::Link && ip.is_ipv6());
    // An address with a peer is of a point-to-point link, which is not configured here.
    let has_peer = peer.is_some_and(|peer| peer != ip);
    if of_kernel || has_peer || !permanent || protocol == DHCP_MARK {
        return None;
    }
    let cidr = Cidr::new(ip, header.prefix_len)?;
    Some(RawAddress { index: header.index, address: Address { cidr, made: protocol == MARK } })
}

fn raw_route(message: &RouteMessage) -> Option<RawRoute> {
    let header = &message.header;
    let of_kernel = [RouteProtocol::Kernel, RouteProtocol::Ra, RouteProtocol::IcmpRedirect];
    if header.table != MAIN
        || header.kind != RouteType::Unicast
        || header.tos != 0
        || header.flags.contains(RouteFlags::Cloned)
        || of_kernel.contains(&header.protocol)
        || u8::from(header.protocol) == DHCP_MARK
    {
        return None;
    }
    let is_ipv4 = header.address_family == AddressFamily::Inet;
    let any = if is_ipv4 { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let (mut destination, mut gateway, mut source) = (any, None, None);
    let (mut index, mut metric) = (None, 0);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(ip) => destination = ip_address(ip)?,
            RouteAttribute::Gateway(ip) => gateway = Some(ip_address(ip)?),
            RouteAttribute::PrefSource(ip) => source = Some(ip_address(ip)?),
            RouteAttribute::Oif(oif) => index = Some(*oif),
            RouteAttribute::Priority(priority) => metric = *priority,
            RouteAttribute::MultiPath(_)
            | RouteAttribute::NhId(_)
            | RouteAttribute::Via(_)
            | RouteAttribute::EncapType(_) => return None,
            _ => {}
        }
    }
    let destination = Cidr::new(destination, header.destination_prefix_length)?;
    let (link, protocol) = (String::new(), u8::from(header.protocol));
    let route = Route { destination, gateway, link, metric, source, protocol };
    Some(RawRoute { index: index?, route })
}

fn ip_address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(a) => Some(IpAddr::V4(*a)),
        RouteAddress::Inet6(a) => Some(IpAddr::V6(*a)),
        _ => None,
    }
}

/// The error of the kernel in its own words, where the message has them: NLMSGERR_ATTR_MSG, an
/// attribute that follows the request's header (`struct nlmsgerr`).
fn reason(error: &io::Error, message: &[u8]) -> String {
    sentence(message).map_or_else(|| error.to_string(), |words| format!("{words} ({error})"))
}

fn sentence(message: &[u8]) -> Option<String> {
    /// NLM_F_CAPPED: the request's payload is not repeated.
    const CAPPED: u16 = 0x100;
    /// NLM_F_ACK_TLVS: attributes follow.
    const HAS_ATTRIBUTES: u16 = 0x200;
    const TEXT: u16 = 1;
    const HEADERS: usize = 16 + 4;
    let half = |at: usize| Some(u16::from_ne_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let flags = half(6)?;
    if flags & HAS_ATTRIBUTES == 0 {
        return None;
    }
    let request = message.get(HEADERS..HEADERS + 4)?.try_into().ok()?;
    let request = if flags & CAPPED == 0 { u32::from_ne_bytes(request) as usize } else { 16 };
    let mut at = HEADERS.checked_add(request.next_multiple_of(4))?;
    loop {
        let (length, kind) = (usize::from(half(at)?), half(at + 2)?);
        let value = message.get(at + 4..at.checked_add(length)?)?;
        if kind & 0x3fff == TEXT {
            let text = value.strip_suffix(&[0]).unwrap_or(value);
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        at = at.checked_add(length.max(4).next_multiple_of(4))?;
    }
}

#[cfg(test)]
mod tests;
