//! A connection: its queue pair, its completions, and the memory that it was given.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::channel::Readiness;
use crate::cm::{self, Channel, Id};
use crate::connect;
use crate::exposed::exposed;
use crate::load::failed;
use crate::opened::Use;
use crate::region::Registration;
use crate::sys::{
    self, Calls, CompChannel, Cq, DeviceAttr, Mr, Pd, QpInitAttr, RecvWr, SendWr, Sge, Wc, access,
    event, opcode,
};
use crate::{
    Access, Account, Completion, Connection, Depth, ExposedMemory, Piece, Purpose, Region,
    VerbsError, Work,
};

/// Completions taken at once.
const BATCH: usize = 32;

/// A protection domain; it must outlive the memory registered in it.
struct Domain {
    calls: &'static Calls,
    pd: *mut Pd,
    /// Dropped last: from then on the device may go.
    device: Option<Use>,
}

// SAFETY: the library locks what is shared; the domain itself is only named.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: the last user drops it.
        unsafe { (self.calls.ibv_dealloc_pd)(self.pd) };
    }
}

/// Registered memory.
struct Registered {
    mr: *mut Mr,
    domain: Arc<Domain>,
}

// SAFETY: it is this one's own.
unsafe impl Send for Registered {}

impl Registration for Registered {
    fn local_key(&self) -> u32 {
        // SAFETY: it is registered as long as this lives.
        unsafe { (*self.mr).lkey }
    }

    fn remote_key(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.mr).rkey }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: it is this one's own, and dropped once.
        unsafe { (self.domain.calls.ibv_dereg_mr)(self.mr) };
    }
}

/// Where completions come.
struct Completions {
    calls: &'static Calls,
    channel: *mut CompChannel,
    cq: *mut Cq,
    /// Dropped before the channel.
    readiness: Option<Readiness>,
    armed: bool,
}

// SAFETY: used by its owner only, one thread at a time.
unsafe impl Send for Completions {}

impl Completions {
    fn new(id: &Id, entries: u32) -> Result<Self, VerbsError> {
        let calls = id.calls;
        let entries = c_int::try_from(entries).unwrap_or(c_int::MAX);
        // SAFETY: the id has a device; what was made is freed by `drop`.
        unsafe {
            let device = (*id.id).verbs;
            let channel = (calls.ibv_create_comp_channel)(device);
            if channel.is_null() {
                return Err(failed("making a channel of completions"));
            }
            let (cq, readiness) = (ptr::null_mut(), None);
            let mut made = Self { calls, channel, cq, readiness, armed: false };
            made.readiness = Some(Readiness::of((*channel).fd)?);
            made.cq = (calls.ibv_create_cq)(device, entries, ptr::null_mut(), channel, 0);
            if made.cq.is_null() {
                return Err(failed("making a queue of completions"));
            }
            Ok(made)
        }
    }

    /// Takes what has completed; how many.
    fn take(&mut self, into: &mut [Wc; BATCH]) -> usize {
        // SAFETY: the queue is open, and `into` has room for what is asked for.
        let took =
            unsafe { ((*(*self.cq).context).poll_cq)(self.cq, BATCH as c_int, into.as_mut_ptr()) };
        usize::try_from(took).unwrap_or(0)
    }

    /// Requests a notification of the next completion.
    fn arm(&mut self) {
        // SAFETY: the queue is open.
        unsafe { ((*(*self.cq).context).req_notify_cq)(self.cq, 0) };
        self.armed = true;
    }

    /// Ready when the notification has arrived.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), VerbsError>> {
        let (calls, channel, cq) = (self.calls, self.channel, self.cq);
        let Some(readiness) = &mut self.readiness else { return Poll::Pending };
        let polled = readiness.poll(cx, || {
            let (mut from, mut context) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: the channel is open, and does not block.
            let got =
                unsafe { (calls.ibv_get_cq_event)(channel, &raw mut from, &raw mut context) == 0 };
            if got {
                // SAFETY: one event of this queue was taken.
                unsafe { (calls.ibv_ack_cq_events)(cq, 1) };
            }
            got.then_some(())
        });
        self.armed &= polled.is_pending();
        polled
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        self.readiness = None;
        // SAFETY: the queue pair is gone, and events are acknowledged.
        unsafe {
            if !self.cq.is_null() {
                (self.calls.ibv_destroy_cq)(self.cq);
            }
            (self.calls.ibv_destroy_comp_channel)(self.channel);
        }
    }
}

/// The queue pair of an id, destroyed when dropped: from then on no device touches the memory.
struct Pair {
    calls: &'static Calls,
    id: *mut sys::CmId,
}

// SAFETY: used by its owner only, one thread at a time.
unsafe impl Send for Pair {}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: the id is open; that it is connected is no matter.
        unsafe {
            (self.calls.rdma_disconnect)(self.id);
            (self.calls.rdma_destroy_qp)(self.id);
        }
    }
}

/// An id on a channel of its own, dropped in this order.
struct Migrated {
    id: Id,
    channel: Channel,
}

/// Work in flight.
struct Posted {
    region: Region,
    /// Places of the send queue that it takes.
    places: u32,
}

/// A connection. Members are dropped in this order: the queue pair first, then what it used.
pub(crate) struct QpConnection {
    pair: Pair,
    posted: HashMap<u64, Posted>,
    waiting: VecDeque<(u64, Work)>,
    completions: Completions,
    id: Id,
    channel: Channel,
    domain: Arc<Domain>,
    account: Arc<Account>,
    depth: Depth,
    sends: u32,
    reads: u8,
    /// Reads of the peer that the device serves at once.
    peer_reads: u8,
    iwarp: bool,
    ended: bool,
}

impl QpConnection {
    pub(crate) fn new(
        id: Id,
        depth: Depth,
        reads: u8,
        account: Arc<Account>,
    ) -> Result<Self, VerbsError> {
        let (calls, channel) = (id.calls, cm::migrate(&id)?);
        // Whatever fails, the id is dropped before its channel.
        let migrated = Migrated { id, channel };
        let id = &migrated.id;
        // SAFETY: the id of a connection request has a device.
        let (device, iwarp) = unsafe {
            let device = (*id.id).verbs;
            (device, (*(*device).device).transport_type == sys::TRANSPORT_IWARP)
        };
        let mut attr = DeviceAttr { words: [0; 64] };
        // SAFETY: the device is open, and there is room for its attributes.
        if unsafe { (calls.ibv_query_device)(device, &raw mut attr) } != 0 {
            return Err(failed("asking a device of RDMA"));
        }
        let [most, peer_reads] = [DeviceAttr::READS, DeviceAttr::PEER_READS]
            .map(|at| u8::try_from(attr.words[at]).unwrap_or(u8::MAX));
        // SAFETY: the device is open.
        let (used, pd) = unsafe { (Use::of(device), (calls.ibv_alloc_pd)(device)) };
        if pd.is_null() {
            return Err(failed("making a protection domain"));
        }
        let domain = Arc::new(Domain { calls, pd, device: used });
        let completions = Completions::new(id, depth.receives + depth.sends)?;
        let mut init = QpInitAttr {
            qp_context: ptr::null_mut(),
            send_cq: completions.cq,
            recv_cq: completions.cq,
            srq: ptr::null_mut(),
            max_send_wr: depth.sends,
            max_recv_wr: depth.receives,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
            qp_type: sys::QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: all of them are open.
        if unsafe { (calls.rdma_create_qp)(id.id, pd, &raw mut init) } != 0 {
            return Err(failed("making a queue pair"));
        }
        let pair = Pair { calls, id: id.id };
        let Migrated { id, channel } = migrated;
        Ok(Self {
            pair,
            posted: HashMap::new(),
            waiting: VecDeque::new(),
            completions,
            id,
            channel,
            domain,
            account,
            depth,
            sends: 0,
            reads: reads.min(most).max(1),
            peer_reads,
            iwarp,
            ended: false,
        })
    }

    /// Sends the connection request, waits for the server's answer, and returns its private data.
    pub(crate) fn establish(
        &mut self,
        private_data: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, VerbsError> {
        let mut param = cm::param(private_data, self.peer_reads, 0);
        // SAFETY: the id has its route and its queue pair; the private data outlives the call.
        if unsafe { (self.id.calls.rdma_connect)(self.id.id, &raw mut param) } != 0 {
            return Err(failed("connecting by RDMA"));
        }
        connect::expect(&mut self.channel, event::ESTABLISHED, timeout).map(|one| one.private_data)
    }

    /// Registers a buffer for this access.
    fn register_for(
        &mut self,
        mut buffer: Vec<u8>,
        flags: i32,
    ) -> Result<Region, (Vec<u8>, VerbsError)> {
        let Some(permit) = self.account.take(buffer.len()) else {
            return Err((buffer, VerbsError::NoRoom));
        };
        let domain = Arc::clone(&self.domain);
        // SAFETY: the buffer is owned, and by the region from now on, which deregisters before it
        // frees.
        let mr = unsafe {
            let start = buffer.as_mut_ptr().cast();
            (domain.calls.ibv_reg_mr)(domain.pd, start, buffer.len(), flags)
        };
        if mr.is_null() {
            return Err((buffer, not_registered()));
        }
        Ok(Region::new(buffer, Box::new(Registered { mr, domain }), permit))
    }

    /// Posts what waits, as far as there is room.
    fn pump(&mut self) -> Result<(), VerbsError> {
        while let Some((_, work)) = self.waiting.front() {
            if self.sends + places(work) > self.depth.sends {
                break;
            }
            let Some((id, work)) = self.waiting.pop_front() else { break };
            self.begin(id, work)?;
        }
        Ok(())
    }

    fn begin(&mut self, id: u64, work: Work) -> Result<(), VerbsError> {
        let places = places(&work);
        let (region, pieces, operation, invalidate) = match work {
            Work::Receive(region) => return self.receive(id, region),
            Work::Send { region, length, invalidate } => {
                // The library of siw takes the key to invalidate from that of remote memory.
                let key = invalidate.unwrap_or(0);
                let whole = Piece { local: 0..length, key, address: 0 };
                let send = invalidate.map_or(opcode::SEND, |_| opcode::SEND_WITH_INV);
                (region, vec![whole], send, key)
            }
            Work::Write { region, pieces } => (region, pieces, opcode::RDMA_WRITE, 0),
            Work::Read { region, pieces } => (region, pieces, opcode::RDMA_READ, 0),
        };
        let last = pieces.len().saturating_sub(1);
        for (n, piece) in pieces.iter().enumerate() {
            let Some(mut sge) = sge(&region, piece) else {
                return Err(VerbsError::Work("a piece beyond its region"));
            };
            let mut wr = SendWr {
                wr_id: id,
                next: ptr::null_mut(),
                sg_list: &raw mut sge,
                num_sge: 1,
                opcode: operation,
                send_flags: if n == last { sys::SIGNALED } else { 0 },
                invalidate_rkey: invalidate,
                remote_addr: piece.address,
                rkey: piece.key,
                rest: [0; 19],
            };
            let mut bad = ptr::null_mut();
            // SAFETY: the queue pair is open; the lists are read before the call returns; the
            // region is kept until its completion, or until the queue pair is gone.
            let refused = unsafe {
                let qp = (*self.pair.id).qp;
                ((*(*qp).context).post_send)(qp, &raw mut wr, &raw mut bad)
            };
            if refused != 0 {
                // Earlier pieces may be in flight: the region is retained, and the connection ends.
                self.ended = true;
                self.posted.insert(id, Posted { region, places });
                return Err(VerbsError::Work("the device takes no more work"));
            }
        }
        self.sends += places;
        self.posted.insert(id, Posted { region, places });
        Ok(())
    }

    fn receive(&mut self, id: u64, region: Region) -> Result<(), VerbsError> {
        let whole = Piece { local: 0..region.len(), key: 0, address: 0 };
        let Some(mut sge) = sge(&region, &whole) else {
            return Err(VerbsError::Work("a region too large"));
        };
        let next = ptr::null_mut();
        let mut wr = RecvWr { wr_id: id, next, sg_list: &raw mut sge, num_sge: 1 };
        let mut bad = ptr::null_mut();
        // SAFETY: as for sends.
        let refused = unsafe {
            let qp = (*self.pair.id).qp;
            ((*(*qp).context).post_recv)(qp, &raw mut wr, &raw mut bad)
        };
        if refused != 0 {
            return Err(VerbsError::Work("the device takes no more receives"));
        }
        self.posted.insert(id, Posted { region, places: 0 });
        Ok(())
    }

    /// Takes up completions; whether there were any.
    fn take(&mut self, done: &mut Vec<Completion>) -> Result<bool, VerbsError> {
        let mut taken = [Wc::default(); BATCH];
        let count = self.completions.take(&mut taken);
        for wc in taken.iter().take(count) {
            match wc.status {
                sys::WC_SUCCESS => {}
                // What a connection that has ended gives back is no failure of its own.
                sys::WC_FLUSHED => return Err(VerbsError::Closed),
                status => return Err(VerbsError::Work(status_text(status))),
            }
            let Some(Posted { region, places }) = self.posted.remove(&wc.wr_id) else { continue };
            self.sends -= places;
            let bytes = if places == 0 { wc.byte_len as usize } else { 0 };
            done.push(Completion { id: wc.wr_id, region, outcome: Ok(bytes) });
        }
        self.pump()?;
        Ok(count > 0)
    }

    fn poll_work(
        &mut self,
        cx: &mut Context<'_>,
        done: &mut Vec<Completion>,
    ) -> Poll<Result<(), VerbsError>> {
        loop {
            if self.take(done)? {
                if !done.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                continue;
            }
            if !self.completions.armed {
                // What came before it was armed is seen in the next round.
                self.completions.arm();
                continue;
            }
            match self.completions.poll(cx) {
                Poll::Ready(outcome) => outcome?,
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Places of the send queue that some work takes.
fn places(work: &Work) -> u32 {
    match work {
        Work::Receive(_) => 0,
        Work::Send { .. } => 1,
        Work::Write { pieces, .. } | Work::Read { pieces, .. } => {
            u32::try_from(pieces.len()).unwrap_or(u32::MAX)
        }
    }
}

/// A part of a region; `None` if it is not within it.
fn sge(region: &Region, piece: &Piece) -> Option<Sge> {
    let part = region.get(piece.local.clone())?;
    Some(Sge {
        addr: region.address() + piece.local.start as u64,
        length: u32::try_from(part.len()).ok()?,
        lkey: region.local_key(),
    })
}

/// Why memory was not registered.
fn not_registered() -> VerbsError {
    let why = failed("registering memory");
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to the one structure that it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    match &why {
        VerbsError::System { source, .. }
            if known
                && limit.rlim_cur != libc::RLIM_INFINITY
                && source.raw_os_error() == Some(libc::ENOMEM) =>
        {
            VerbsError::NotLocked { limit: base::units::bytes(limit.rlim_cur as f64) }
        }
        _ => why,
    }
}

/// The cause that a value of `enum ibv_wc_status` stands for, as far as it is specific.
fn status_text(status: u32) -> &'static str {
    match status {
        1 => "a message is longer than its receive",
        4 => "local memory is not registered for this access",
        9 | 10 => "remote access to the peer's memory failed",
        12 => "the peer does not respond",
        13 => "the peer has no receive posted",
        _ => "the device has failed",
    }
}

impl Connection for QpConnection {
    fn accept(&mut self, private_data: &[u8]) -> Result<(), VerbsError> {
        cm::accept(&self.id, private_data, self.reads)
    }

    fn register(
        &mut self,
        buffer: Vec<u8>,
        purpose: Purpose,
    ) -> Result<Region, (Vec<u8>, VerbsError)> {
        // iWARP: the destination of a read is written by the peer (RFC 5040 §4.3).
        let remote = match purpose {
            Purpose::ReadTarget if self.iwarp => access::REMOTE_WRITE,
            _ => 0,
        };
        self.register_for(buffer, access::LOCAL_WRITE | remote)
    }

    fn expose_memory(
        &mut self,
        bytes: usize,
        access: Access,
    ) -> Result<Box<dyn ExposedMemory>, VerbsError> {
        let flags = match access {
            Access::Read => access::REMOTE_READ,
            Access::Write => access::LOCAL_WRITE | access::REMOTE_WRITE,
        };
        exposed(self.register_for(vec![0; bytes], flags))
    }

    fn post(&mut self, id: u64, work: Work) -> Result<(), VerbsError> {
        if self.ended {
            return Err(VerbsError::Closed);
        }
        if let Work::Receive(region) = work {
            return self.receive(id, region);
        }
        if places(&work) > self.depth.sends {
            return Err(VerbsError::Work("more pieces than the queue has room for"));
        }
        self.waiting.push_back((id, work));
        self.pump()
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        done: &mut Vec<Completion>,
    ) -> Poll<Result<(), VerbsError>> {
        let device = self.domain.device.as_ref();
        if device.is_some_and(|device| device.is_removed(cx)) {
            return Poll::Ready(Err(VerbsError::DeviceRemoved));
        }
        if let Poll::Ready(ready) = self.poll_work(cx, done) {
            return Poll::Ready(ready);
        }
        loop {
            let happened = match self.channel.poll(cx) {
                Poll::Ready(happened) => happened?,
                Poll::Pending => return Poll::Pending,
            };
            match happened.event {
                event::ESTABLISHED => {}
                event::DEVICE_REMOVAL => {
                    self.domain.device.iter().for_each(Use::remove);
                    return Poll::Ready(Err(VerbsError::DeviceRemoved));
                }
                event::DISCONNECTED => return Poll::Ready(Err(VerbsError::Closed)),
                _ => return Poll::Ready(Err(VerbsError::Work("the connection was not made"))),
            }
        }
    }
}
