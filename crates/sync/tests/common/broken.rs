//! Links that break off after a number of bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

pub const HOST: &str = "127.0.0.1";

/// Breaks off after `left` bytes, and counts what was sent.
pub struct Breaks {
    pub write: Box<dyn Write + Send>,
    pub left: usize,
    pub sent: Arc<AtomicU64>,
}

impl Write for Breaks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let n = self.write.write(&bytes[..bytes.len().min(self.left)])?;
        self.left -= n;
        self.sent.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.write.flush()
    }
}

/// Passes connections on to a port, breaks them all after `bytes` bytes, and counts these.
pub fn breaks(to: u32, bytes: i64, sent: &Arc<AtomicU64>) -> u32 {
    let listener = TcpListener::bind((HOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it").port();
    let (left, sent) = (Arc::new(AtomicI64::new(bytes)), Arc::clone(sent));
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect((HOST, to as u16)) else { return };
            for (from, into) in [(&near, &far), (&far, &near)] {
                let (from, into) = (from.try_clone().expect("it"), into.try_clone().expect("it"));
                let (left, sent) = (Arc::clone(&left), Arc::clone(&sent));
                std::thread::spawn(move || pass((from, into), &left, &sent));
            }
        }
    });
    port.into()
}

/// Passes connections on to a port, none before something is so.
pub fn held(to: u32, until: impl Fn() -> bool + Send + 'static) -> u32 {
    let listener = TcpListener::bind((HOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it").port();
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            while !until() {
                std::thread::yield_now();
            }
            let Ok(far) = TcpStream::connect((HOST, to as u16)) else { return };
            for (from, into) in [(&near, &far), (&far, &near)] {
                let (from, into) = (from.try_clone().expect("it"), into.try_clone().expect("it"));
                std::thread::spawn(move || {
                    pass((from, into), &AtomicI64::new(i64::MAX), &Arc::default())
                });
            }
        }
    });
    port.into()
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Both sides see its end.
    Shut,
    /// Both sides see that it was reset.
    Reset,
    /// Nothing goes over it any more, and neither side is notified.
    Stall,
    /// A bit is flipped, and the connection continues.
    Garble,
}

/// Passes connections on to a port; the first of them end as in `ends`, each after the bytes given
/// there. Counts the ended ones in the second result.
pub fn ends(to: u32, mut ends: Vec<(i64, End)>) -> (u32, Arc<AtomicU64>) {
    let listener = TcpListener::bind((HOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it").port();
    let ended: Arc<AtomicU64> = Arc::default();
    let counts = Arc::clone(&ended);
    ends.reverse();
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect((HOST, to as u16)) else { return };
            let (left, end) = ends.pop().unwrap_or((i64::MAX, End::Shut));
            let left = Arc::new(AtomicI64::new(left));
            for (from, into) in [(&near, &far), (&far, &near)] {
                let (from, into) = (from.try_clone().expect("it"), into.try_clone().expect("it"));
                let (left, ended) = (Arc::clone(&left), Arc::clone(&counts));
                std::thread::spawn(move || pass_until((from, into), &left, end, &ended));
            }
        }
    });
    (port.into(), ended)
}

/// Ends a connection without having sent what waits: connect(2) to no address.
fn reset(socket: &TcpStream) {
    // SAFETY: all zeros are an address of no family, and have its size.
    unsafe {
        let none: libc::sockaddr = std::mem::zeroed();
        let size = size_of_val(&none) as libc::socklen_t;
        libc::connect(socket.as_raw_fd(), &raw const none, size);
    }
}

fn pass_until(
    (mut from, mut into): (TcpStream, TcpStream),
    left: &AtomicI64,
    end: End,
    ended: &AtomicU64,
) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        let before = left.fetch_sub(n as i64, Ordering::Relaxed);
        let over = before < n as i64;
        if over && before >= 0 {
            ended.fetch_add(1, Ordering::Relaxed);
            match end {
                End::Garble => bytes[n / 2] ^= 0x10,
                End::Reset => [&from, &into].into_iter().for_each(reset),
                End::Shut | End::Stall => {}
            }
        }
        match end {
            End::Garble => {}
            // What has come is taken, so that its sender does not see it at once.
            End::Stall if over => continue,
            _ if over => break,
            _ => {}
        }
        if into.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    for socket in [from, into] {
        let _closed = socket.shutdown(Shutdown::Both);
    }
}

fn pass((mut from, mut into): (TcpStream, TcpStream), left: &AtomicI64, sent: &AtomicU64) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        let broken = left.fetch_sub(n as i64, Ordering::Relaxed) < n as i64;
        if broken || into.write_all(&bytes[..n]).is_err() {
            break;
        }
        sent.fetch_add(n as u64, Ordering::Relaxed);
    }
    for socket in [from, into] {
        let _closed = socket.shutdown(Shutdown::Both);
    }
}
