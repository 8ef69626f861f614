//! The windows of a channel (RFC 4254, section 5.2), the same on both sides.

/// The peer sent what the windows do not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Overrun {
    /// More data than it was granted.
    #[error("more data than the channel's window has room for")]
    Data,
    /// A window of more than 2^32 - 1 bytes.
    #[error("the channel's window grows beyond its limit")]
    Window,
}

/// How much may still be sent and received on a channel, in bytes.
#[derive(Debug, Clone)]
pub struct Flow {
    send: u32,
    packet_max: u32,
    receive: u32,
    receive_max: u32,
    /// Taken by the application, and not granted again yet.
    taken: u32,
}

impl Flow {
    /// We grant `window` bytes and grant them again as they are taken. The peer's window comes with
    /// [`Flow::opened`].
    pub fn new(window: u32) -> Self {
        Self { send: 0, packet_max: 0, receive: window, receive_max: window, taken: 0 }
    }

    /// We grant `bytes` more, now and each time that they are taken.
    pub fn grow(&mut self, bytes: u32) {
        self.receive = self.receive.saturating_add(bytes);
        self.receive_max = self.receive_max.saturating_add(bytes);
    }

    /// What the peer grants at the beginning, and how much data one packet may carry.
    pub fn opened(&mut self, window: u32, packet_max: u32) {
        self.send = window;
        self.packet_max = packet_max;
    }

    /// Bytes that the peer takes in one packet now.
    pub fn sendable(&self) -> usize {
        self.send.min(self.packet_max) as usize
    }

    /// The peer's whole window.
    pub fn window(&self) -> usize {
        self.send as usize
    }

    /// Bytes that a packet may carry.
    pub fn packet_max(&self) -> usize {
        self.packet_max as usize
    }

    /// `bytes` go to the peer; they are no more than [`Flow::window`].
    pub fn sent(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.window());
        self.send = self.send.saturating_sub(bytes as u32);
    }

    /// The peer grants more.
    ///
    /// # Errors
    /// [`Overrun::Window`]
    pub fn adjusted(&mut self, bytes: u32) -> Result<(), Overrun> {
        self.send = self.send.checked_add(bytes).ok_or(Overrun::Window)?;
        Ok(())
    }

    /// `bytes` came from the peer.
    ///
    /// # Errors
    /// [`Overrun::Data`]
    pub fn received(&mut self, bytes: usize) -> Result<(), Overrun> {
        let bytes = u32::try_from(bytes).map_err(|_| Overrun::Data)?;
        self.receive = self.receive.checked_sub(bytes).ok_or(Overrun::Data)?;
        Ok(())
    }

    /// The application took `bytes`. Returns what to grant the peer now, if it is worth a message:
    /// a quarter of the window at a time keeps a fast peer sending and costs few messages.
    pub fn taken(&mut self, bytes: usize) -> Option<u32> {
        self.taken = self.taken.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if self.taken < self.receive_max / 4 {
            return None;
        }
        let grant = std::mem::take(&mut self.taken);
        self.receive = self.receive.saturating_add(grant);
        Some(grant)
    }
}
