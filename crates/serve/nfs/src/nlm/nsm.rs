//! NSM version 1: restart notifications of hosts, and the state number of this server.
//!
//! The server monitors no hosts for others: SM_MON is refused, and so is SM_SIMU_CRASH. A
//! notification applies to the hosts at its sender's address alone, whatever name it has: names can
//! be forged.

use std::net::IpAddr;
use std::sync::Arc;

use base::clock::NS_PER_S;
use base::limits::RESERVED_PORTS_END;
use probe::op::Protocol;
use vfs::recovery::{ClientId, ClientRecords};
use vfs::status::Status;
use wire::nlm4::Nlm4Stat;
use wire::nsm::{
    MonArgs, MonId, MyId, NSM_PROGRAM, NSM_V1, NotifyArgs, Proc, SmStat, SmStatRes, StatArgs,
    StatRes,
};
use wire::rpc;
use wire::xdr::{Decode, DecodeError, Encode, Reader, Writer};

use super::hosts::{self, same_name};
use super::status::Refusal;
use super::{Nlm, RECORDED_AS};
use crate::rpc::{Call, DispatchResult, Handled, Procedure, Program, plain};
use engine::transport::buffers::ReplyBuf;
use engine::transport::small::{Answer, Answers, Origin};

/// The operation that procedure 0 is counted as, behind those of NLM (`schema/nlm.toml`).
pub const OPS_AT: u8 = 24;

/// The state number of this run: the previous one plus 2, recorded before it is sent. It is stored
/// as a record that names no host. While nothing can be recorded, as on a full disk, it comes from
/// the clock: the next run has a different number all the same, and hosts compare nothing else.
pub(super) fn next_state(records: &dyn ClientRecords, known: &[ClientId], wall_ns: u64) -> u32 {
    let before: Vec<_> = known.iter().filter(|client| client.owner.is_empty()).collect();
    let number = |client: &&ClientId| {
        std::str::from_utf8(&client.principal).ok().and_then(|text| text.parse::<u32>().ok())
    };
    // Odd is up; some take it for a signed number.
    let odd = |number: u32| (number & (u32::MAX >> 1)) | 1;
    // If what was before is lost, it was smaller.
    let by_clock = odd((wall_ns / NS_PER_S) as u32);
    let last = before.iter().filter_map(number).max();
    let state = last.map_or(by_clock, |last| odd(last.wrapping_add(2)));
    let principal = state.to_string().into_bytes();
    let record = ClientId { protocol: RECORDED_AS, owner: Vec::new(), principal };
    let mut old = before.into_iter().filter(|client| **client != record);
    let done = records.record(&record);
    match done.and_then(|()| old.try_for_each(|client| records.forget(client))) {
        Ok(()) => state,
        Err(e) => {
            base::warning!("nfs", "the NSM state number could not be stored: {e}");
            by_clock.max(state)
        }
    }
}

/// The program, on connections.
pub(super) struct Nsm(pub(super) Arc<Nlm>);

/// The program, for datagrams.
pub(super) struct Datagrams(pub(super) Arc<Nlm>);

fn known(number: u32) -> bool {
    Proc(number).known_name().is_some()
}

impl Program for Nsm {
    fn number(&self) -> u32 {
        NSM_PROGRAM
    }

    fn version(&self) -> u32 {
        NSM_V1
    }

    fn protocol(&self) -> Protocol {
        Protocol::Nlm
    }

    fn procedure(&self, number: u32) -> Option<Procedure> {
        known(number).then_some(Procedure { number, non_idempotent: false })
    }

    fn reply_max(&self, _: Procedure, _: &Reader<'_>) -> usize {
        base::limits::REPLY_SMALL
    }

    fn handle(&self, procedure: Procedure, call: &mut Call<'_>) -> Handled {
        call.facts.op = OPS_AT + procedure.number as u8;
        let nlm = &self.0;
        let notification = nlm.operate(procedure.number, &mut call.args.clone(), call.out.vec())?;
        let Some((name, state)) = notification else { return Ok(DispatchResult::Done) };
        let from = (call.caller.address, call.caller.port());
        Ok(match nlm.restarted(from, (&name, state), call.may_block) {
            Err(Refusal::WouldBlock) => DispatchResult::WouldBlock(None),
            _ => DispatchResult::Done,
        })
    }

    fn has_status(&self, _: u32) -> bool {
        false
    }

    fn fail(&self, _: u32, _: Status, _: &mut ReplyBuf) -> u16 {
        // Nothing of NSM fails but for its arguments.
        0
    }
}

impl Answers for Datagrams {
    fn answer(&self, message: &[u8], origin: Origin) -> Answer {
        let (header, mut args) = match plain::open(message, NSM_PROGRAM, NSM_V1..=NSM_V1) {
            Ok(call) => call,
            Err(answer) => return answer,
        };
        let xid = header.xid;
        if !known(header.proc) {
            return plain::refused(|w| rpc::proc_unavail(w, xid));
        }
        let mut reply = plain::results(xid, &());
        match self.0.operate(header.proc, &mut args, &mut reply) {
            Err(_) => plain::refused(|w| rpc::garbage_args(w, xid)),
            Ok(None) => Answer::Now(reply),
            Ok(Some((name, state))) => {
                let nlm = Arc::clone(&self.0);
                Answer::Deferred(Box::new(move || {
                    // Where it may block it does not fail.
                    let from = (origin.address, origin.port);
                    let _ = nlm.restarted(from, (&name, state), true);
                    reply
                }))
            }
        }
    }
}

impl Nlm {
    /// Writes a procedure's results; returns the name and the state number of the host in a restart
    /// notification.
    fn operate(
        &self,
        proc: u32,
        r: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<(Vec<u8>, u32)>, DecodeError> {
        let w = &mut Writer::new(out);
        let state = self.state();
        match Proc(proc) {
            Proc::STAT => {
                StatArgs::decode(r)?;
                SmStatRes { res_stat: StatRes::FAIL, state }.encode(w);
            }
            Proc::MON => {
                MonArgs::decode(r)?;
                SmStatRes { res_stat: StatRes::FAIL, state }.encode(w);
            }
            Proc::UNMON => {
                MonId::decode(r)?;
                SmStat { state }.encode(w);
            }
            Proc::UNMON_ALL => {
                MyId::decode(r)?;
                SmStat { state }.encode(w);
            }
            Proc::NOTIFY => {
                let args = NotifyArgs::decode(r)?;
                return Ok(Some((args.mon_name.0.to_vec(), args.state)));
            }
            _ => {}
        }
        Ok(None)
    }

    /// A host at this address has restarted: its locks are released, and it has nothing to reclaim.
    /// The notification may come late, or twice, as hosts repeat it until it is answered: what the
    /// host has locked in its new state stays. Where only one host is known at the address its name
    /// is not compared: it may have another one than when it took its locks. Any user of the host
    /// can send a notification from an unprivileged port: it is ignored, and the reply does not
    /// differ.
    pub(super) fn restarted(
        &self,
        (address, port): (IpAddr, u16),
        (name, state): (&[u8], u32),
        may_block: bool,
    ) -> Result<Nlm4Stat, Refusal> {
        if self.reserved_ports && port >= RESERVED_PORTS_END {
            base::debug!(
                crate::rpc::node::NODE.name,
                "restart notification of {address} ignored: sent from unprivileged port {port}"
            );
            return Ok(Nlm4Stat::GRANTED);
        }
        if !may_block {
            return Err(Refusal::WouldBlock);
        }
        let here: Vec<_> = {
            let hosts = self.hosts.lock();
            hosts.iter().filter(|host| host.address == address).map(Arc::clone).collect()
        };
        let alone = here.len() == 1;
        let mut stay = Vec::new();
        for host in here.iter().filter(|host| alone || same_name(&host.name, name)) {
            if self.release_before(host, state) {
                stay.push(host.name.as_slice());
            }
        }
        // Those that have not been heard of since our own restart.
        let known: Vec<_> = self.records.known().iter().filter_map(hosts::recorded).collect();
        let known: Vec<_> = known.iter().filter(|(at, _)| *at == address).collect();
        let alone = known.len() == 1;
        let gone = known.iter().filter(|(_, host)| alone || same_name(host, name));
        for (at, host) in gone.filter(|(_, host)| !stay.contains(&host.as_slice())) {
            // If that fails it may reclaim what it does not want any more, until grace ends.
            let _paper = self.paper.lock();
            let _ = self.records.forget(&hosts::record(*at, host));
        }
        Ok(Nlm4Stat::GRANTED)
    }
}
