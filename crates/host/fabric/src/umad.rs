//! The umad devices of Linux (include/uapi/rdma/ib_user_mad.h), with the header of 56 bytes that is
//! in effect unless P_Key indices are enabled.
//!
//! They are opened by open(2) of the C library, which simulators of fabrics replace (ibsim).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use base::clock::monotonic_ns;

use crate::exchange::TIMEOUT;
use crate::mad::{Class, LID_PERMISSIVE, MAD_BYTES, Mad};
use crate::transport::{Received, Target, Transport};

/// Length of the header before a datagram.
const HEADER_BYTES: usize = 56;
/// Devices that are looked for: a machine has one for each port.
pub const DEVICES_MAX: usize = 16;
/// `IB_USER_MAD_REGISTER_AGENT`: both directions, 28 bytes, type 0x1b, number 1.
const REGISTER_AGENT: u64 = 3 << 30 | 28 << 16 | 0x1b << 8 | 1;
/// How long the kernel waits for a reply: as long as the exchange, which sends again in another
/// transaction.
const KERNEL_TIMEOUT_MS: u32 = TIMEOUT.as_millis() as u32;
/// Q_Key of queue pair 1 (specification, 10.2.5).
const QKEY: u32 = 0x8001_0000;

/// An open device with an agent for each class.
#[derive(Debug)]
pub struct Umad {
    device: OwnedFd,
    agents: [u32; Class::ALL.len()],
}

/// The path of a device.
pub fn path(number: usize) -> String {
    format!("/dev/infiniband/umad{number}")
}

impl Umad {
    /// Opens the device of this number.
    ///
    /// # Errors
    /// The kernel's; `NotFound`: there is none.
    pub fn open(number: usize) -> io::Result<Self> {
        let path = CString::new(path(number))?;
        // SAFETY: the path ends with a zero byte.
        let device = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if device < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was opened just now, and nothing else has it.
        let device = unsafe { OwnedFd::from_raw_fd(device) };
        let mut agents = [0; Class::ALL.len()];
        for (agent, class) in agents.iter_mut().zip(Class::ALL) {
            *agent = register(&device, class)?;
        }
        Ok(Self { device, agents })
    }

    fn agent(&self, class: Class) -> u32 {
        let mut classes = Class::ALL.into_iter().zip(self.agents);
        classes.find(|(one, _)| *one == class).map_or(0, |(_, agent)| agent)
    }
}

/// Registers an agent that receives replies only: its mask of methods is empty.
fn register(device: &OwnedFd, class: Class) -> io::Result<u32> {
    let mut request = [0_u8; 28];
    request[20] = u8::from(class == Class::Performance);
    request[21] = class.number();
    request[22] = 1;
    // SAFETY: a structure of 28 bytes, as the number of the request states.
    let done = unsafe {
        libc::ioctl(device.as_raw_fd(), REGISTER_AGENT as libc::Ioctl, request.as_mut_ptr())
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::from_ne_bytes([request[0], request[1], request[2], request[3]]))
}

/// The header of a request and the request.
fn packet(agent: u32, target: &Target, mad: &Mad) -> [u8; HEADER_BYTES + MAD_BYTES] {
    let mut bytes = [0; HEADER_BYTES + MAD_BYTES];
    let (queue, lid) = match target {
        Target::Route(_) => (0, LID_PERMISSIVE),
        Target::Manager(lid) => (0_u32, *lid),
        Target::Performance(lid) => (1, *lid),
    };
    bytes[0..4].copy_from_slice(&agent.to_ne_bytes());
    bytes[8..12].copy_from_slice(&KERNEL_TIMEOUT_MS.to_ne_bytes());
    bytes[16..20].copy_from_slice(&(MAD_BYTES as u32).to_ne_bytes());
    bytes[20..24].copy_from_slice(&queue.to_be_bytes());
    bytes[24..28].copy_from_slice(&(QKEY * queue).to_be_bytes());
    bytes[28..30].copy_from_slice(&lid.to_be_bytes());
    bytes[HEADER_BYTES..].copy_from_slice(&mad.encode());
    bytes
}

impl Transport for Umad {
    fn send(&mut self, target: &Target, mad: &Mad) -> io::Result<()> {
        let bytes = packet(self.agent(mad.class), target, mad);
        // SAFETY: as many bytes as the length states.
        let sent =
            unsafe { libc::write(self.device.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(sent) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(length) if length < HEADER_BYTES => Err(io::ErrorKind::WriteZero.into()),
            Ok(_) => Ok(()),
        }
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Received>> {
        let mut poll =
            libc::pollfd { fd: self.device.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let wait = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one structure, which the kernel fills.
        let ready = unsafe { libc::poll(&raw mut poll, 1, wait) };
        if ready < 0 {
            let e = io::Error::last_os_error();
            return if e.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(e) };
        }
        if ready == 0 {
            return Ok(None);
        }
        if poll.revents & libc::POLLIN == 0 {
            // The device was removed.
            return Err(io::ErrorKind::NotConnected.into());
        }
        let mut bytes = [0_u8; HEADER_BYTES + MAD_BYTES];
        // SAFETY: as many bytes as the length states.
        let read =
            unsafe { libc::read(self.device.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        let Ok(length) = usize::try_from(read) else { return Err(io::Error::last_os_error()) };
        let error = u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let bytes = bytes.get(HEADER_BYTES..length).unwrap_or_default().to_vec();
        Ok(Some(Received { error, bytes }))
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(monotonic_ns())
    }
}

#[cfg(test)]
mod tests;
