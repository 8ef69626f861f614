//! Names with attributes: the reply to READDIR, and with one name to REALPATH and READLINK
//! (draft-ietf-secsh-filexfer-02 §7).

use base::limits::SFTP_NAMES_MAX;

use super::attrs::Attrs;
use super::data::{PathBytes, Str};
use super::packet::{PacketType, begin_packet, end_packet};
use crate::xdr::{Encode, Seq, Writer};

xdr_structs! {
    /// One name. `longname` is a line as `ls -l` prints it; some clients show nothing else.
    #[derive(Copy)]
    Name<'a> { filename: PathBytes<'a>, longname: Str<'a>, attrs: Attrs }
}

/// All names of a reply.
pub type Names<'a> = Seq<Name<'a>, SFTP_NAMES_MAX>;

/// Writes a NAME packet name by name, up to a number of bytes.
#[derive(Debug)]
pub struct NamesEncoder<'w, 'b> {
    w: &'w mut Writer<'b>,
    begun: usize,
    count_at: usize,
    count: u32,
    limit: usize,
}

impl<'w, 'b> NamesEncoder<'w, 'b> {
    /// Begins the packet, which will have at most `limit` bytes.
    pub fn begin(w: &'w mut Writer<'b>, id: u32, limit: usize) -> Self {
        let begun = begin_packet(w, PacketType::NAME);
        w.u32(id);
        let count_at = w.len();
        w.u32(0);
        Self { w, begun, count_at, count: 0, limit }
    }

    /// Adds a name; false if there is no room for it.
    pub fn add(&mut self, name: &Name<'_>) -> bool {
        let before = self.w.len();
        name.encode(self.w);
        if self.w.len() - self.begun > self.limit || self.count as usize == SFTP_NAMES_MAX {
            self.w.truncate(before);
            return false;
        }
        self.count += 1;
        true
    }

    /// Names so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Ends the packet.
    pub fn finish(self) {
        self.w.patch_u32(self.count_at, self.count);
        end_packet(self.w, self.begun, 0);
    }

    /// Takes everything back: another reply will be written.
    pub fn abandon(self) {
        self.w.truncate(self.begun);
    }
}
