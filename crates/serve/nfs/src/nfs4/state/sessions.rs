//! Sessions of 4.1 (RFC 8881 §2.10): slots, the order of requests in them, the replies kept for
//! repeated requests.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use base::limits::{
    IO_SIZE_MAX, NFS4_CACHED_REPLY_MAX, NFS4_CHANNEL_MIN, NFS4_OPS_MAX, NFS4_REPLY_MAX,
    NFS4_SLOTS_MAX, NFS4_SMALL_REPLY, NFS4_STATE_BYTES,
};
use wire::nfs4::{ChannelAttrs4, Nfsstat4, SequenceArgs4};

use super::channel::Channel;
use super::clients::Client;
use super::lock;

/// A session.
pub struct Session {
    /// `sessionid4`.
    pub id: [u8; 16],
    /// The client of the session.
    pub client: Arc<Client>,
    /// What the fore channel allows.
    pub fore: ChannelAttrs4,
    /// What the back channel allows.
    pub back: ChannelAttrs4,
    /// Its back channel.
    pub channel: Mutex<Channel>,
    /// The flags of SEQUENCE about it.
    pub(super) flags: AtomicU32,
    slots: Box<[Mutex<Slot>]>,
    /// Bytes of the client's memory that slots and the replies in them have.
    bytes: AtomicUsize,
}

#[derive(Default)]
struct Slot {
    last: u32,
    busy: bool,
    keep: bool,
    /// The caller, and its number of operations: they distinguish another request with the same
    /// number from a repeated one.
    asked: (u32, u32),
    /// Whether the last one's reply is kept.
    kept: bool,
    /// That; its room is used again.
    reply: Vec<u8>,
}

/// The decision of a slot on a SEQUENCE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotDecision {
    /// The slot is the compound's until [`Session::finish`].
    Next,
    /// The compound was done before: these were its results.
    Again(Vec<u8>),
}

/// The attributes of the fore channel, negotiated from the client's.
///
/// # Errors
/// NFS4ERR_TOOSMALL where nothing useful would fit.
pub fn negotiate(asked: &ChannelAttrs4) -> Result<ChannelAttrs4, Nfsstat4> {
    if asked.maxrequestsize < NFS4_CHANNEL_MIN || asked.maxresponsesize < NFS4_CHANNEL_MIN {
        return Err(Nfsstat4::TOOSMALL);
    }
    Ok(ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: asked.maxrequestsize.min(IO_SIZE_MAX + (64 << 10)),
        maxresponsesize: asked.maxresponsesize.min(NFS4_REPLY_MAX as u32),
        maxresponsesize_cached: asked.maxresponsesize_cached.min(NFS4_CACHED_REPLY_MAX),
        maxoperations: asked.maxoperations.clamp(1, NFS4_OPS_MAX),
        maxrequests: asked.maxrequests.clamp(1, NFS4_SLOTS_MAX),
        rdma_ird: None,
    })
}

impl Session {
    /// A session with the number of slots in `fore`.
    pub fn new(
        id: [u8; 16],
        client: Arc<Client>,
        fore: ChannelAttrs4,
        back: ChannelAttrs4,
        cb_program: u32,
    ) -> Self {
        let count = fore.maxrequests.min(NFS4_SLOTS_MAX);
        let slots = (0..count).map(|_| Mutex::default()).collect();
        let channel = Mutex::new(Channel::new(&back, cb_program));
        let bytes = NFS4_STATE_BYTES + count as usize * size_of::<Mutex<Slot>>();
        client.memory.charge(bytes);
        let (flags, bytes) = (AtomicU32::new(0), AtomicUsize::new(bytes));
        Self { id, client, fore, back, channel, flags, slots, bytes }
    }

    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// How many slots have a compound in progress.
    pub fn busy(&self) -> usize {
        self.slots.iter().filter(|slot| lock(slot).busy).count()
    }

    /// Makes `last` the last number of a slot.
    #[cfg(test)]
    pub(super) fn start_at(&self, slot: usize, last: u32) {
        lock(&self.slots[slot]).last = last;
    }

    /// SEQUENCE (§18.46.3): checks the number, gives the slot if it is the next, and renews the
    /// lease. `asked` is the caller's uid, and the number of operations.
    ///
    /// # Errors
    /// NFS4ERR_BADSLOT, NFS4ERR_BAD_HIGH_SLOT, NFS4ERR_SEQ_MISORDERED, NFS4ERR_DELAY while the
    /// first is in progress, NFS4ERR_RETRY_UNCACHED_REP, NFS4ERR_SEQ_FALSE_RETRY.
    pub fn sequence(
        &self,
        args: &SequenceArgs4,
        asked: (u32, u32),
        now_ns: u64,
    ) -> Result<SlotDecision, Nfsstat4> {
        let turn = self.turn(args, asked)?;
        self.client.renew(now_ns);
        Ok(turn)
    }

    fn turn(&self, args: &SequenceArgs4, asked: (u32, u32)) -> Result<SlotDecision, Nfsstat4> {
        let slot = self.slots.get(args.slotid as usize).ok_or(Nfsstat4::BADSLOT)?;
        if args.highest_slotid >= self.slots() {
            return Err(Nfsstat4::BAD_HIGH_SLOT);
        }
        let mut slot = lock(slot);
        if args.sequenceid == slot.last.wrapping_add(1) && !slot.busy {
            let reply = std::mem::take(&mut slot.reply);
            let (last, keep) = (args.sequenceid, args.cachethis);
            *slot = Slot { last, busy: true, keep, asked, kept: false, reply };
            return Ok(SlotDecision::Next);
        }
        if args.sequenceid != slot.last {
            return Err(Nfsstat4::SEQ_MISORDERED);
        }
        match slot.kept {
            _ if slot.busy => Err(Nfsstat4::DELAY),
            // There was no request yet with the number that a slot begins with.
            false if slot.asked == (0, 0) => Err(Nfsstat4::SEQ_MISORDERED),
            _ if slot.asked != asked => Err(Nfsstat4::SEQ_FALSE_RETRY),
            true => Ok(SlotDecision::Again(slot.reply.clone())),
            false => Err(Nfsstat4::RETRY_UNCACHED_REP),
        }
    }

    /// The compound in a slot has ended with these results; with none, there are none to repeat.
    pub fn finish(&self, slot: u32, results: &[u8]) {
        let Some(slot) = self.slots.get(slot as usize) else { return };
        let mut slot = lock(slot);
        let max = if slot.keep { NFS4_CACHED_REPLY_MAX as usize } else { NFS4_SMALL_REPLY };
        slot.busy = false;
        slot.kept = (1..=max).contains(&results.len()) && self.has_room(&slot, results.len());
        if slot.kept {
            let before = slot.reply.capacity();
            slot.reply.clear();
            slot.reply.reserve_exact(results.len());
            slot.reply.extend_from_slice(results);
            let more = slot.reply.capacity() - before;
            if more > 0 {
                self.client.memory.charge(more);
                self.bytes.fetch_add(more, Relaxed);
            }
        }
    }

    /// The compound in a slot was abandoned, and has changed nothing: its number is the next one
    /// again.
    pub fn withdraw(&self, slot: u32) {
        let Some(slot) = self.slots.get(slot as usize) else { return };
        let mut slot = lock(slot);
        (slot.busy, slot.kept, slot.asked) = (false, false, (0, 0));
        slot.last = slot.last.wrapping_sub(1);
    }

    /// Whether a reply of this length may be kept in a slot: while memory is short only if the
    /// client requested it.
    fn has_room(&self, slot: &Slot, length: usize) -> bool {
        let memory = &self.client.memory;
        length <= slot.reply.capacity()
            || if slot.keep { memory.has_room() } else { memory.has_plenty() }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.memory.give(*self.bytes.get_mut());
    }
}
