//! Connections that were accepted and have not proved themselves: a few at a time, each with a
//! deadline. For a newer one the oldest that has sent nothing is disconnected, so a silent peer
//! delays no other; one that sends has a moment to complete its first message.

use base::clock::monotonic_ns;
use base::limits::LAB_AGENT_ACCEPT_PAUSE;
use socket2::SockRef;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a peer that has sent something keeps its entry, if newer ones come: hundreds of agents
/// that call at once would end each other's handshakes.
const FIRST_MIN: Duration = Duration::from_millis(500);

/// One of them.
struct Entry {
    number: u64,
    socket: TcpStream,
    sends: Arc<AtomicBool>,
    since_ns: u64,
}

impl Entry {
    fn age(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.since_ns))
    }

    /// Whether nothing of it was read or waits to be read.
    fn is_silent(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        let waits = SockRef::from(&self.socket).recv_with_flags(&mut byte, flags).is_ok();
        !waits && !self.sends.load(Ordering::SeqCst)
    }
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    next: u64,
}

/// The connections of one listener.
pub struct Gate {
    most: usize,
    state: Mutex<State>,
    left: Condvar,
}

/// A connection's entry; it ends with this value.
pub struct HalfOpen {
    gate: Arc<Gate>,
    number: u64,
    sends: Arc<AtomicBool>,
}

impl HalfOpen {
    /// Notes that something has come from the peer.
    pub fn sends(&self) {
        self.sends.store(true, Ordering::SeqCst);
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        self.gate.state().entries.retain(|entry| entry.number != self.number);
        self.gate.left.notify_one();
    }
}

impl Gate {
    /// At most this number of connections.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default(), left: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a connection; if there are too many, one ends: the oldest that is silent, or after
    /// [`FIRST_MIN`] the oldest.
    ///
    /// # Errors
    /// There is no descriptor for it.
    pub fn enter(self: &Arc<Self>, socket: &TcpStream) -> io::Result<HalfOpen> {
        let socket = socket.try_clone()?;
        let sends = Arc::new(AtomicBool::new(false));
        let mut state = self.state();
        while state.entries.len() >= self.most {
            let age = state.entries.first().map_or(FIRST_MIN, Entry::age);
            let silent = state.entries.iter().position(Entry::is_silent);
            let Some(left) = FIRST_MIN.checked_sub(age).filter(|_| silent.is_none()) else {
                let ends = state.entries.remove(silent.unwrap_or(0));
                // Its thread notices; one that is disconnected already is as good.
                let _gone = ends.socket.shutdown(Shutdown::Both);
                break;
            };
            let waited = self.left.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.next += 1;
        let (number, since_ns) = (state.next, monotonic_ns());
        state.entries.push(Entry { number, socket, sends: Arc::clone(&sends), since_ns });
        Ok(HalfOpen { gate: Arc::clone(self), number, sends })
    }

    /// Accepts for as long as the process lives, or until `ended` is set; each connection gets a
    /// thread of its own.
    pub fn accept<F>(self: &Arc<Self>, listener: &TcpListener, ended: &AtomicBool, handle: F)
    where
        F: Fn(TcpStream, HalfOpen) + Send + Sync + 'static,
    {
        let handle = Arc::new(handle);
        while !ended.load(Ordering::SeqCst) {
            let accepted = listener.accept();
            let half_open = accepted.and_then(|(socket, _)| Ok((self.enter(&socket)?, socket)));
            let Ok((half_open, socket)) = half_open else {
                // No descriptors, or a peer that has gone already.
                std::thread::sleep(LAB_AGENT_ACCEPT_PAUSE);
                continue;
            };
            let handle = Arc::clone(&handle);
            let builder = std::thread::Builder::new().name("lab-join".into());
            // Without a thread the connection ends.
            let _refused = builder.spawn(move || handle(socket, half_open));
        }
    }
}

#[cfg(test)]
mod tests;
