//! What TCP says of a connection (Linux `struct tcp_info`, linux/tcp.h), read by its offsets: the
//! kernel only ever adds at its end.

use std::os::fd::AsRawFd;

/// More than any kernel has to say today.
const ROOM: usize = 256;

/// The structure as the kernel gave it, which may be shorter than today's.
#[derive(Debug, Clone)]
pub struct TcpInfo(Vec<u8>);

/// As the kernel gave it.
impl From<&[u8]> for TcpInfo {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl TcpInfo {
    /// Of a TCP socket; `None` when the kernel does not say.
    pub fn of(socket: &impl AsRawFd) -> Option<Self> {
        let mut info = vec![0u8; ROOM];
        let mut len = info.len() as libc::socklen_t;
        // SAFETY: `info` has `len` bytes; the kernel writes at most that many and says how many.
        let failed = unsafe {
            let to = info.as_mut_ptr().cast();
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                to,
                &raw mut len,
            )
        };
        info.truncate(len as usize);
        (failed == 0).then_some(Self(info))
    }

    /// Bytes that the other end has acknowledged, since the connection began.
    pub fn acknowledged(&self) -> Option<u64> {
        self.u64_at(120)
    }

    /// The byte there, if the kernel has it.
    pub fn u8_at(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    /// The number of 32 bits there, if the kernel has it.
    pub fn u32_at(&self, at: usize) -> Option<u32> {
        self.0.get(at..at + 4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// The number of 64 bits there, if the kernel has it.
    pub fn u64_at(&self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_ne_bytes(bytes))
    }
}
