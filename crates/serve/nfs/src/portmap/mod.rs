//! The port mapper, version 2, and rpcbind, versions 3 and 4 (RFC 1833): the ports of this server's
//! own programs. A Linux client queries it for NLM, and for NFS and MOUNT where the mount command
//! does not name their ports.
//!
//! No program can register here, and CALLIT is not served. DUMP is served over TCP only: over UDP a
//! forged sender would get more bytes than its forger sent.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base::clock::{NS_PER_S, wall_ns};
use base::limits::PORTMAP_ENTRIES_MAX;
use wire::mount3::List;
use wire::portmap::{
    IPPROTO_TCP, IPPROTO_UDP, Mapping, PMAP_PROGRAM, PMAP_V2, Proc, RPCB_V4, Rpcb, RpcbString,
    rpcb, uaddr, uaddr_parts,
};
use wire::rpc::{self, CallHeader};
use wire::xdr::{Decode, DecodeError, Reader};

use crate::rpc::plain;
use engine::exec::Engine;
use engine::transport::small::{self, Answer, Answers, Origin};
use engine::transport::{Runtimes, Tasks, listener};

/// A program that is served, by one transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Program.
    pub prog: u32,
    /// Version.
    pub vers: u32,
    /// Whether it is over UDP; over TCP otherwise.
    pub udp: bool,
    /// Port.
    pub port: u16,
}

/// What the port mapper knows.
#[derive(Debug)]
pub struct PortMap {
    entries: Vec<Entry>,
    address: IpAddr,
}

impl PortMap {
    /// Knows these programs (the first [`PORTMAP_ENTRIES_MAX`]), served at `address`, and itself
    /// on `port`.
    pub fn new(address: IpAddr, port: u16, programs: Vec<Entry>) -> Self {
        let own = (PMAP_V2..=RPCB_V4).flat_map(|vers| {
            [false, true].map(|udp| Entry { prog: PMAP_PROGRAM, vers, udp, port })
        });
        Self { entries: own.chain(programs).take(PORTMAP_ENTRIES_MAX).collect(), address }
    }

    /// The port of a program; of another version if there is not this one: the program itself then
    /// replies PROG_MISMATCH.
    fn find(&self, prog: u32, vers: u32, udp: bool, only: bool) -> Option<u16> {
        let of = |e: &&Entry| e.prog == prog && e.udp == udp;
        let exact = self.entries.iter().filter(of).find(|e| e.vers == vers);
        let any = || self.entries.iter().find(of).filter(|_| !only);
        exact.or_else(any).map(|e| e.port)
    }

    /// Version 2.
    fn pmap(
        &self,
        header: &CallHeader<'_>,
        args: &mut Reader<'_>,
        origin: Origin,
    ) -> Result<Option<Vec<u8>>, DecodeError> {
        let xid = header.xid;
        Ok(Some(match Proc(header.proc) {
            Proc::NULL => plain::results(xid, &()),
            Proc::SET | Proc::UNSET => {
                Mapping::decode(args)?;
                plain::results(xid, &false)
            }
            Proc::GETPORT => {
                let asked = Mapping::decode(args)?;
                let udp = match asked.prot {
                    IPPROTO_TCP => Some(false),
                    IPPROTO_UDP => Some(true),
                    _ => None,
                };
                let port = udp.and_then(|udp| self.find(asked.prog, asked.vers, udp, false));
                plain::results(xid, &u32::from(port.unwrap_or(0)))
            }
            Proc::DUMP if origin.connected => {
                let all = self.entries.iter().map(|e| Mapping {
                    prog: e.prog,
                    vers: e.vers,
                    prot: if e.udp { IPPROTO_UDP } else { IPPROTO_TCP },
                    port: u32::from(e.port),
                });
                plain::results(xid, &List(all.collect()))
            }
            _ => return Ok(None),
        }))
    }

    /// Versions 3 and 4.
    fn rpcb(
        &self,
        header: &CallHeader<'_>,
        args: &mut Reader<'_>,
        origin: Origin,
    ) -> Result<Option<Vec<u8>>, DecodeError> {
        let xid = header.xid;
        Ok(Some(match header.proc {
            rpcb::GETVERSADDR if header.vers != RPCB_V4 => return Ok(None),
            rpcb::GETADDR | rpcb::GETVERSADDR => {
                let asked = Rpcb::decode(args)?;
                let only = header.proc == rpcb::GETVERSADDR;
                let found = self.address_of(&asked, origin, only).unwrap_or_default();
                plain::results(xid, &RpcbString(found.as_bytes()))
            }
            rpcb::GETTIME => plain::results(xid, &((wall_ns() / NS_PER_S) as u32)),
            proc => match Proc(proc) {
                Proc::NULL => plain::results(xid, &()),
                Proc::SET | Proc::UNSET => {
                    Rpcb::decode(args)?;
                    plain::results(xid, &false)
                }
                Proc::DUMP if origin.connected => self.rpcb_list(xid),
                _ => return Ok(None),
            },
        }))
    }

    fn address_of(&self, asked: &Rpcb<'_>, origin: Origin, only: bool) -> Option<String> {
        let udp = match asked.netid.0 {
            b"tcp" | b"tcp6" => false,
            b"udp" | b"udp6" => true,
            b"" => !origin.connected,
            _ => return None,
        };
        let port = self.find(asked.prog, asked.vers, udp, only)?;
        // The client sends the address of this server that it uses.
        let hint = uaddr_parts(asked.addr.0).map(|(host, _)| host);
        let hint = hint.filter(|host| host.parse::<IpAddr>().is_ok());
        Some(match hint {
            Some(host) if self.address.is_unspecified() => uaddr(host, port),
            _ => uaddr(&self.address.to_string(), port),
        })
    }

    fn rpcb_list(&self, xid: u32) -> Vec<u8> {
        let v6 = self.address.is_ipv6();
        let host = self.address.to_string();
        let all: Vec<_> = self.entries.iter().map(|e| (*e, uaddr(&host, e.port))).collect();
        let list = all.iter().map(|(e, addr)| Rpcb {
            prog: e.prog,
            vers: e.vers,
            netid: RpcbString(match (e.udp, v6) {
                (false, false) => b"tcp",
                (false, true) => b"tcp6",
                (true, false) => b"udp",
                (true, true) => b"udp6",
            }),
            addr: RpcbString(addr.as_bytes()),
            owner: RpcbString(b"plimsoll"),
        });
        plain::results(xid, &List(list.collect()))
    }
}

impl Answers for PortMap {
    fn answer(&self, message: &[u8], origin: Origin) -> Answer {
        let (header, mut args) = match plain::open(message, PMAP_PROGRAM, PMAP_V2..=RPCB_V4) {
            Ok(call) => call,
            Err(answer) => return answer,
        };
        let done = match header.vers {
            PMAP_V2 => self.pmap(&header, &mut args, origin),
            _ => self.rpcb(&header, &mut args, origin),
        };
        match done {
            Ok(Some(reply)) => Answer::Now(reply),
            Ok(None) => plain::refused(|w| rpc::proc_unavail(w, header.xid)),
            Err(_) => plain::refused(|w| rpc::garbage_args(w, header.xid)),
        }
    }
}

/// Serves it over TCP and UDP, as some of `tasks`. The engine has separate budgets.
///
/// # Errors
/// One of the sockets cannot be opened.
pub fn start(
    at: SocketAddr,
    (map, engine): (PortMap, &Arc<Engine>),
    runtimes: &Runtimes,
    tasks: &mut Tasks,
) -> io::Result<()> {
    let (udp, tcp) = (small::bind(at)?, listener::listen(at)?);
    let service: Arc<dyn Answers> = Arc::new(map);
    let (other, shared) = (Arc::clone(&service), Arc::clone(engine));
    // Both sockets are good; that the runtimes end ends them, too.
    tasks.spawn_endless(runtimes, 0, move || small::datagrams(udp, other, shared));
    small::connections(tcp, &service, engine, runtimes, tasks);
    Ok(())
}

#[cfg(test)]
mod tests;
