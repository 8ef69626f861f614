//! What is to be sent: packets sealed one behind another, the last of which may still take data.

use super::super::codec::Put;
use super::super::message::number;
use super::super::packet::{Broken, HEADER, Sealer};

/// A packet of channel data that is not full.
struct Open {
    start: usize,
    recipient: u32,
}

/// Message number, channel and length before the data.
const DATA_HEADER: usize = 9;

pub(super) struct Output {
    bytes: Vec<u8>,
    /// The first byte that was not sent.
    at: usize,
    open: Option<Open>,
    sealer: Sealer,
}

impl Output {
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), at: 0, open: None, sealer: Sealer::plain() }
    }

    /// Bytes that are in no packet.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn packet(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Broken> {
        self.close()?;
        let start = Sealer::begin(&mut self.bytes);
        write(&mut self.bytes);
        self.sealer.finish(&mut self.bytes, start)
    }

    pub(super) fn data(
        &mut self,
        recipient: u32,
        packet_max: usize,
        mut data: &[u8],
    ) -> Result<(), Broken> {
        while !data.is_empty() {
            let start = match &self.open {
                Some(open) if open.recipient == recipient => open.start,
                _ => self.begin(recipient)?,
            };
            let filled = self.bytes.len() - start - HEADER - DATA_HEADER;
            let n = packet_max.saturating_sub(filled).min(data.len());
            let (now, later) = data.split_at_checked(n).ok_or(Broken::Length)?;
            if now.is_empty() && filled == 0 {
                // The peer accepts no data in a packet.
                return Err(Broken::Length);
            }
            self.bytes.extend_from_slice(now);
            data = later;
            if filled + n >= packet_max {
                self.close()?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, recipient: u32) -> Result<usize, Broken> {
        self.close()?;
        let start = Sealer::begin(&mut self.bytes);
        self.bytes.put_byte(number::CHANNEL_DATA);
        self.bytes.put_u32(recipient);
        self.bytes.put_u32(0);
        self.open = Some(Open { start, recipient });
        Ok(start)
    }

    /// Seals the packet that still took data.
    fn close(&mut self) -> Result<(), Broken> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let at = open.start + HEADER + DATA_HEADER;
        let length = (self.bytes.len() - at) as u32;
        if let Some(place) = self.bytes.get_mut(at - 4..at) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        self.sealer.finish(&mut self.bytes, open.start)
    }

    /// New keys, for what follows.
    pub(super) fn rekey(
        &mut self,
        make: impl FnOnce(u32) -> Result<Sealer, Broken>,
    ) -> Result<(), Broken> {
        self.close()?;
        self.sealer = make(self.sealer.sequence)?;
        Ok(())
    }

    pub(super) fn used(&self) -> (u64, u64) {
        self.sealer.used
    }

    pub(super) fn bytes(&mut self) -> Result<&[u8], Broken> {
        self.close()?;
        Ok(self.bytes.get(self.at..).unwrap_or_default())
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn sent(&mut self, n: usize) {
        self.at += n;
        debug_assert!(self.at <= self.bytes.len() && self.open.is_none());
        if self.at >= self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        } else if self.at > self.bytes.len() / 2 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }

    /// Gives memory back that an idle connection does not need.
    pub(super) fn shrink(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
    }
}
