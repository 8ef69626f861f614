//! Persistent reservations that survive a power loss: a journal of the state of each unit for which
//! an initiator has set APTPL. The format is `docs/formats/reservations.md`.

use core::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use base::limits::{LUN_RESERVATIONS_FILE_MAX, LUN_RESERVATIONS_RECORD_MAX};

use super::{Holding, Kind, Port, Registration, Reservations};
use crate::journal::{Journal, JournalError, Limits};

/// What the file begins with.
pub const MAGIC: [u8; 8] = *b"PLIMRSV1";
/// A unit, by the 16 bytes of its identifier.
pub type Guid = [u8; 16];
/// No registered initiator holds the reservation.
const NOBODY: u16 = u16::MAX;

/// The address of a registration that an earlier version stored.
const UNKNOWN: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

/// The journal of all units.
pub struct Store {
    journal: Journal,
}

impl Store {
    /// Opens or makes the file. If it cannot be written now, that is the second value.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn open(path: &Path) -> Result<(Self, Option<JournalError>), JournalError> {
        let limits = Limits {
            record_max: LUN_RESERVATIONS_RECORD_MAX,
            file_max: LUN_RESERVATIONS_FILE_MAX,
            compact: LUN_RESERVATIONS_FILE_MAX / 16,
        };
        let (journal, unwritten) = Journal::open(path, MAGIC, limits)?;
        Ok((Self { journal }, unwritten))
    }

    /// What was kept of a unit; nothing if it cannot be understood.
    pub fn load(&self, unit: &Guid) -> Reservations {
        let records = self.journal.records();
        records.get(unit.as_slice()).and_then(|record| decode(record)).unwrap_or_default()
    }

    /// Keeps the state of a unit if it is to persist, and forgets it otherwise. On disk when it
    /// returns; it blocks.
    ///
    /// # Errors
    /// It cannot be written; then the old state is kept.
    pub fn save(&self, unit: &Guid, state: &Reservations) -> Result<(), JournalError> {
        if state.persists() && !state.is_empty() {
            self.journal.put(unit, &encode(state))
        } else {
            self.journal.remove(&[unit])
        }
    }

    /// Forgets a unit that is gone.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&self, unit: &Guid) -> Result<(), JournalError> {
        self.journal.remove(&[unit])
    }
}

/// A record's value.
fn encode(state: &Reservations) -> Vec<u8> {
    let mut out = state.generation.to_le_bytes().to_vec();
    let holder = state.holding.as_ref().map_or((0, NOBODY), |holding| {
        let at = state.registrations.keys().position(|port| *port == holding.holder);
        (holding.kind as u8, at.map_or(NOBODY, |at| at as u16))
    });
    out.push(holder.0);
    out.extend(holder.1.to_le_bytes());
    out.extend((state.registrations.len() as u16).to_le_bytes());
    for (port, one) in &state.registrations {
        out.extend(one.key.to_le_bytes());
        out.extend(port.isid);
        out.push(port.name.len() as u8);
        out.extend(port.name.as_bytes());
    }
    for one in state.registrations.values() {
        out.extend(one.from.map_or(UNKNOWN, to_ipv6).octets());
    }
    out
}

fn to_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// Cuts `N` bytes off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*front)
}

/// The state in a record's value: what `plimsoll inspect` shows.
pub fn decode(mut bytes: &[u8]) -> Option<Reservations> {
    let bytes = &mut bytes;
    let generation = u32::from_le_bytes(take(bytes)?);
    let [kind] = take(bytes)?;
    let holder = u16::from_le_bytes(take(bytes)?);
    let count = u16::from_le_bytes(take(bytes)?);
    let mut state = Reservations { generation, persists: true, ..Reservations::default() };
    let mut holding = None;
    for at in 0..count {
        let (key, isid) = (u64::from_le_bytes(take(bytes)?), take(bytes)?);
        let [length] = take(bytes)?;
        let (name, rest) = bytes.split_at_checked(usize::from(length))?;
        *bytes = rest;
        let port = Port { name: String::from_utf8(name.to_vec()).ok()?, isid };
        if at == holder {
            holding = Some(port.clone());
        }
        state.registrations.insert(port, Registration { key, from: None });
    }
    if !bytes.is_empty() {
        for one in state.registrations.values_mut() {
            let address = Ipv6Addr::from(take::<16>(bytes)?);
            one.from = Some(IpAddr::V6(address).to_canonical()).filter(|_| address != UNKNOWN);
        }
    }
    if let Some(kind) = Kind::of(kind) {
        // The holder is not registered: a type that all hold, made by an initiator that has left.
        let nobody = Port { name: String::new(), isid: [0; 6] };
        state.holding = Some(Holding { kind, holder: holding.unwrap_or(nobody) });
    }
    bytes.is_empty().then_some(state)
}

#[cfg(test)]
mod tests;
