//! NOP-Out and NOP-In (RFC 7143 §11.18, §11.19): whether the other side is there.

use wire::iscsi::nop::{NopIn, NopOut};
use wire::iscsi::{Bhs, RESERVED_TAG};

use super::conn::stream::Wire;
use super::ended::Ended;
use super::session::Session;

impl Session {
    /// A ping of the initiator, which is answered with what it brought, or its answer to ours.
    pub fn nop(&mut self, wire: &mut Wire, nop: &NopOut<'_>, bhs: &Bhs) {
        if !nop.immediate {
            if !self.may_take(wire, (false, nop.sn.cmd_sn), bhs) {
                return;
            }
            self.window.end();
        }
        if nop.itt == RESERVED_TAG {
            return;
        }
        let most = self.parameters.max_send_data as usize;
        let data = nop.data.get(..most).unwrap_or(nop.data);
        let sn = self.status_sn();
        wire.put(&NopIn { lun: 0, itt: nop.itt, ttt: RESERVED_TAG, sn, data });
    }

    /// Asks whether the initiator is there, which has sent nothing for a while.
    ///
    /// # Errors
    /// It was asked before, and has not answered in time.
    pub fn ping(&mut self, wire: &mut Wire) -> Result<(), Ended> {
        if self.pinged().is_some() {
            return Err(Ended::Silent);
        }
        let (ttt, sn) = (self.tag(), self.sn());
        wire.put(&NopIn { lun: 0, itt: RESERVED_TAG, ttt, sn, data: &[] });
        Ok(())
    }
}
