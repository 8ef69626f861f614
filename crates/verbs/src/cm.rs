//! The connection manager: listeners, clients that ask, and what becomes of connections.

use std::ffi::c_int;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::clock::Deadline;

use crate::channel::Readiness;
use crate::load::failed;
use crate::opened::Use;
use crate::qp::QpConnection;
use crate::sys::{Calls, CmEvent, CmId, ConnParam, EventChannel, event};
use crate::{Account, Connection, Depth, Listener, Request, VerbsError};

/// Clients that may wait to be taken.
const BACKLOG: c_int = 128;

/// An event channel.
pub(crate) struct Channel {
    calls: &'static Calls,
    channel: *mut EventChannel,
    /// Dropped before the channel.
    readiness: Option<Readiness>,
}

// SAFETY: the channel is used by its owner only, one thread at a time.
unsafe impl Send for Channel {}

/// An event, as far as it is looked at, acknowledged.
pub(crate) struct ChannelEvent {
    pub(crate) id: *mut CmId,
    pub(crate) event: u32,
    /// Of an event that is an error: a negative error number, or a reason of the link layer.
    pub(crate) status: c_int,
    pub(crate) private_data: Vec<u8>,
    pub(crate) initiator_depth: u8,
}

impl Channel {
    pub(crate) fn new(calls: &'static Calls) -> Result<Self, VerbsError> {
        // SAFETY: it takes nothing.
        let channel = unsafe { (calls.rdma_create_event_channel)() };
        if channel.is_null() {
            return Err(match std::io::Error::last_os_error().raw_os_error() {
                // The library finds no device that it has a driver for.
                Some(libc::ENODEV) => VerbsError::NoProvider,
                _ => failed("the kernel has no RDMA for programs (module rdma_ucm)"),
            });
        }
        let mut made = Self { calls, channel, readiness: None };
        // SAFETY: it was just made.
        made.readiness = Some(Readiness::of(unsafe { (*channel).fd })?);
        Ok(made)
    }

    /// The library.
    pub(crate) fn calls(&self) -> &'static Calls {
        self.calls
    }

    /// The channel as the library has it.
    pub(crate) fn raw(&self) -> *mut EventChannel {
        self.channel
    }

    /// The next event.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ChannelEvent, VerbsError>> {
        let Self { calls, channel, readiness } = self;
        let Some(readiness) = readiness else { return Poll::Pending };
        // SAFETY: the channel is open.
        readiness.poll(cx, || unsafe { take_event(calls, *channel) })
    }

    /// The next event, for which this thread waits at most this long; `None` if none comes.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<Option<ChannelEvent>, VerbsError> {
        let deadline = Deadline::after(timeout);
        loop {
            // SAFETY: the channel is open.
            let (happened, fd) =
                unsafe { (take_event(self.calls, self.channel), (*self.channel).fd) };
            if happened.is_some() {
                return Ok(happened);
            }
            let Some(left) = deadline.left() else { return Ok(None) };
            let ms = c_int::try_from(left.as_millis()).unwrap_or(c_int::MAX).max(1);
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid pollfd.
            if unsafe { libc::poll(&raw mut poll, 1, ms) } < 0 {
                let why = failed("waiting for an event of RDMA");
                let interrupted =
                    |source: &std::io::Error| source.kind() == std::io::ErrorKind::Interrupted;
                if !matches!(&why, VerbsError::System { source, .. } if interrupted(source)) {
                    return Err(why);
                }
            }
        }
    }
}

/// Takes an event that has come, looks at it, and acknowledges it.
///
/// # Safety
/// The channel is open, and does not block.
unsafe fn take_event(calls: &Calls, channel: *mut EventChannel) -> Option<ChannelEvent> {
    let mut event: *mut CmEvent = ptr::null_mut();
    // SAFETY: the caller's promise; an event that came is looked at, then acknowledged, and its
    // private data copied before.
    unsafe {
        if (calls.rdma_get_cm_event)(channel, &raw mut event) != 0 {
            return None;
        }
        let CmEvent { id, event: kind, status, conn, .. } = &*event;
        let says = matches!(*kind, event::CONNECT_REQUEST | event::ESTABLISHED);
        let length = if says { usize::from(conn.private_data_len) } else { 0 };
        let private_data = match conn.private_data.is_null() {
            false if length > 0 => {
                std::slice::from_raw_parts(conn.private_data.cast(), length).to_vec()
            }
            _ => Vec::new(),
        };
        let (id, event_kind, status) = (*id, *kind, *status);
        let initiator_depth = conn.initiator_depth;
        (calls.rdma_ack_cm_event)(event);
        Some(ChannelEvent { id, event: event_kind, status, private_data, initiator_depth })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.readiness = None;
        // SAFETY: nothing refers to it: ids are destroyed before their channel.
        unsafe { (self.calls.rdma_destroy_event_channel)(self.channel) };
    }
}

/// An id, destroyed when dropped. Its queue pair must be gone by then.
pub(crate) struct Id {
    pub(crate) calls: &'static Calls,
    pub(crate) id: *mut CmId,
}

// SAFETY: as for the channel.
unsafe impl Send for Id {}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: it is this one's own, and all of its events are acknowledged.
        unsafe { (self.calls.rdma_destroy_id)(self.id) };
    }
}

/// An address in the form of C.
pub(crate) fn storage(at: SocketAddr) -> libc::sockaddr_storage {
    // SAFETY: all zeros are a valid value.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    match at {
        SocketAddr::V4(v4) => {
            let to = (&raw mut storage).cast::<libc::sockaddr_in>();
            let sin_addr = libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) };
            let (sin_family, sin_port) = (libc::AF_INET as u16, v4.port().to_be());
            // SAFETY: the storage is large enough, and aligned, for each kind of address.
            unsafe {
                to.write(libc::sockaddr_in { sin_family, sin_port, sin_addr, sin_zero: [0; 8] })
            };
        }
        SocketAddr::V6(v6) => {
            let to = (&raw mut storage).cast::<libc::sockaddr_in6>();
            let value = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { to.write(value) };
        }
    }
    storage
}

/// An address in the form of Rust; unspecified if it is of no family that is known.
fn address(storage: &libc::sockaddr_storage) -> SocketAddr {
    let at: *const libc::sockaddr_storage = storage;
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family determines the type of the address.
            let v4 = unsafe { &*at.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            SocketAddr::new(ip.into(), u16::from_be(v4.sin_port))
        }
        libc::AF_INET6 => {
            // SAFETY: the family determines the type of the address.
            let v6 = unsafe { &*at.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            SocketAddr::new(ip.into(), u16::from_be(v6.sin6_port))
        }
        _ => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    }
}

/// A listener on all devices that have its address.
pub(crate) struct CmListener {
    /// Dropped before its channel.
    id: Id,
    channel: Channel,
    account: Arc<Account>,
    /// The device that has the address, unless that is of all devices.
    device: Option<Use>,
}

impl CmListener {
    pub(crate) fn new(
        calls: &'static Calls,
        at: SocketAddr,
        account: Arc<Account>,
    ) -> Result<Self, VerbsError> {
        let channel = Channel::new(calls)?;
        let id = channel.id()?;
        // SAFETY: the id is open, the address is a whole one.
        unsafe {
            let mut at = storage(at);
            if (calls.rdma_bind_addr)(id.id, (&raw mut at).cast()) != 0 {
                return Err(failed("binding an address of RDMA"));
            }
            if (calls.rdma_listen)(id.id, BACKLOG) != 0 {
                return Err(failed("listening by RDMA"));
            }
            let device = Use::of((*id.id).verbs);
            Ok(Self { id, channel, account, device })
        }
    }
}

impl Listener for CmListener {
    fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Result<Box<dyn Request>, VerbsError>> {
        if self.device.as_ref().is_some_and(|device| device.is_removed(cx)) {
            return Poll::Ready(Err(VerbsError::DeviceRemoved));
        }
        loop {
            let happened = match self.channel.poll(cx) {
                Poll::Ready(happened) => happened?,
                Poll::Pending => return Poll::Pending,
            };
            match happened.event {
                event::CONNECT_REQUEST => {
                    let id = Id { calls: self.id.calls, id: happened.id };
                    let account = Arc::clone(&self.account);
                    let request = ConnectRequest { id: Some(id), happened, account };
                    return Poll::Ready(Ok(Box::new(request)));
                }
                event::DEVICE_REMOVAL => {
                    self.device.iter().for_each(Use::remove);
                    return Poll::Ready(Err(VerbsError::DeviceRemoved));
                }
                // Of clients that have gone before they were taken.
                _ => {}
            }
        }
    }

    fn local_addr(&self) -> SocketAddr {
        // SAFETY: the id is open.
        address(unsafe { &(*self.id.id).src })
    }
}

/// A connection request of a client.
struct ConnectRequest {
    id: Option<Id>,
    happened: ChannelEvent,
    account: Arc<Account>,
}

// SAFETY: its id belongs to it alone.
unsafe impl Send for ConnectRequest {}

impl Request for ConnectRequest {
    fn peer(&self) -> SocketAddr {
        // SAFETY: the id is open.
        address(unsafe { &(*self.happened.id).dst })
    }

    fn local(&self) -> SocketAddr {
        // SAFETY: the id is open.
        address(unsafe { &(*self.happened.id).src })
    }

    fn private_data(&self) -> &[u8] {
        &self.happened.private_data
    }

    fn open(mut self: Box<Self>, depth: Depth) -> Result<Box<dyn Connection>, VerbsError> {
        let Some(id) = self.id.take() else { return Err(VerbsError::Closed) };
        let account = Arc::clone(&self.account);
        let reads = self.happened.initiator_depth;
        QpConnection::new(id, depth, reads, account).map(|made| Box::new(made) as _)
    }
}

impl Drop for ConnectRequest {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            // SAFETY: the id is open. Whether the client hears of it is its affair.
            unsafe { (id.calls.rdma_reject)(id.id, ptr::null(), 0) };
        }
    }
}

/// Moves an id to a channel of its own.
pub(crate) fn migrate(id: &Id) -> Result<Channel, VerbsError> {
    let channel = Channel::new(id.calls)?;
    // SAFETY: both are open.
    if unsafe { (id.calls.rdma_migrate_id)(id.id, channel.channel) } != 0 {
        return Err(failed("giving a connection of RDMA a channel"));
    }
    Ok(channel)
}

/// Times that a message is sent again to a peer without a receive, and at all: as Linux.
const RNR_RETRIES: u8 = 6;
const RETRIES: u8 = 6;

/// The connection parameters sent to the peer: how many RDMA reads this side serves
/// (`responder_resources`) and how many it issues.
pub(crate) fn param(private_data: &[u8], serves: u8, makes: u8) -> ConnParam {
    ConnParam {
        private_data: private_data.as_ptr().cast(),
        private_data_len: u8::try_from(private_data.len()).unwrap_or(0),
        responder_resources: serves,
        initiator_depth: makes,
        flow_control: 0,
        retry_count: RETRIES,
        rnr_retry_count: RNR_RETRIES,
        srq: 0,
        qp_num: 0,
    }
}

/// Accepts a client.
pub(crate) fn accept(id: &Id, private_data: &[u8], reads: u8) -> Result<(), VerbsError> {
    // The peer does not read memory of this side.
    let mut param = param(private_data, 0, reads);
    // SAFETY: the id is open and has its queue pair; the private data outlives the call.
    if unsafe { (id.calls.rdma_accept)(id.id, &raw mut param) } != 0 {
        return Err(failed("accepting a client by RDMA"));
    }
    Ok(())
}
