//! A persistent handle as the file of handles has it (`docs/formats/smb-handles.md`): its number is
//! the key, this is the value.

use std::net::{IpAddr, Ipv6Addr};

use vfs::handle::Handle;
use vfs::locks::{FileKey, Kind, Range, Share};
use wire::smb::durable::CreateGuid;
use wire::smb::lease::LeaseKey;

use crate::state::leases::ClientGuid;

/// The layout of a record.
const LAYOUT: u8 = 1;
/// Bit of the flags: the close of the open removes the file.
const DELETE_ON_CLOSE: u8 = 1;
/// Bit of the flags: the file is to be removed.
const DELETE_PENDING: u8 = 2;
/// Bit of the flags: the open has a lease.
const LEASED: u8 = 4;
/// Bit of the flags: the lease is one of version 2.
const HAS_EPOCH: u8 = 8;
/// The highest kind of lock: shared is 0.
const EXCLUSIVE: u8 = 1;

/// What is known of a persistent handle after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The user.
    pub user: String,
    /// The name of the share.
    pub share: String,
    /// The path, from the list of shares on.
    pub path: Vec<u8>,
    /// The handle of the file.
    pub handle: Handle,
    /// The file.
    pub file: FileKey,
    /// The address of the client.
    pub address: IpAddr,
    /// ClientGuid.
    pub client: ClientGuid,
    /// CreateGuid.
    pub guid: CreateGuid,
    /// Milliseconds that it waits for its client.
    pub timeout_ms: u32,
    /// Rights that were granted.
    pub access: u32,
    /// What it does, and what it denies to others.
    pub mode: Share,
    /// Options that remain with the open.
    pub options: u32,
    /// Its close removes the file.
    pub delete_on_close: bool,
    /// The file is to be removed.
    pub is_marked: bool,
    /// The key of its lease, and whether that is one of version 2.
    pub lease: Option<(LeaseKey, bool)>,
    /// Numbers of the last LOCKs, from index 1 on.
    pub sequences: Vec<Option<u8>>,
    /// Byte ranges that it has locked.
    pub ranges: Vec<(Range, Kind)>,
}

/// A number that no LOCK has.
const NO_SEQUENCE: u8 = u8::MAX;

impl Record {
    /// The value of the record.
    pub fn encode(&self) -> Vec<u8> {
        let flags = [
            (self.delete_on_close, DELETE_ON_CLOSE),
            (self.is_marked, DELETE_PENDING),
            (self.lease.is_some(), LEASED),
            (self.lease.is_some_and(|(_, has_epoch)| has_epoch), HAS_EPOCH),
        ];
        let set = flags.into_iter().filter(|(is_set, _)| *is_set);
        let flags = set.fold(0, |all, (_, bit)| all | bit);
        let mut out = vec![LAYOUT, flags, self.mode.access, self.mode.deny];
        for number in [self.timeout_ms, self.access, self.options] {
            out.extend(number.to_le_bytes());
        }
        for number in [self.file.fsid, self.file.fileid, self.file.generation] {
            out.extend(number.to_le_bytes());
        }
        out.extend(to_ipv6(self.address).octets());
        out.extend(self.client);
        out.extend(self.guid);
        out.extend(self.lease.map_or([0; 16], |(key, _)| key));
        let sequences = self.sequences.iter().map(|one| one.unwrap_or(NO_SEQUENCE));
        let sequences: Vec<u8> = sequences.collect();
        let texts = [self.user.as_bytes(), self.share.as_bytes(), &self.path];
        for bytes in texts.into_iter().chain([self.handle.as_bytes(), &sequences]) {
            // Far below what the length holds: a record is limited.
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
        }
        out.extend((self.ranges.len() as u32).to_le_bytes());
        for (range, kind) in &self.ranges {
            out.extend(range.start.to_le_bytes());
            out.extend(range.end.to_le_bytes());
            out.push(u8::from(*kind == Kind::Write));
        }
        out
    }

    /// Reads the value of a record; `None` if it is none of this version.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let mut rest = value;
        let rest = &mut rest;
        let [layout, flags, access, deny] = take(rest)?;
        if layout != LAYOUT {
            return None;
        }
        let mode = Share { access, deny };
        let [timeout_ms, access, options] = [number32(rest)?, number32(rest)?, number32(rest)?];
        let [fsid, fileid, generation] = [number64(rest)?, number64(rest)?, number64(rest)?];
        let address = IpAddr::V6(Ipv6Addr::from(take::<16>(rest)?)).to_canonical();
        let (client, guid, key) = (take(rest)?, take(rest)?, take(rest)?);
        let user = String::from_utf8(bytes(rest)?.to_vec()).ok()?;
        let share = String::from_utf8(bytes(rest)?.to_vec()).ok()?;
        let path = bytes(rest)?.to_vec();
        let handle = Handle::new(bytes(rest)?)?;
        let sequence = |one: &u8| Some(*one).filter(|one| *one != NO_SEQUENCE);
        let sequences = bytes(rest)?.iter().map(sequence).collect();
        let count = number32(rest)?;
        let mut ranges = Vec::new();
        for _ in 0..count {
            let range = Range { start: number64(rest)?, end: number64(rest)? };
            let [kind] = take(rest)?;
            if kind > EXCLUSIVE {
                return None;
            }
            ranges.push((range, if kind == EXCLUSIVE { Kind::Write } else { Kind::Read }));
        }
        let has = |bit: u8| flags & bit != 0;
        rest.is_empty().then_some(Self {
            user,
            share,
            path,
            handle,
            file: FileKey { fsid, fileid, generation },
            address,
            client,
            guid,
            timeout_ms,
            access,
            mode,
            options,
            delete_on_close: has(DELETE_ON_CLOSE),
            is_marked: has(DELETE_PENDING),
            lease: has(LEASED).then_some((key, has(HAS_EPOCH))),
            sequences,
            ranges,
        })
    }
}

fn to_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// Cuts `N` bytes off the front.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (front, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*front)
}

fn number32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_le_bytes)
}

fn number64(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

/// Cuts bytes off the front that have their length before them.
fn bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number32(rest)?).ok()?;
    let (front, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(front)
}

#[cfg(test)]
mod tests;
