//! What a PDU is, and what is done with it.

use std::sync::atomic::Ordering;

use base::limits::{ISCSI_IMMEDIATE_MAX, ISCSI_TRANSFER_MAX, SCSI_CDB_MAX};
use probe::names::NO_SHARE;
use probe::op::{OpRecord, flag};
use probe::phases::PhaseClock;
use wire::iscsi::command::ScsiCommand;
use wire::iscsi::frame::Pdu;
use wire::iscsi::logout::{LogoutOutcome, LogoutReason, LogoutRequest, LogoutResponse};
use wire::iscsi::reject::RejectReason;
use wire::iscsi::{Bhs, Request};
use wire::scsi::cdb::{Cdb, Data};
use wire::scsi::lun::Lun;
use wire::scsi::{Asc, Sense, SenseKey};

use super::conn::stream::Wire;
use super::ended::Ended;
use super::scsi::{self, Done, Fail, target};
use super::session::{About, Session};
use super::state::window::Verdict;
use super::unit::Unit;
use engine::transport::buffers::ReplyBuf;

/// What a command is to be done, and what it needs for that.
pub(super) struct PreparedCommand {
    /// What is then done, or why it is not.
    pub request: Result<scsi::Request, Done>,
    /// What is sent with a failure.
    pub buffer: ReplyBuf,
    /// Bytes of data that it takes.
    pub needs: u64,
    /// Number of its unit in statistics.
    pub statistic: u16,
}

impl Session {
    /// Handles a PDU.
    ///
    /// # Errors
    /// The connection must end; what was put until then still goes out.
    pub fn take(&mut self, wire: &mut Wire, pdu: &Pdu<'_>, arrived_ns: u64) -> Result<(), Ended> {
        if self.leaves {
            return Err(Ended::LoggedOut);
        }
        let bhs = &pdu.head.bhs;
        let (data, is_whole) = match pdu.data {
            Ok(data) => (data, true),
            Err(_) => (&[][..], false),
        };
        let request = match Request::decode(&pdu.head, data) {
            Ok(request) => request,
            Err(error) => {
                self.reject(wire, error.reason(), bhs);
                return Err(Ended::Broken);
            }
        };
        if !is_whole {
            self.count_digest_error();
            self.reject(wire, RejectReason::DATA_DIGEST_ERROR, bhs);
            return self.damaged(wire, &request, arrived_ns);
        }
        match request {
            Request::ScsiCommand(command) => self.command(wire, &command, bhs, arrived_ns),
            Request::DataOut(data) => self.data_out(wire, &data),
            Request::NopOut(nop) => self.nop(wire, &nop, bhs),
            Request::Text(text) => return self.text(wire, &text, bhs),
            Request::Tmf(request) => self.manage(wire, &request, bhs),
            Request::Logout(logout) => return self.log_out(wire, &logout),
            Request::Snack(_) => self.reject(wire, RejectReason::SNACK_REJECT, bhs),
            Request::Login(_) => {
                self.reject(wire, RejectReason::PROTOCOL_ERROR, bhs);
                return Err(Ended::Broken);
            }
        }
        if self.leaves { Err(Ended::LoggedOut) } else { Ok(()) }
    }

    /// Whether a request that is in the window, or is immediate, may be taken.
    pub fn may_take(
        &mut self,
        wire: &mut Wire,
        (immediate, sn): (bool, wire::iscsi::Serial),
        bhs: &Bhs,
    ) -> bool {
        if !immediate {
            return self.window.judge(sn) == Verdict::Take;
        }
        if self.immediate >= ISCSI_IMMEDIATE_MAX {
            self.reject(wire, RejectReason::TOO_MANY_IMMEDIATE, bhs);
            return false;
        }
        self.immediate += 1;
        true
    }

    /// A PDU with a wrong data digest, which is not used. The command that it belongs to fails
    /// (RFC 7143 §7.8).
    fn damaged(
        &mut self,
        wire: &mut Wire,
        request: &Request<'_>,
        arrived_ns: u64,
    ) -> Result<(), Ended> {
        let sense = Sense::new(SenseKey::ABORTED_COMMAND, Asc::PROTOCOL_CRC_ERROR);
        match request {
            Request::ScsiCommand(command) => {
                if !command.immediate && self.window.judge(command.sn.cmd_sn) == Verdict::Ignore {
                    return Ok(());
                }
                self.immediate += usize::from(command.immediate);
                let record = self.record(command.cdb.first.first().copied().unwrap_or_default());
                let about = self.about(command, record, arrived_ns);
                let failed = Done::failed(Fail::Sense(sense));
                self.respond(wire, &about, &failed, ReplyBuf::default());
                Ok(())
            }
            Request::DataOut(data) => {
                self.fail_gathering(wire, data.itt, sense);
                Ok(())
            }
            // Others have nothing that could fail; the initiator knows by the Reject.
            _ => Err(Ended::Broken),
        }
    }

    fn about(&self, command: &ScsiCommand<'_>, record: OpRecord, arrived_ns: u64) -> About {
        let mut clock = PhaseClock::new(arrived_ns);
        clock.resume(self.now_ns);
        About {
            itt: command.itt,
            immediate: command.immediate,
            read: command.read,
            expected: command.expected_length,
            asked: 0,
            lun: Lun(command.lun).number(),
            record,
            arrived_ns,
            clock,
        }
    }

    fn command(&mut self, wire: &mut Wire, command: &ScsiCommand<'_>, bhs: &Bhs, arrived_ns: u64) {
        if !self.may_take(wire, (command.immediate, command.sn.cmd_sn), bhs) {
            return;
        }
        let mut room = [0; SCSI_CDB_MAX];
        let cdb = command.cdb.join(&mut room).unwrap_or_default();
        let number = Lun(command.lun).number();
        let record = self.record(cdb.first().copied().unwrap_or_default());
        let about = self.about(command, record, arrived_ns);
        if self.tasks.contains_key(&command.itt) {
            self.reject(wire, RejectReason::TASK_IN_PROGRESS, bhs);
            return self.forget(&about);
        }
        if self.joined.is_none() {
            // A discovery session has no commands (§4.3).
            self.reject(wire, RejectReason::COMMAND_NOT_SUPPORTED, bhs);
            return self.forget(&about);
        }
        let mut meant = self.prepare(number, cdb, command);
        let is_unsolicited = !command.data.is_empty() || !command.is_final;
        let breaks_rules = (!command.data.is_empty() && !self.parameters.immediate_data)
            || (!command.is_final && self.parameters.initial_r2t);
        if is_unsolicited && breaks_rules {
            let asc = Asc::UNEXPECTED_UNSOLICITED_DATA;
            let sense = Sense::new(SenseKey::ABORTED_COMMAND, asc);
            meant.request = Err(Done::failed(Fail::Sense(sense)));
        }
        let about = About { record: described(about.record, &meant), ..about };
        self.gather(wire, command, about, meant);
    }

    /// What a command is to do: on its unit, or what is answered where there is none.
    fn prepare(
        &mut self,
        number: Option<u16>,
        cdb: &[u8],
        command: &ScsiCommand<'_>,
    ) -> PreparedCommand {
        let mut buffer = ReplyBuf::default();
        let none = |request, buffer| PreparedCommand {
            request: Err(request),
            buffer,
            needs: 0,
            statistic: NO_SHARE,
        };
        let Some(joined) = &mut self.joined else {
            return none(Done::failed(Fail::Status(wire::scsi::Status::BUSY)), buffer);
        };
        let Some((unit, nexus)) = number.and_then(|number| joined.find(number)) else {
            let (target, name) = (joined.target(), &joined.port().name);
            let done = target::answer_for(target, name, cdb, &mut buffer);
            return none(done, buffer);
        };
        match scsi::admit(&unit, &nexus, cdb) {
            Err(fail) => {
                PreparedCommand { statistic: number_of(&unit), ..none(Done::failed(fail), buffer) }
            }
            Ok(cdb) => {
                let data = cdb.data(unit.identity.block);
                let needs = match data {
                    // What is more is refused before it comes.
                    Data::Out(bytes) if bytes <= 2 * ISCSI_TRANSFER_MAX as u64 => bytes,
                    _ => 0,
                };
                let statistic = number_of(&unit);
                let target = std::sync::Arc::clone(joined.target());
                let limit = limit_of(command, data);
                let request = scsi::Request { unit, nexus, target, cdb, limit, mark: None };
                PreparedCommand { request: Ok(request), buffer, needs, statistic }
            }
        }
    }

    fn log_out(&mut self, wire: &mut Wire, logout: &LogoutRequest) -> Result<(), Ended> {
        let outcome = match logout.reason {
            LogoutReason::CloseConnection if logout.cid != self.cid => LogoutOutcome::NO_CID,
            LogoutReason::CloseSession | LogoutReason::CloseConnection => LogoutOutcome::CLOSED,
            LogoutReason::RemoveForRecovery => LogoutOutcome::NO_RECOVERY,
        };
        if !logout.immediate && self.window.judge(logout.sn.cmd_sn) == Verdict::Ignore {
            return Ok(());
        }
        if !logout.immediate {
            self.window.end();
        }
        let sn = self.status_sn();
        wire.put(&LogoutResponse { outcome, itt: logout.itt, sn, time2wait: 0, time2retain: 0 });
        match outcome {
            LogoutOutcome::CLOSED => Err(Ended::LoggedOut),
            _ => Ok(()),
        }
    }
}

/// Bytes that the initiator sends, or takes: none if it has not announced that it takes any, for
/// nothing would be sent, nor is memory reserved ([`About::reply_max`]).
const fn limit_of(command: &ScsiCommand<'_>, data: Data) -> u32 {
    match data {
        Data::In(_) if !command.read => 0,
        // What sends data for a command that takes none is refused by its length.
        _ => command.expected_length,
    }
}

/// The number of a unit in statistics.
fn number_of(unit: &Unit) -> u16 {
    unit.statistic.load(Ordering::Relaxed)
}

/// The record of a command, with what it is about.
fn described(record: OpRecord, meant: &PreparedCommand) -> OpRecord {
    let record = OpRecord { share: meant.statistic, ..record };
    let Ok(request) = &meant.request else { return record };
    let (blocks, inward) = match request.cdb {
        Cdb::Read(io) => (io.blocks, 0),
        Cdb::Write(io) | Cdb::OrWrite(io) | Cdb::CompareAndWrite(io) => (io.blocks, flag::INWARD),
        Cdb::WriteAndVerify(io) => (io.blocks, flag::INWARD),
        _ => return record,
    };
    let block = u64::from(request.unit.identity.block);
    OpRecord {
        offset: blocks.lba.saturating_mul(block),
        size: u32::try_from(u64::from(blocks.count) * block).unwrap_or(u32::MAX),
        flags: record.flags | flag::HAS_RANGE | inward,
        ..record
    }
}

#[cfg(test)]
mod tests;
