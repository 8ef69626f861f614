//! Options of messages, with what they become of a lease.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use super::{MESSAGE_MAX, Mac, Query};
use crate::cidr::Cidr;
use crate::dhcp::{FOR_EVER, LIST_MAX, Lease};
use crate::state::Dns;

const MASK: u8 = 1;
const ROUTER: u8 = 3;
const NAME_SERVERS: u8 = 6;
const DOMAIN: u8 = 15;
const MTU: u8 = 26;
const ADDRESS: u8 = 50;
const LEASE_TIME: u8 = 51;
const OVERLOAD: u8 = 52;
const TYPE: u8 = 53;
const SERVER: u8 = 54;
const WANTED: u8 = 55;
const SIZE_MAX: u8 = 57;
const RENEW_TIME: u8 = 58;
const REBIND_TIME: u8 = 59;
const CLIENT: u8 = 61;
const SEARCH: u8 = 119;
const ROUTES: u8 = 121;
const PAD: u8 = 0;
const END: u8 = 255;

const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;
const NAK: u8 = 6;
const RELEASE: u8 = 7;

/// Options that are requested; that for routes comes before that for routers (RFC 3442).
const REQUESTED: [u8; 10] =
    [MASK, ROUTES, ROUTER, NAME_SERVERS, DOMAIN, MTU, LEASE_TIME, RENEW_TIME, REBIND_TIME, SEARCH];
/// Most labels of a name that are followed, so that pointers in a circle end.
const LABELS_MAX: usize = 128;

/// A reply of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// DHCPOFFER.
    Offer {
        /// The server.
        server: Ipv4Addr,
        /// What it offers.
        address: Ipv4Addr,
    },
    /// DHCPACK; the lease begins at the time 0, which the receiver replaces.
    Given(Lease),
    /// DHCPNAK, with its server if it is named.
    Refused(Option<Ipv4Addr>),
}

/// Writes the options of a request, with their end.
pub(super) fn write(ask: Query, mac: Mac, out: &mut Vec<u8>) {
    let mut option = |code: u8, bytes: &[u8]| {
        out.extend([code, bytes.len() as u8]);
        out.extend(bytes);
    };
    let kind = match ask {
        Query::Discover(_) => DISCOVER,
        Query::Select { .. } | Query::Verify(_) | Query::Extend(_) => REQUEST,
        Query::Release { .. } => RELEASE,
    };
    option(TYPE, &[kind]);
    // Of the type 1, Ethernet.
    let [a, b, c, d, e, f] = mac;
    option(CLIENT, &[1, a, b, c, d, e, f]);
    match ask {
        Query::Discover(Some(address)) | Query::Verify(address) => {
            option(ADDRESS, &address.octets());
        }
        Query::Select { server, address } => {
            option(ADDRESS, &address.octets());
            option(SERVER, &server.octets());
        }
        Query::Release { server, .. } => return option(SERVER, &server.octets()),
        // Neither names a server, so that any that has the lease extends it.
        Query::Discover(None) | Query::Extend(_) => {}
    }
    option(SIZE_MAX, &(MESSAGE_MAX as u16).to_be_bytes());
    option(WANTED, &REQUESTED);
    out.push(END);
}

/// The options of a reply; what comes in parts is joined (RFC 3396).
pub(super) struct Options(BTreeMap<u8, Vec<u8>>);

impl Options {
    /// Reads options, and those that are in the fields for a file and a server's name.
    pub(super) fn read(bytes: &[u8], file: &[u8], server_name: &[u8]) -> Self {
        let mut all = Self(BTreeMap::new());
        all.append(bytes);
        let overload = all.byte(OVERLOAD).unwrap_or(0);
        if overload & 1 != 0 {
            all.append(file);
        }
        if overload & 2 != 0 {
            all.append(server_name);
        }
        all
    }

    /// What is cut off is left out.
    fn append(&mut self, mut rest: &[u8]) {
        while let Some((code, after)) = rest.split_first() {
            rest = match (*code, after.split_first()) {
                (PAD, _) => after,
                (END, _) | (_, None) => return,
                (code, Some((length, after))) => {
                    let Some((value, after)) = after.split_at_checked(usize::from(*length)) else {
                        return;
                    };
                    self.0.entry(code).or_default().extend(value);
                    after
                }
            };
        }
    }

    fn bytes(&self, code: u8) -> &[u8] {
        self.0.get(&code).map_or(&[], Vec::as_slice)
    }

    fn byte(&self, code: u8) -> Option<u8> {
        <[u8; 1]>::try_from(self.bytes(code)).ok().map(|[byte]| byte)
    }

    fn number(&self, code: u8) -> Option<u32> {
        self.bytes(code).try_into().ok().map(u32::from_be_bytes)
    }

    fn addresses(&self, code: u8) -> impl Iterator<Item = Ipv4Addr> {
        let all = self.bytes(code).chunks_exact(4);
        all.filter_map(|one| <[u8; 4]>::try_from(one).ok()).map(Ipv4Addr::from).take(LIST_MAX)
    }

    /// What a server replies that gives this address.
    pub(super) fn reply(&self, address: Ipv4Addr) -> Option<Reply> {
        let server = self.addresses(SERVER).next();
        match self.byte(TYPE)? {
            OFFER => Some(Reply::Offer { server: server?, address }),
            ACK => self.lease(server?, address).map(Reply::Given),
            NAK => Some(Reply::Refused(server)),
            _ => None,
        }
    }

    fn lease(&self, server: Ipv4Addr, address: Ipv4Addr) -> Option<Lease> {
        let mask = self.number(MASK)?;
        let prefix = mask.leading_ones();
        let is_mask = mask.checked_shl(prefix).unwrap_or(0) == 0;
        let cidr = Cidr::new(IpAddr::V4(address), prefix as u8).filter(|_| is_mask)?;
        let valid_s = self.number(LEASE_TIME)?;
        let (renew_s, rebind_s) = self.times(valid_s);
        let servers = self.addresses(NAME_SERVERS).map(IpAddr::V4).collect();
        let dns = Dns { servers, domains: self.domains() };
        let mtu = self.bytes(MTU).try_into().ok().map(u16::from_be_bytes);
        let routes = self.routes();
        Some(Lease { cidr, server, routes, dns, mtu, obtained: 0, renew_s, rebind_s, valid_s })
    }

    /// T1 and T2, in their order; RFC 2131, section 4.4.5, has the ones that are used otherwise.
    fn times(&self, valid: u32) -> (u32, u32) {
        let named = self.number(RENEW_TIME).zip(self.number(REBIND_TIME));
        let sound = |(renew, rebind): &(u32, u32)| 0 < *renew && renew < rebind && *rebind < valid;
        if valid == FOR_EVER {
            return (FOR_EVER, FOR_EVER);
        }
        named.filter(sound).unwrap_or((valid / 2, valid - valid / 8))
    }

    fn domains(&self) -> Vec<String> {
        let list = names(self.bytes(SEARCH));
        if !list.is_empty() {
            return list;
        }
        let text = String::from_utf8_lossy(self.bytes(DOMAIN));
        let text = text.trim_end_matches('\0');
        (!text.is_empty()).then(|| text.to_owned()).into_iter().collect()
    }

    /// Routes of the option for them, which counts instead of the router (RFC 3442). Networks that
    /// are connected come first: routers are reached by them.
    fn routes(&self) -> Vec<(Cidr, Option<Ipv4Addr>)> {
        if self.0.contains_key(&ROUTES) {
            let (near, far): (Vec<_>, Vec<_>) =
                classless(self.bytes(ROUTES)).into_iter().partition(|(_, by)| by.is_none());
            return near.into_iter().chain(far).collect();
        }
        let all = Cidr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let router = self.addresses(ROUTER).find(|router| !router.is_unspecified());
        all.zip(router).map(|(all, router)| (all, Some(router))).into_iter().collect()
    }
}

/// Networks with their routers (RFC 3442): the length of a prefix, its bytes, the router.
fn classless(mut rest: &[u8]) -> Vec<(Cidr, Option<Ipv4Addr>)> {
    let mut routes = Vec::new();
    while let Some((&prefix, after)) = rest.split_first() {
        let significant = usize::from(prefix).div_ceil(8);
        if significant > 4 || routes.len() == LIST_MAX {
            break;
        }
        let Some((network, after)) = after.split_at_checked(significant) else { break };
        let Some((router, after)) = after.split_first_chunk::<4>() else { break };
        let mut octets = [0; 4];
        for (octet, byte) in octets.iter_mut().zip(network) {
            *octet = *byte;
        }
        let router = Ipv4Addr::from(*router);
        let router = (!router.is_unspecified()).then_some(router);
        if let Some(cidr) = Cidr::new(IpAddr::V4(octets.into()), prefix) {
            routes.push((cidr.network(), router));
        }
        rest = after;
    }
    routes
}

/// Names as in DNS, compressed within the option (RFC 3397).
fn names(bytes: &[u8]) -> Vec<String> {
    let mut list = Vec::new();
    let mut at = 0;
    while list.len() < LIST_MAX && at < bytes.len() {
        let Some((name, after)) = name(bytes, at) else { break };
        list.push(name);
        at = after;
    }
    list
}

/// The name at this place, and what follows it.
fn name(bytes: &[u8], start: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    let (mut at, mut after) = (start, None);
    for _ in 0..LABELS_MAX {
        let length = usize::from(*bytes.get(at)?);
        match length >> 6 {
            0 if length == 0 => {
                return Some((labels.join("."), after.unwrap_or(at + 1)));
            }
            0 => {
                let label = bytes.get(at + 1..at + 1 + length)?;
                labels.push(String::from_utf8_lossy(label).into_owned());
                at += 1 + length;
            }
            3 => {
                after.get_or_insert(at + 2);
                at = (length & 0x3f) << 8 | usize::from(*bytes.get(at + 1)?);
            }
            _ => return None,
        }
    }
    None
}
