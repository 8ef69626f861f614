//! Addresses of resources of a cluster: set for a few seconds at a time, so that the kernel removes
//! one that its head does not set again; and announced, so that neighbours send to this machine.

pub mod reach;
pub mod resets;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::cidr::Cidr;
use crate::netlink::Netlink;

/// All nodes of a link (RFC 4291, section 2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Advertisements with another hop limit are ignored (RFC 4861, section 7.1.2).
const HOPS: u32 = 255;

/// The addresses of resources in the network namespace of the thread that has opened this.
#[derive(Debug)]
pub struct ResourceAddresses {
    netlink: Netlink,
}

impl ResourceAddresses {
    /// Opens the network.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        Ok(Self { netlink: Netlink::open()? })
    }

    /// Sets an address for this number of seconds from now, also if it is set already.
    ///
    /// # Errors
    /// The kernel's reason, for example that there is no such link.
    pub fn set(&mut self, link: &str, cidr: Cidr, seconds: u32) -> Result<(), String> {
        self.netlink.set_for(link, cidr, seconds)
    }

    /// Removes an address. One that is gone is no error.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn remove(&mut self, link: &str, cidr: Cidr) -> Result<(), String> {
        let address = crate::state::Address { cidr, made: false };
        match self.netlink.remove_address(link, &address) {
            // EADDRNOTAVAIL, in the words of the C library.
            Err(why) if why.contains("Cannot assign requested address") => Ok(()),
            done => done,
        }
    }

    /// Announces that an address is at this link: by ARP (RFC 5227, section 3) or by an unsolicited
    /// neighbour advertisement (RFC 4861, section 7.2.6).
    ///
    /// # Errors
    /// The link has no hardware address of Ethernet, or the kernel refuses.
    pub fn announce(&mut self, link: &str, address: IpAddr) -> Result<(), String> {
        let (index, hardware) = self.netlink.hardware(link)?;
        let Ok(hardware) = <[u8; 6]>::try_from(hardware) else {
            return Err(format!("the link {link} has no hardware address of Ethernet"));
        };
        let sent = match address {
            IpAddr::V4(address) => send_arp(index, hardware, address),
            IpAddr::V6(address) => send_advertisement(index, hardware, address),
        };
        sent.map_err(|e| e.to_string())
    }
}

/// An ARP request for the address itself: all neighbours that know it learn the new hardware
/// address.
fn gratuitous(hardware: [u8; 6], address: Ipv4Addr) -> Vec<u8> {
    // Ethernet, IPv4, lengths 6 and 4, request.
    let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1];
    packet.extend(hardware);
    packet.extend(address.octets());
    packet.extend([0; 6]);
    packet.extend(address.octets());
    packet
}

fn send_arp(index: u32, hardware: [u8; 6], address: Ipv4Addr) -> io::Result<()> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: plain numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned this descriptor, which nothing else has.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let to = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ARP as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0],
    };
    let packet = gratuitous(hardware, address);
    // SAFETY: pointers and lengths describe `packet` and `to`, which outlive the call.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            0,
            (&raw const to).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// An advertisement that overrides what neighbours know; the kernel fills in its checksum.
fn advertisement(hardware: [u8; 6], address: Ipv6Addr) -> Vec<u8> {
    let mut packet = vec![136, 0, 0, 0, 0x20, 0, 0, 0];
    packet.extend(address.octets());
    // The target's hardware address: option 2, 8 bytes.
    packet.extend([2, 1]);
    packet.extend(hardware);
    packet
}

fn send_advertisement(index: u32, hardware: [u8; 6], address: Ipv6Addr) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    socket.set_multicast_hops_v6(HOPS)?;
    socket.set_multicast_if_v6(index)?;
    socket.bind(&SocketAddrV6::new(address, 0, 0, 0).into())?;
    let to = SocketAddrV6::new(ALL_NODES, 0, 0, index);
    socket.send_to(&advertisement(hardware, address), &to.into()).map(drop)
}

#[cfg(test)]
mod tests;
