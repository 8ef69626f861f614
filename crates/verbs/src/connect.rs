//! Connections that are made to a server: the device is found by the server's address, then the
//! route, then the server is asked.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use crate::cm::{self, Channel, ChannelEvent, Id};
use crate::load::failed;
use crate::qp::QpConnection;
use crate::sys::{self, Calls, event};
use crate::{Account, ConnectOptions, Depth, Established, VerbsError};

/// Connects.
///
/// # Errors
/// As [`crate::Verbs::connect`].
pub(crate) fn connect(
    calls: &'static Calls,
    call: &ConnectOptions<'_>,
    depth: Depth,
    account: Arc<Account>,
) -> Result<Established, VerbsError> {
    // Dropped after the id, which may still be on it.
    let mut channel = Channel::new(calls)?;
    let id = channel.id()?;
    resolve_address(&id, call)?;
    expect(&mut channel, event::ADDR_RESOLVED, call.timeout)?;
    // SAFETY: the id is open.
    if unsafe { (calls.rdma_resolve_route)(id.id, milliseconds(call.timeout)) } != 0 {
        return Err(failed("looking for a route of RDMA"));
    }
    expect(&mut channel, event::ROUTE_RESOLVED, call.timeout)?;
    let mut connection = QpConnection::new(id, depth, 0, account)?;
    let private_data = connection.establish(call.private_data, call.timeout)?;
    Ok(Established { connection: Box::new(connection), private_data })
}

/// Begins to look for the device that leads to an address.
fn resolve_address(id: &Id, call: &ConnectOptions<'_>) -> Result<(), VerbsError> {
    let mut to = cm::storage(call.to);
    let mut from = call.from.map(|from| cm::storage(SocketAddr::new(from, 0)));
    let from = from.as_mut().map_or(ptr::null_mut(), |from| (&raw mut *from).cast());
    // SAFETY: the id is open; the addresses are whole ones, and read before the call returns.
    let asked = unsafe {
        let to = (&raw mut to).cast();
        (id.calls.rdma_resolve_addr)(id.id, from, to, milliseconds(call.timeout))
    };
    if asked == 0 {
        return Ok(());
    }
    Err(match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ENODEV | libc::ENETUNREACH | libc::EADDRNOTAVAIL) => VerbsError::NoRoute,
        _ => failed("looking for a device that leads to an address"),
    })
}

fn milliseconds(time: Duration) -> c_int {
    c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX)
}

/// Waits for this event; any other one is the reason why it will not come.
pub(crate) fn expect(
    channel: &mut Channel,
    kind: u32,
    timeout: Duration,
) -> Result<ChannelEvent, VerbsError> {
    match channel.wait(timeout)? {
        Some(happened) if happened.event == kind => Ok(happened),
        Some(happened) => Err(reason(happened.event, happened.status)),
        None => Err(VerbsError::Silent),
    }
}

/// Why a connection is not made.
fn reason(kind: u32, status: c_int) -> VerbsError {
    match (kind, -status) {
        (event::ADDR_ERROR, libc::ETIMEDOUT) => VerbsError::Silent,
        (event::ADDR_ERROR, _) => VerbsError::NoRoute,
        (event::REJECTED, _) | (_, libc::ECONNREFUSED) => VerbsError::Refused,
        (event::DEVICE_REMOVAL, _) => VerbsError::DeviceRemoved,
        _ => VerbsError::Silent,
    }
}

impl Channel {
    /// A fresh id on this channel.
    pub(crate) fn id(&self) -> Result<Id, VerbsError> {
        let (calls, mut id) = (self.calls(), ptr::null_mut());
        // SAFETY: the channel is open, and outlives the id.
        let made = unsafe {
            (calls.rdma_create_id)(self.raw(), &raw mut id, ptr::null_mut(), sys::PS_TCP)
        };
        if made != 0 {
            return Err(failed("making an identifier of RDMA"));
        }
        Ok(Id { calls, id })
    }
}

#[cfg(test)]
mod tests;
