//! CREATEs with contexts: leases and durable handles.

use std::io;

use wire::smb::codec::Field as _;
use wire::smb::contexts::{self, Context};
use wire::smb::create::{self, FileId};
use wire::smb::durable::{CreateGuid, DurableV2, PERSISTENT, ReconnectV2};
use wire::smb::header::Command;
use wire::smb::lease::{Lease, LeaseKey, LeaseV2, level};
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use super::{Answer, Ask, Smb};

/// Reading, handles and writing.
pub const RWH: u32 = 7;

/// Data of a context, with its name.
pub type Named = (&'static [u8], Vec<u8>);

/// A lease of version 2.
pub fn lease(key: LeaseKey, state: u32) -> Named {
    let (mut data, v2) = (Vec::new(), Some(LeaseV2 { parent: [0; 16], epoch: 1, reserved: 0 }));
    Lease { key, state, flags: 0, duration: 0, v2 }.put(&mut data);
    (contexts::LEASE, data)
}

/// A durable handle of version 2, for a minute.
pub fn durable(guid: CreateGuid) -> Named {
    let mut data = Vec::new();
    DurableV2 { timeout_ms: 60_000, flags: 0, reserved: 0, guid }.put(&mut data);
    (contexts::DURABLE_V2, data)
}

/// A persistent handle, for a minute.
pub fn persistent(guid: CreateGuid) -> Named {
    let mut data = Vec::new();
    DurableV2 { timeout_ms: 60_000, flags: PERSISTENT, reserved: 0, guid }.put(&mut data);
    (contexts::DURABLE_V2, data)
}

/// Continues a durable handle of version 2.
pub fn reconnect(file: FileId, guid: CreateGuid) -> Named {
    let mut data = Vec::new();
    ReconnectV2 { file, guid, flags: 0 }.put(&mut data);
    (contexts::DURABLE_V2_RECONNECT, data)
}

/// The body of a CREATE with contexts, of which a lease decides the oplock level.
pub fn body(ask: &Ask<'_>, named: &[Named]) -> impl Fn(&mut Vec<u8>) + use<> {
    let (name, mut list) = (utf16::encode(ask.path), Vec::new());
    let all: Vec<_> = named.iter().map(|(name, data)| Context { name, data }).collect();
    contexts::put(&all, &mut list);
    let is_leased = named.iter().any(|(name, _)| *name == contexts::LEASE);
    let ask = (ask.access, ask.share, ask.disposition as u32, ask.options);
    move |out| {
        let (access, share, disposition, options) = ask;
        let request = create::Request {
            oplock: if is_leased { level::LEASE } else { level::NONE },
            impersonation: 2,
            access,
            attributes: 0,
            share,
            disposition,
            options,
            name: &name,
            contexts: &list,
        };
        request.put(out, 0);
    }
}

impl Smb {
    /// CREATE with contexts.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn create_with(&mut self, ask: &Ask<'_>, named: &[Named]) -> io::Result<Answer> {
        self.call(Command::CREATE, 0, &body(ask, named))
    }
}

/// The open of a CREATE that succeeded, and the state of its lease.
///
/// # Errors
/// Its status.
///
/// # Panics
/// When the answer has no such form.
pub fn opened(answer: &Answer) -> Result<(FileId, u32), NtStatus> {
    if answer.status() != NtStatus::SUCCESS {
        return Err(answer.status());
    }
    let response = create::Response::decode(&answer.message).expect("a response");
    let list = contexts::decode(response.contexts).expect("contexts");
    let lease = list.iter().find(|context| context.name == contexts::LEASE);
    let lease = lease.map(|context| Lease::decode(context.data).expect("a lease"));
    Ok((response.file, lease.map_or(0, |lease| lease.state)))
}
