//! How a command is answered: data with the status in its last PDU, or a response.

use std::ops::Range;
use std::rc::Rc;

use vfs::mapped::Slice;
use wire::iscsi::Serial;
use wire::iscsi::command::{Residual, ScsiResponse, ServiceResponse};
use wire::iscsi::data::{DataIn, DataStatus};
use wire::iscsi::negotiate::Parameters;
use wire::scsi::Status;
use wire::scsi::sense::Format;

use super::conn::stream::Wire;
use super::scsi::Done;
use super::session::{About, Session};
use engine::transport::buffers::ReplyBuf;

impl Session {
    /// Answers a command.
    pub fn respond(&mut self, wire: &mut Wire, about: &About, done: &Done, buffer: ReplyBuf) {
        self.forget(about);
        // It hears of it now; with a command that was aborted it never does.
        if let Some((nexus, written)) = &done.settles {
            nexus.settle(*written);
        }
        let room = if about.read { about.expected as usize } else { 0 };
        let count = if done.sense.is_none() { buffer.len().min(room) } else { 0 };
        let residual = Residual::of(about.expected, done.length);
        let moved = match done.status {
            Status::GOOD if about.record.flags & probe::op::flag::HAS_RANGE != 0 => {
                (done.length as usize).min(about.expected as usize)
            }
            _ => 0,
        };
        if count > 0 {
            let buffer = Rc::new(buffer);
            self.data_in(wire, about, (done.status, residual), count, |wire, pdu, piece| {
                wire.put_data(pdu, &buffer, piece);
            });
            self.measure(wire, about, done, moved);
            if let Ok(buffer) = Rc::try_unwrap(buffer) {
                self.core.buffers.give_reply(buffer);
            }
            return;
        }
        self.core.buffers.give_reply(buffer);
        let mut sense = Vec::new();
        if let Some(data) = &done.sense {
            data.put(self.sense_format(about), &mut sense);
        }
        let sn = self.status_sn();
        wire.put(&ScsiResponse {
            response: ServiceResponse::COMPLETED,
            status: done.status.0,
            itt: about.itt,
            snack_tag: 0,
            sn,
            exp_data_sn: Serial(about.asked),
            residual,
            read_residual: Residual::None,
            sense: &sense,
            response_data: &[],
        });
        self.measure(wire, about, done, moved);
    }

    /// Whether the data of a command may be sent from the page cache: no digest covers it, and no
    /// PDU of it needs padding.
    pub fn may_map(&self, about: &About) -> bool {
        let Parameters { digests, max_send_data, max_burst, .. } = &self.parameters;
        about.read
            && !digests.data
            && [*max_send_data, *max_burst, about.expected].iter().all(|n| n.is_multiple_of(4))
    }

    /// Answers a command with data from the page cache.
    pub fn respond_mapped(&mut self, wire: &mut Wire, about: &About, done: &Done, slice: Slice) {
        self.forget(about);
        let count = slice.raw().1;
        let residual = Residual::of(about.expected, done.length);
        self.data_in(wire, about, (done.status, residual), count, |wire, pdu, piece| {
            if let Some(part) = slice.part(piece) {
                wire.put_mapped(pdu, part);
            }
        });
        self.measure(wire, about, done, count);
    }

    /// The format of sense data of the unit that a command was for.
    fn sense_format(&mut self, about: &About) -> Format {
        let joined = self.joined.as_ref().zip(about.lun);
        let found = joined.and_then(|(joined, number)| joined.joined(number));
        found.map_or(Format::Fixed, |unit| super::scsi::format(&unit))
    }

    /// Has data put, piece by piece, in PDUs as long as the initiator takes them and sequences as
    /// long as both have agreed on.
    fn data_in(
        &mut self,
        wire: &mut Wire,
        about: &About,
        (status, residual): (Status, Residual),
        count: usize,
        put: impl Fn(&mut Wire, &DataIn<'_>, Range<usize>),
    ) {
        let segment = self.parameters.max_send_data.max(512) as usize;
        let burst = self.parameters.max_burst.max(512) as usize;
        let (mut at, mut number) = (0, 0);
        while at < count {
            let sequence_end = (at / burst + 1) * burst;
            let end = (at + segment).min(sequence_end).min(count);
            let is_last = end == count;
            let sn = if is_last { self.status_sn() } else { self.sn() };
            let pdu = DataIn {
                is_final: is_last || end == sequence_end,
                acknowledge: false,
                status: is_last.then_some(DataStatus { status: status.0, residual }),
                lun: 0,
                itt: about.itt,
                ttt: wire::iscsi::RESERVED_TAG,
                sn,
                data_sn: Serial(number),
                offset: at as u32,
                data: &[],
            };
            put(wire, &pdu, at..end);
            (at, number) = (end, number + 1);
        }
    }
}
