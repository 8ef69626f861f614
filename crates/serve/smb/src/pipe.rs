//! Named pipes: `srvsvc`, which lists shares.

use std::cell::RefCell;

use base::limits::{SMB_PIPE_BYTES_MAX, SMB_WORK_STEP};
use tokio::sync::Notify;
use wire::smb::class::attributes;
use wire::smb::create::{Facts, Request as Create, Response, action};
use wire::smb::io::{WriteResponse, put_read_head};
use wire::smb::rpc::{Association, Server, ShareInfo};
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use super::dispatch::{Outcome, Reply, Request};
use super::state::opens::{Open, OpenOf};
use super::state::pipes::Pipe;
use super::state::replays::Sequence;
use super::state::session::TreeOf;
use super::status;

/// STYPE_IPC and STYPE_SPECIAL.
const IPC: u32 = 0x8000_0003;

/// Opens a pipe.
pub(super) fn open(request: &Request, create: &Create<'_>) -> Outcome {
    let name = utf16::decode(create.name).map_err(status::of_wire)?;
    if !name.trim_start_matches('\\').eq_ignore_ascii_case("srvsvc") {
        return Err(NtStatus::OBJECT_NAME_NOT_FOUND);
    }
    let (core, client) = (&request.conn.core, request.session.who.queue());
    let held = core.held.take(client, 0).ok_or(NtStatus::INSUFFICIENT_RESOURCES)?;
    let association = Association::default();
    let file = request.session.new_file_id();
    let open = Open {
        persistent: file.persistent,
        volatile: file.volatile,
        tree: request.header.tree_id(),
        durable: None,
        access: create.access,
        of: OpenOf::Pipe(RefCell::new(Pipe { association, answer: Vec::new(), at: 0, held })),
        listing: tokio::sync::Mutex::default(),
        noticed: RefCell::default(),
        sequence: Sequence::new(request.header.channel()),
        closed: Notify::new(),
        seat: request.reserve_open(0)?,
    };
    request.session.add_open(file, open);
    let facts = Facts { allocation: 4096, attributes: attributes::NORMAL, ..Facts::default() };
    let response = Response { oplock: 0, action: action::OPENED, facts, file, contexts: &[] };
    let mut out = request.reply();
    response.put(out.vec());
    Ok(Reply { file: Some(file), ..Reply::new(out) })
}

/// What the user may see of the server.
fn server(request: &Request) -> Result<Server, NtStatus> {
    let count = request.conn.core.files.shares.load().iter().count();
    request.work().take(SMB_WORK_STEP * (1 + count)).map_err(status::of)?;
    let shares = request.conn.core.shares(&request.session.who);
    let share = |name: &str, kind, remark: &str| ShareInfo {
        name: name.to_owned(),
        kind,
        remark: remark.to_owned(),
    };
    let mut shares: Vec<_> = shares.iter().map(|one| share(&one.name, 0, "")).collect();
    shares.push(share("IPC$", IPC, "Remote IPC"));
    Ok(Server { name: request.conn.settings.name.clone(), shares })
}

/// Takes a PDU; what is answered waits to be read.
fn take(request: &Request, pipe: &RefCell<Pipe>, pdu: &[u8]) -> Result<(), NtStatus> {
    let server = server(request)?;
    let mut pipe = pipe.borrow_mut();
    let pipe = &mut *pipe;
    let answer = pipe.association.answer(pdu, &server).map_err(|_| NtStatus::PIPE_BROKEN)?;
    let read = std::mem::take(&mut pipe.at).min(pipe.answer.len());
    pipe.answer.drain(..read);
    let length = pipe.answer.len() + answer.len();
    if length > SMB_PIPE_BYTES_MAX || !pipe.held.grow(length) {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    // No more than that is allocated.
    pipe.answer.reserve_exact(answer.len());
    pipe.answer.extend_from_slice(&answer);
    Ok(())
}

/// The next bytes to be read, and whether there are more of the same PDU.
fn next(pipe: &mut Pipe, count: usize) -> (Vec<u8>, bool) {
    let rest = pipe.answer.get(pipe.at..).unwrap_or_default();
    // One PDU at a time: a pipe is one of messages.
    let length = rest
        .get(8..10)
        .map_or(rest.len(), |length| usize::from(u16::from_le_bytes([length[0], length[1]])));
    let starts = rest.starts_with(&[5, 0]);
    let whole = if starts { length.min(rest.len()) } else { rest.len() };
    let some = rest.get(..count.min(whole)).unwrap_or_default().to_vec();
    pipe.at += some.len();
    let has_more = some.len() < whole;
    if pipe.at >= pipe.answer.len() {
        (pipe.answer, pipe.at) = (Vec::new(), 0);
        pipe.held.set(0);
    }
    (some, has_more)
}

/// WRITE to a pipe.
pub(super) fn write(request: &Request, pipe: &RefCell<Pipe>, data: &[u8]) -> Outcome {
    take(request, pipe, data)?;
    let mut out = request.reply();
    let count = data.len() as u32;
    WriteResponse { reserved: 0, count, remaining: 0, channel_info: 0 }.put_body(out.vec());
    Ok(Reply::new(out))
}

/// READ from a pipe.
pub(super) fn read(request: &Request, pipe: &RefCell<Pipe>, count: usize) -> Outcome {
    let (some, has_more) = next(&mut pipe.borrow_mut(), count);
    if some.is_empty() && count > 0 {
        return Err(NtStatus::PIPE_BROKEN);
    }
    let mut out = request.reply();
    put_read_head(out.vec(), some.len());
    out.vec().extend_from_slice(&some);
    let status = if has_more { NtStatus::BUFFER_OVERFLOW } else { NtStatus::SUCCESS };
    Ok(Reply { status, ..Reply::new(out) })
}

/// FSCTL_PIPE_TRANSCEIVE: both.
pub(super) fn transceive(
    request: &Request,
    open: &Open,
    (input, max): (&[u8], usize),
) -> Result<(Vec<u8>, NtStatus), NtStatus> {
    let (OpenOf::Pipe(pipe), TreeOf::Pipes) = (&open.of, &request.tree()?.of) else {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    };
    take(request, pipe, input)?;
    let (some, has_more) = next(&mut pipe.borrow_mut(), max);
    Ok((some, if has_more { NtStatus::BUFFER_OVERFLOW } else { NtStatus::SUCCESS }))
}
