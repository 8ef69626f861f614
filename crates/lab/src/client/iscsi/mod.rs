//! An initiator of iSCSI (RFC 7143) for one logical unit: one session, as many commands in flight
//! as the target's window allows.
//!
//! - [`at`]: URLs; [`login`]: how the session begins; [`stream`]: PDUs over the socket;
//!   [`session`]: commands and their data. Where files lie on the unit is [`super::layout`]'s.

pub mod at;
mod login;
mod session;
mod stream;

use super::layout::{self, Layout};
use super::pipe::link::Link;
use super::{
    Checker, Client, ClientError, Completion, FileSet, Op, Options, Transport, operations_through,
};
use crate::workload::Shape;
use at::IscsiAt;
use base::limits::LAB_SILENCE_MAX;
use session::Session;
use std::os::fd::RawFd;
use std::time::Duration;
use stream::Stream;
use wire::scsi::Cdb;
use wire::scsi::capacity::Capacity;
use wire::scsi::unmap::{self, Extent};

/// Bytes that one UNMAP is asked for.
const UNMAP: u64 = 64 << 20;
/// Times that a target may say that something has changed before it does what it is asked to.
const ATTENTIONS_MAX: u32 = 16;

/// A session with a unit.
pub struct IscsiClient {
    session: Session,
    /// Bytes of the unit.
    size: u64,
}

impl IscsiClient {
    /// Connects, logs in and requests the capacity of the unit.
    ///
    /// # Errors
    /// The target cannot be reached or refuses.
    pub fn open(at: &IscsiAt, checker: Checker, options: &Options) -> Result<Self, ClientError> {
        let mut stream = Stream::new(Link::open(&at.host, at.port, options.bind)?);
        let (sn, window, parameters) = login::run(&mut stream, at)?;
        stream.set(parameters.digests, parameters.max_recv_data as usize);
        let lun = at.address().0;
        let mut session = Session::new(stream, lun, checker, sn, window, parameters);
        // A new session has pending unit attentions: power on, for one.
        let ready = (0..ATTENTIONS_MAX).try_fold(false, |ready, _| match ready {
            true => Ok(true),
            false => session.exchange(&Cdb::TestUnitReady, &[], 0).map(|answer| answer.is_ok()),
        })?;
        if !ready {
            let what = format!("use unit {} of {}", at.lun, at.target);
            return Err(ClientError::Refused { what, status: "it is not ready".to_owned() });
        }
        let cdb = Cdb::ReadCapacity16 { allocation: 32 };
        let data = session.succeed(&cdb, &[], 32, "ask for the size of the unit")?;
        let wrong = |_| ClientError::Protocol("a capacity that cannot be read".to_owned());
        let capacity = Capacity::decode_16(&data).map_err(wrong)?;
        session.block = capacity.block;
        let size = (capacity.last_lba + 1) * u64::from(capacity.block);
        Ok(Self { session, size })
    }
}

impl Client for IscsiClient {
    fn begin(&mut self, shape: &Shape) -> Result<(), ClientError> {
        layout::check(shape, self.session.block)
    }

    fn prepare(&mut self, set: &FileSet) -> Result<(), ClientError> {
        self.session.layout = Layout::new(set, self.size)?;
        layout::prepare(self, set)
    }

    fn clean(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let layout = Layout::new(set, self.size)?;
        let (mut at, block) = (layout.start(), u64::from(self.session.block));
        while at < layout.end() {
            let count = ((layout.end() - at).min(UNMAP) / block) as u32;
            let mut list = Vec::new();
            unmap::put(&[Extent { lba: at / block, count }], &mut list);
            let cdb = Cdb::Unmap { group: 0, list_length: list.len() as u16 };
            // A target that does not unmap keeps the content, which does no harm.
            let _kept = self.session.exchange(&cdb, &list, 0)?;
            at += u64::from(count) * block;
        }
        Ok(())
    }

    operations_through!(session);

    fn renew(&mut self) -> Result<(), ClientError> {
        // The target sends a NOP-In to an idle initiator, which has to be answered.
        self.session.wait(Duration::from_millis(1), &mut Vec::new())
    }

    fn granted(&self) -> Option<u32> {
        Some(self.session.window())
    }

    fn calls(&self) -> u64 {
        self.session.answered
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.session.descriptor())
    }

    fn transport(&self) -> Option<Transport> {
        self.session.transport()
    }
}

impl Drop for IscsiClient {
    fn drop(&mut self) {
        // A log-out on a connection that is gone fails, which is no matter.
        let _gone = self.session.log_out(LAB_SILENCE_MAX);
    }
}
