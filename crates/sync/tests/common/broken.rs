//! Links that break off after so many bytes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

pub const HOST: &str = "127.0.0.1";

/// Breaks off after so many bytes, and counts what was sent.
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

/// Passes connections on to a port, breaks them all after so many bytes, and counts these.
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
