//! What the kernel knows of a TCP connection (`struct tcp_info`, linux/tcp.h), read by its offsets:
//! the kernel only ever adds at its end.

use std::os::fd::{AsRawFd, RawFd};

/// Bytes of the structure that are read: more than kernels have today.
const ROOM: usize = 256;

/// The structure as the kernel has it, which may be shorter than what a reader knows.
#[derive(Debug, Clone, Copy)]
pub struct TcpInfo {
    bytes: [u8; ROOM],
    length: usize,
}

/// As the kernel gave it.
impl From<&[u8]> for TcpInfo {
    fn from(given: &[u8]) -> Self {
        let mut bytes = [0; ROOM];
        let length = given.len().min(ROOM);
        bytes.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
        Self { bytes, length }
    }
}

impl TcpInfo {
    /// Of a TCP socket (`TCP_INFO`, tcp(7)); `None` if this is none.
    pub fn of(socket: &impl AsRawFd) -> Option<Self> {
        Self::of_descriptor(socket.as_raw_fd())
    }

    /// The same of a descriptor.
    pub fn of_descriptor(socket: RawFd) -> Option<Self> {
        let mut bytes = [0; ROOM];
        let mut length = ROOM as libc::socklen_t;
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
        // SAFETY: `bytes` has `length` bytes; the kernel writes at most that number, and which.
        let failed = unsafe {
            libc::getsockopt(socket, level, name, bytes.as_mut_ptr().cast(), &raw mut length)
        };
        (failed == 0).then_some(Self { bytes, length: (length as usize).min(ROOM) })
    }

    /// Bytes that the other end has acknowledged, since the connection began.
    pub fn acknowledged(&self) -> Option<u64> {
        self.u64_at(120)
    }

    /// The byte there, if the kernel has it.
    pub fn u8_at(&self, at: usize) -> Option<u8> {
        self.chunk_at(at).map(|[byte]: [u8; 1]| byte)
    }

    /// The number of 32 bits there, if the kernel has it.
    pub fn u32_at(&self, at: usize) -> Option<u32> {
        self.chunk_at(at).map(u32::from_ne_bytes)
    }

    /// The number of 64 bits there, if the kernel has it.
    pub fn u64_at(&self, at: usize) -> Option<u64> {
        self.chunk_at(at).map(u64::from_ne_bytes)
    }

    fn chunk_at<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..self.length)?.first_chunk().copied()
    }
}
