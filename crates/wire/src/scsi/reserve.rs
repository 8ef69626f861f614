//! Persistent reservations (SPC-5 §5.14, §6.16, §6.17): what PERSISTENT RESERVE IN answers and what
//! PERSISTENT RESERVE OUT brings.

use base::limits::{SCSI_LIST_MAX, SCSI_TRANSPORT_IDS_MAX};

use super::cdb::ReserveOut;
use super::fields::{
    bit_at, end_list_u32, put_at, set_at, slice_at, u8_at, u16_at, u32_at, u64_at,
};
use super::transport_id::TransportId;
use super::{ResponseError, ScsiError};

/// Bytes of the parameters, TransportIDs apart.
const LIST: usize = 24;

/// What PERSISTENT RESERVE OUT brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// The key that the sender is registered with.
    pub key: u64,
    /// The key that the action is about.
    pub action_key: u64,
    /// APTPL: reservations outlive a loss of power.
    pub persist: bool,
    /// What more there is, by action.
    pub more: More,
}

/// The rest of [`Parameters`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum More {
    /// Of all actions but REGISTER AND MOVE.
    Plain {
        /// ALL_TG_PT: for all ports of the target.
        all_ports: bool,
        /// SPEC_I_PT: others that are registered with the same key. Only of REGISTER.
        initiators: Vec<TransportId>,
    },
    /// Of REGISTER AND MOVE.
    Move {
        /// UNREG: the sender is no longer registered then.
        unregister: bool,
        /// The port for which another initiator is registered.
        port: u16,
        /// That initiator.
        initiator: TransportId,
    },
}

impl Parameters {
    /// Appends the parameters.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut b = [0; LIST];
        put_at(&mut b, 0, &self.key.to_be_bytes());
        put_at(&mut b, 8, &self.action_key.to_be_bytes());
        match &self.more {
            More::Plain { all_ports, initiators } => {
                set_at(&mut b, 20, 8, !initiators.is_empty());
                set_at(&mut b, 20, 4, *all_ports);
                set_at(&mut b, 20, 1, self.persist);
                out.extend_from_slice(&b);
                if !initiators.is_empty() {
                    out.extend_from_slice(&[0; 4]);
                    initiators.iter().for_each(|id| id.put(out));
                    end_list_u32(out.get_mut(start..).unwrap_or_default(), LIST, LIST + 4);
                }
            }
            More::Move { unregister, port, initiator } => {
                set_at(&mut b, 17, 2, *unregister);
                set_at(&mut b, 17, 1, self.persist);
                put_at(&mut b, 18, &port.to_be_bytes());
                out.extend_from_slice(&b);
                initiator.put(out);
                end_list_u32(out.get_mut(start..).unwrap_or_default(), 20, LIST);
            }
        }
    }

    /// Reads the parameters of this action. `list` is all that the initiator has sent.
    ///
    /// # Errors
    /// [`ScsiError::ListLength`] for any length but the one that they have;
    /// [`ScsiError::ListField`] for a TransportID that is none, and for SPEC_I_PT without REGISTER.
    pub fn parse(action: ReserveOut, list: &[u8]) -> Result<Self, ScsiError> {
        if list.len() < LIST {
            return Err(ScsiError::ListLength);
        }
        let (key, action_key) = (u64_at(list, 0), u64_at(list, 8));
        if action == ReserveOut::RegisterAndMove {
            let length = u32_at(list, 20) as usize;
            let (initiator, used) = TransportId::parse(slice_at(list, LIST, length), LIST)?;
            if used != length || list.len() != LIST + length {
                return Err(ScsiError::ListLength);
            }
            let (unregister, port) = (bit_at(list, 17, 2), u16_at(list, 18));
            let more = More::Move { unregister, port, initiator };
            return Ok(Self { key, action_key, persist: bit_at(list, 17, 1), more });
        }
        let has_initiators = bit_at(list, 20, 8);
        if has_initiators && action != ReserveOut::Register {
            return Err(ScsiError::list(20, 3));
        }
        let initiators = match has_initiators {
            true => transport_ids(list)?,
            false if list.len() == LIST => Vec::new(),
            false => return Err(ScsiError::ListLength),
        };
        let more = More::Plain { all_ports: bit_at(list, 20, 4), initiators };
        Ok(Self { key, action_key, persist: bit_at(list, 20, 1), more })
    }
}

fn transport_ids(list: &[u8]) -> Result<Vec<TransportId>, ScsiError> {
    let (length, first) = (u32_at(list, LIST) as usize, LIST + 4);
    if list.len() < first || list.len() - first != length {
        return Err(ScsiError::ListLength);
    }
    let (mut ids, mut at) = (Vec::new(), first);
    while at < list.len() {
        if ids.len() == SCSI_TRANSPORT_IDS_MAX {
            return Err(ScsiError::list(LIST, 7));
        }
        let (id, used) = TransportId::parse(list.get(at..).unwrap_or_default(), at)?;
        ids.push(id);
        at += used;
    }
    Ok(ids)
}

/// Appends the data of READ KEYS.
pub fn put_keys(generation: u32, keys: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&generation.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    keys.iter().for_each(|key| out.extend_from_slice(&key.to_be_bytes()));
    end_list_u32(out.get_mut(start..).unwrap_or_default(), 4, 8);
}

/// The generation and the list in an answer of READ KEYS, READ RESERVATION or READ FULL STATUS.
fn open(data: &[u8]) -> Result<(u32, &[u8]), ResponseError> {
    if data.len() < 8 {
        return Err(ResponseError::Short { what: "persistent reservations" });
    }
    Ok((u32_at(data, 0), slice_at(data, 8, u32_at(data, 4) as usize)))
}

/// The generation and the keys of READ KEYS, as far as they are whole.
///
/// # Errors
/// [`ResponseError`].
pub fn keys(data: &[u8]) -> Result<(u32, Vec<u64>), ResponseError> {
    let (generation, list) = open(data)?;
    if list.len() / 8 > SCSI_LIST_MAX {
        return Err(ResponseError::TooLong { what: "keys", max: SCSI_LIST_MAX });
    }
    Ok((generation, list.chunks_exact(8).map(|key| u64_at(key, 0)).collect()))
}

/// A reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Key of the holder; 0 if all registrants hold it.
    pub key: u64,
    /// Scope (4 bits): 0 is the logical unit.
    pub scope: u8,
    /// Type (4 bits), by its number in SPC-5 §6.16.3.4.
    pub kind: u8,
}

/// Appends the data of READ RESERVATION.
pub fn put_reservation(generation: u32, reservation: Option<Reservation>, out: &mut Vec<u8>) {
    out.extend_from_slice(&generation.to_be_bytes());
    match reservation {
        None => out.extend_from_slice(&[0; 4]),
        Some(Reservation { key, scope, kind }) => {
            out.extend_from_slice(&[0, 0, 0, 16]);
            out.extend_from_slice(&key.to_be_bytes());
            out.extend_from_slice(&[0, 0, 0, 0, 0, scope << 4 | kind & 0xf, 0, 0]);
        }
    }
}

/// The generation and the reservation of READ RESERVATION.
///
/// # Errors
/// [`ResponseError::Short`].
pub fn reservation(data: &[u8]) -> Result<(u32, Option<Reservation>), ResponseError> {
    let (generation, b) = open(data)?;
    let short = ResponseError::Short { what: "reservation" };
    match (u32_at(data, 4), b.len()) {
        (0, _) => Ok((generation, None)),
        (_, 16..) => {
            let (key, scope, kind) = (u64_at(b, 0), u8_at(b, 13) >> 4, u8_at(b, 13) & 0xf);
            Ok((generation, Some(Reservation { key, scope, kind })))
        }
        _ => Err(short),
    }
}

/// Capabilities of persistent reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// CRH: RESERVE and RELEASE are compatible with them.
    pub compatible: bool,
    /// SIP_C: SPEC_I_PT.
    pub initiators: bool,
    /// ATP_C: ALL_TG_PT.
    pub all_ports: bool,
    /// PTPL_C: they can outlive a loss of power.
    pub can_persist: bool,
    /// PTPL_A: they do.
    pub persists: bool,
    /// ALLOW COMMANDS (3 bits): which commands reservations let through.
    pub allow_commands: u8,
}

/// Type mask of all six types (SPC-5 §6.16.4).
const TYPES: u16 = 0xea01;

impl Capabilities {
    /// Appends the data of REPORT CAPABILITIES, with all types of reservations.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0, 8, 0, 0, 0, 0, 0, 0];
        set_at(&mut b, 2, 0x10, self.compatible);
        set_at(&mut b, 2, 8, self.initiators);
        set_at(&mut b, 2, 4, self.all_ports);
        set_at(&mut b, 2, 1, self.can_persist);
        b[3] = 0x80 | (self.allow_commands & 7) << 4 | u8::from(self.persists);
        put_at(&mut b, 4, &TYPES.to_be_bytes());
        out.extend_from_slice(&b);
    }

    /// Reads the data, and the type mask.
    ///
    /// # Errors
    /// [`ResponseError::Short`].
    pub fn decode(b: &[u8]) -> Result<(Self, u16), ResponseError> {
        if b.len() < 8 {
            return Err(ResponseError::Short { what: "capabilities" });
        }
        let capabilities = Self {
            compatible: bit_at(b, 2, 0x10),
            initiators: bit_at(b, 2, 8),
            all_ports: bit_at(b, 2, 4),
            can_persist: bit_at(b, 2, 1),
            persists: bit_at(b, 3, 1),
            allow_commands: u8_at(b, 3) >> 4 & 7,
        };
        Ok((capabilities, if bit_at(b, 3, 0x80) { u16_at(b, 4) } else { 0 }))
    }
}

/// A registration with its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullStatus {
    /// Its key.
    pub key: u64,
    /// ALL_TG_PT: for all ports of the target.
    pub all_ports: bool,
    /// Scope and type of the reservation, if this registration holds it.
    pub holds: Option<(u8, u8)>,
    /// Relative port of the target; undefined with `all_ports`.
    pub port: u16,
    /// The registered initiator.
    pub initiator: TransportId,
}

/// Appends the data of READ FULL STATUS.
pub fn put_full_status(generation: u32, list: &[FullStatus], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&generation.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    for one in list {
        let from = out.len();
        let mut b = [0; 24];
        put_at(&mut b, 0, &one.key.to_be_bytes());
        set_at(&mut b, 12, 2, one.all_ports);
        if let Some((scope, kind)) = one.holds {
            b[12] |= 1;
            b[13] = scope << 4 | kind & 0xf;
        }
        put_at(&mut b, 18, &one.port.to_be_bytes());
        out.extend_from_slice(&b);
        one.initiator.put(out);
        end_list_u32(out.get_mut(from..).unwrap_or_default(), 20, 24);
    }
    end_list_u32(out.get_mut(start..).unwrap_or_default(), 4, 8);
}

/// The generation and the registrations of READ FULL STATUS, as far as they are whole.
///
/// # Errors
/// [`ResponseError`], also for a TransportID that is none.
pub fn full_status(data: &[u8]) -> Result<(u32, Vec<FullStatus>), ResponseError> {
    let (generation, mut rest) = open(data)?;
    let mut list = Vec::new();
    while let Some((b, after)) = rest.split_first_chunk::<24>() {
        let Some((id, after)) = after.split_at_checked(u32_at(b, 20) as usize) else { break };
        if list.len() == SCSI_LIST_MAX {
            return Err(ResponseError::TooLong { what: "registrations", max: SCSI_LIST_MAX });
        }
        let (initiator, _) = TransportId::parse(id, 0)
            .map_err(|_| ResponseError::BadValue { what: "TransportID", got: u32_at(id, 0) })?;
        list.push(FullStatus {
            key: u64_at(b, 0),
            all_ports: bit_at(b, 12, 2),
            holds: bit_at(b, 12, 1).then_some((b[13] >> 4, b[13] & 0xf)),
            port: u16_at(b, 18),
            initiator,
        });
        rest = after;
    }
    Ok((generation, list))
}
