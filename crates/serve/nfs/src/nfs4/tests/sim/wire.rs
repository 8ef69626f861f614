//! Requests of the simulated clients as messages, and what of the replies matters to them.

use ::wire::nfs4::*;
use ::wire::xdr::{Decode, Encode, Reader, Seq, Writer};
use vfs::locks::{Kind, Share};

/// Bytes of a file that are distinguished; the last stands for all the rest, to the end.
pub const BYTES: usize = 13;
/// A way to lock each byte: 0 not, 1 shared, 2 exclusive.
pub type Bytes = [u8; BYTES];

/// Bytes to lock: the first, and one after the last; [`BYTES`] is the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: usize,
    pub to: usize,
}

impl Span {
    fn wire(self) -> (u64, u64) {
        let length = if self.to == BYTES { u64::MAX } else { (self.to - self.from) as u64 };
        (self.from as u64, length)
    }

    /// Sets its bytes.
    pub fn set(self, bytes: &mut Bytes, to: u8) {
        bytes[self.from..self.to].fill(to);
    }

    /// Whether a lock of this kind conflicts with the held ones.
    pub fn meets(self, held: &Bytes, kind: Kind) -> bool {
        held[self.from..self.to].iter().any(|h| *h == 2 || (*h == 1 && kind == Kind::Write))
    }
}

/// By what a LOCK is done.
#[derive(Debug, Clone, Copy)]
pub enum By {
    /// A new lock owner, under an open; the numbers of both owners.
    Open(Stateid4, u32, u32),
    /// One that has locks.
    Lock(Stateid4, u32),
}

/// The operation of a request.
#[derive(Debug, Clone)]
pub enum What {
    SetClientId,
    Confirm([u8; 8]),
    Renew,
    ExchangeId,
    CreateSession(u32),
    DestroySession,
    DestroyClient,
    Complete,
    SequenceOnly,
    Open { file: usize, owner: u32, seqid: u32, share: Share, reclaim: bool },
    OpenConfirm { file: usize, owner: u32, id: Stateid4, seqid: u32 },
    Downgrade { file: usize, owner: u32, id: Stateid4, seqid: u32, to: Share },
    Close { file: usize, owner: u32, id: Stateid4, seqid: u32 },
    Lock { file: usize, owner: u32, span: Span, kind: Kind, reclaim: bool, by: By },
    Unlock { file: usize, owner: u32, id: Stateid4, seqid: u32, span: Span },
    Test { file: usize, owner: u32, span: Span, kind: Kind },
    Write { file: usize, id: Stateid4 },
    Free { id: Stateid4 },
}

impl What {
    /// The stateid that it uses.
    pub fn stateid(&self) -> Option<Stateid4> {
        match self {
            Self::OpenConfirm { id, .. }
            | Self::Downgrade { id, .. }
            | Self::Close { id, .. }
            | Self::Unlock { id, .. }
            | Self::Write { id, .. }
            | Self::Free { id }
            | Self::Lock { by: By::Open(id, ..) | By::Lock(id, _), .. } => Some(*id),
            _ => None,
        }
    }

    /// Whether what is in its way may be ended for it.
    pub fn ends_others(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::Lock { .. } | Self::Test { .. })
    }

    /// The sequences of owners that it is in (4.0): the owner, and whether it is one of locks.
    pub fn sequences(&self) -> Vec<(u32, bool)> {
        match self {
            Self::Open { owner, .. }
            | Self::OpenConfirm { owner, .. }
            | Self::Downgrade { owner, .. }
            | Self::Close { owner, .. } => vec![(*owner, false)],
            Self::Lock { owner, by: By::Open(..), .. } => vec![(*owner, false), (*owner, true)],
            Self::Lock { owner, .. } | Self::Unlock { owner, .. } => vec![(*owner, true)],
            _ => Vec::new(),
        }
    }
}

/// A request as it goes over the network, as often as it likes.
#[derive(Debug)]
pub struct Request {
    pub number: u64,
    pub host: usize,
    pub clientid: u64,
    pub lane: usize,
    pub slot: Option<SequenceArgs4>,
    pub what: What,
    pub minor: u32,
    pub bytes: Vec<u8>,
}

/// The sender of a request.
pub struct Sender<'a> {
    pub name: &'a [u8],
    pub verifier: [u8; 8],
    pub clientid: u64,
    pub session: [u8; 16],
}

/// Handles of the folder and of the files.
pub struct Handles {
    pub root: Vec<u8>,
    pub files: Vec<Vec<u8>>,
    pub names: Vec<Vec<u8>>,
}

pub const CHANNEL: ChannelAttrs4 = ChannelAttrs4 {
    headerpadsize: 0,
    maxrequestsize: 1 << 16,
    maxresponsesize: 1 << 16,
    maxresponsesize_cached: 4096,
    maxoperations: 16,
    maxrequests: 4,
    rdma_ird: None,
};

fn locktype(kind: Kind) -> u32 {
    if kind == Kind::Read { locktype4::READ } else { locktype4::WRITE }
}

/// The message of a request: COMPOUND4args.
pub fn message(
    minor: u32,
    slot: Option<SequenceArgs4>,
    what: &What,
    from: &Sender<'_>,
    handles: &Handles,
) -> Vec<u8> {
    let put = |object| ArgOp::Putfh(PutfhArgs4 { object: Fh4(object) });
    let mut ops: Vec<ArgOp<'_>> = slot.map(ArgOp::Sequence).into_iter().collect();
    let (file, tail) = match what {
        What::Open { file, reclaim, .. } => {
            (Some(if *reclaim { &handles.files[*file] } else { &handles.root }), None)
        }
        What::OpenConfirm { file, .. }
        | What::Downgrade { file, .. }
        | What::Close { file, .. }
        | What::Lock { file, .. }
        | What::Unlock { file, .. }
        | What::Test { file, .. }
        | What::Write { file, .. } => (Some(&handles.files[*file]), None),
        What::SequenceOnly => (None, Some(())),
        _ => (None, None),
    };
    ops.extend(file.map(|handle| put(handle)));
    let owner = what_owner(what).to_be_bytes();
    if tail.is_none() {
        ops.push(state_op(what, from, &owner, handles).unwrap_or_else(|| client_op(what, from)));
    }
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    CompoundArgs { tag: Tag4(b""), minorversion: minor, count: ops.len() as u32 }.encode(&mut w);
    ops.iter().for_each(|op| op.encode(&mut w));
    bytes
}

fn what_owner(what: &What) -> u32 {
    match what {
        What::Open { owner, .. } | What::Lock { owner, .. } | What::Test { owner, .. } => *owner,
        _ => 0,
    }
}

fn client_op<'a>(what: &What, from: &Sender<'a>) -> ArgOp<'a> {
    let Sender { name, verifier, clientid, session } = *from;
    match what {
        What::SetClientId => ArgOp::Setclientid(SetclientidArgs4 {
            client: NfsClientId4 { verifier, id: Opaque4(name) },
            callback: CbClient4 {
                program: 1,
                location: Clientaddr4 { netid: Utf8str(b"tcp"), addr: Utf8str(b"") },
            },
            callback_ident: 0,
        }),
        What::Confirm(confirm) => {
            ArgOp::SetclientidConfirm(SetclientidConfirmArgs4 { clientid, confirm: *confirm })
        }
        What::Renew => ArgOp::Renew(ClientidArgs4 { clientid }),
        What::ExchangeId => ArgOp::ExchangeId(ExchangeIdArgs4 {
            clientowner: ClientOwner4 { verifier, ownerid: Opaque4(name) },
            flags: 0,
            state_protect: StateProtectA4::None(()),
            client_impl_id: None,
        }),
        What::CreateSession(sequence) => ArgOp::CreateSession(CreateSessionArgs4 {
            clientid,
            sequence: *sequence,
            flags: 0,
            fore_chan_attrs: CHANNEL,
            back_chan_attrs: CHANNEL,
            cb_program: 1,
            sec_parms: Seq(Vec::new()),
        }),
        What::DestroySession => ArgOp::DestroySession(DestroySessionArgs4 { sessionid: session }),
        What::DestroyClient => ArgOp::DestroyClientid(ClientidArgs4 { clientid }),
        _ => ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false }),
    }
}

fn locker(by: By, lock_owner: StateOwner4<'_>) -> Locker4<'_> {
    match by {
        By::Open(open_stateid, open_seqid, lock_seqid) => {
            Locker4::New(OpenToLockOwner4 { open_seqid, open_stateid, lock_seqid, lock_owner })
        }
        By::Lock(lock_stateid, lock_seqid) => {
            Locker4::Existing(ExistLockOwner4 { lock_stateid, lock_seqid })
        }
    }
}

fn state_op<'a>(
    what: &What,
    from: &Sender<'_>,
    owner: &'a [u8],
    handles: &'a Handles,
) -> Option<ArgOp<'a>> {
    let who = StateOwner4 { clientid: from.clientid, owner: Opaque4(owner) };
    Some(match what {
        What::Open { file, seqid, share, reclaim, .. } => ArgOp::Open(OpenArgs4 {
            seqid: *seqid,
            share_access: u32::from(share.access),
            share_deny: u32::from(share.deny),
            owner: who,
            openhow: Openflag4::Nocreate(()),
            claim: match reclaim {
                true => OpenClaim4::Previous(delegation4::NONE),
                false => OpenClaim4::Null(Component4(&handles.names[*file])),
            },
        }),
        What::OpenConfirm { id, seqid, .. } => {
            ArgOp::OpenConfirm(OpenConfirmArgs4 { open_stateid: *id, seqid: *seqid })
        }
        What::Downgrade { id, seqid, to, .. } => ArgOp::OpenDowngrade(OpenDowngradeArgs4 {
            open_stateid: *id,
            seqid: *seqid,
            share_access: u32::from(to.access),
            share_deny: u32::from(to.deny),
        }),
        What::Close { id, seqid, .. } => {
            ArgOp::Close(CloseArgs4 { seqid: *seqid, open_stateid: *id })
        }
        What::Lock { span, kind, reclaim, by, .. } => ArgOp::Lock(LockArgs4 {
            locktype: locktype(*kind),
            reclaim: *reclaim,
            offset: span.wire().0,
            length: span.wire().1,
            locker: locker(*by, who),
        }),
        What::Unlock { id, seqid, span, .. } => ArgOp::Locku(LockuArgs4 {
            locktype: locktype4::WRITE,
            seqid: *seqid,
            lock_stateid: *id,
            offset: span.wire().0,
            length: span.wire().1,
        }),
        What::Test { span, kind, .. } => ArgOp::Lockt(LocktArgs4 {
            locktype: locktype(*kind),
            offset: span.wire().0,
            length: span.wire().1,
            owner: who,
        }),
        What::Write { id, .. } => ArgOp::Write(WriteArgs4 {
            stateid: *id,
            offset: 0,
            stable: StableHow4::FILE_SYNC,
            data: b"data",
        }),
        What::Free { id } => ArgOp::FreeStateid(FreeStateidArgs4 { stateid: *id }),
        _ => return None,
    })
}

/// The content of a reply in addition to its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyContent {
    Nothing,
    Client(u64, [u8; 8]),
    Exchanged { clientid: u64, sequence: u32, confirmed: bool },
    Session([u8; 16]),
    State(Stateid4),
    Opened(Stateid4, bool),
    Denied(u64),
}

/// A reply.
#[derive(Debug, Clone, Copy)]
pub struct Reply {
    pub status: Nfsstat4,
    /// SEQUENCE, if there was one, has taken the slot.
    pub in_slot: bool,
    pub content: ReplyContent,
}

/// Reads COMPOUND4res.
pub fn reply(bytes: &[u8]) -> Reply {
    let mut r = Reader::new(bytes);
    let head = CompoundRes::decode(&mut r).expect("a head");
    let (mut in_slot, mut content) = (false, ReplyContent::Nothing);
    for _ in 0..head.count {
        match ResOp::decode(&mut r).expect("a result") {
            ResOp::Sequence(Res4::Ok(_)) => in_slot = true,
            ResOp::Setclientid(SetclientidRes4::Ok(ok)) => {
                content = ReplyContent::Client(ok.clientid, ok.confirm);
            }
            ResOp::ExchangeId(Res4::Ok(ok)) => {
                let confirmed = ok.flags & exchgid4::CONFIRMED_R != 0;
                content = ReplyContent::Exchanged {
                    clientid: ok.clientid,
                    sequence: ok.sequenceid,
                    confirmed,
                };
            }
            ResOp::CreateSession(Res4::Ok(ok)) => content = ReplyContent::Session(ok.sessionid),
            ResOp::Open(Res4::Ok(ok)) => {
                content = ReplyContent::Opened(ok.stateid, ok.rflags & open4::RESULT_CONFIRM != 0);
            }
            ResOp::OpenConfirm(Res4::Ok(ok))
            | ResOp::OpenDowngrade(Res4::Ok(ok))
            | ResOp::Lock(LockRes4::Ok(ok))
            | ResOp::Locku(Res4::Ok(ok)) => content = ReplyContent::State(ok.stateid),
            ResOp::Lock(LockRes4::Denied(denied)) | ResOp::Lockt(LockRes4::Denied(denied)) => {
                content = ReplyContent::Denied(denied.owner.clientid);
            }
            _ => {}
        }
    }
    r.finish().expect("nothing more");
    Reply { status: head.status, in_slot, content }
}
