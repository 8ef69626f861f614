//! IOCTL: what does not fit elsewhere.

use std::net::IpAddr;
use std::sync::Arc;

use base::limits::{SMB_COPY_CHUNK_MAX, SMB_COPY_CHUNKS_MAX, SMB_COPY_TOTAL_MAX, SMB_TRANSACT_MAX};
use vfs::fs::{Context, FileSystem, Seek};
use vfs::status::Status;
use wire::smb::codec::{Field, Reader, SmbError};
use wire::smb::create::{FileId, access};
use wire::smb::ioctl::{
    Chunk, Copied, CopyChunks, IS_FSCTL, Negotiated, Request as Asks, Response, ValidateNegotiate,
    code,
};
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

use super::compound::START;
use super::dispatch::{Outcome, Reply, Request};
use super::state::opens::{Open, OpenFile};
use super::{pipe, status};

/// IOCTL.
pub(super) async fn run(request: &Request<'_>) -> Outcome {
    let asked = Asks::decode(request.message).map_err(status::of_wire)?;
    if asked.flags & IS_FSCTL == 0 {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let max = asked.output_max as usize;
    if max > SMB_TRANSACT_MAX {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let (output, status) = match asked.code {
        code::VALIDATE_NEGOTIATE => (validate(request, asked.input)?, NtStatus::SUCCESS),
        code::QUERY_NETWORK_INTERFACE => (interfaces(request), NtStatus::SUCCESS),
        code::DFS_GET_REFERRALS | code::DFS_GET_REFERRALS_EX => {
            return Err(NtStatus::FS_DRIVER_REQUIRED);
        }
        code::PIPE_TRANSCEIVE => {
            let open = request.open(asked.file)?;
            pipe::transceive(request, &open, (asked.input, max))?
        }
        _ => of_file(request, &asked).await?,
    };
    if output.len() > max && asked.code != code::PIPE_TRANSCEIVE {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    let mut out = request.reply();
    let file = request.file_id(asked.file);
    Response { code: asked.code, file, output: &output }.put(out.vec(), START);
    Ok(Reply { status, ..Reply::new(out) })
}

/// Repeats what was said in NEGOTIATE, under a signature: somebody between may have changed it.
fn validate(request: &Request<'_>, input: &[u8]) -> Result<Vec<u8>, NtStatus> {
    let agreed = request.conn.agreed()?;
    let said = ValidateNegotiate::decode(input).map_err(status::of_wire)?;
    let (guid, capabilities, mode, dialects) = &agreed.client;
    let same = said.guid == *guid
        && said.capabilities == *capabilities
        && said.security_mode == *mode
        && said.dialects == *dialects;
    if !same || agreed.dialect == Dialect::SMB311 {
        // The connection is to be ended (§3.3.5.15.12); without its sessions it is of no use.
        request.conn.sessions.borrow_mut().clear();
        return Err(NtStatus::ACCESS_DENIED);
    }
    let mut out = Vec::new();
    Negotiated {
        capabilities: agreed.capabilities,
        guid: request.conn.server.guid,
        security_mode: request.conn.security_mode(),
        dialect: agreed.dialect.0,
    }
    .put(&mut out);
    Ok(out)
}

/// The one address by which the client came (§2.2.32.5).
fn interfaces(request: &Request<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    0u32.put(&mut out);
    1u32.put(&mut out);
    // Neither RSS nor RDMA, and a speed of 1 Gbit/s: there is nothing to choose.
    0u64.put(&mut out);
    1_000_000_000u64.put(&mut out);
    match request.conn.local.ip().to_canonical() {
        IpAddr::V4(address) => {
            2u16.put(&mut out);
            0u16.put(&mut out);
            out.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            23u16.put(&mut out);
            0u16.put(&mut out);
            0u32.put(&mut out);
            out.extend_from_slice(&address.octets());
        }
    }
    out.resize(152, 0);
    out
}

async fn of_file(request: &Request<'_>, asked: &Asks<'_>) -> Result<(Vec<u8>, NtStatus), NtStatus> {
    let open = request.open(asked.file)?;
    let file = open.file()?;
    let output = match asked.code {
        code::REQUEST_RESUME_KEY => {
            // The number of the open, which is good within its session.
            let mut key = Vec::new();
            request.file_id(asked.file).put(&mut key);
            key.resize(32, 0);
            key
        }
        code::COPYCHUNK | code::COPYCHUNK_WRITE => copy(request, &open, file, asked.input).await?,
        code::SET_SPARSE => {
            open.may(access::WRITE_DATA | access::WRITE_ATTRIBUTES)?;
            Vec::new()
        }
        code::SET_ZERO_DATA => {
            open.may(access::WRITE_DATA)?;
            zero(request, file, asked.input).await?;
            Vec::new()
        }
        code::QUERY_ALLOCATED_RANGES => {
            open.may(access::READ_DATA)?;
            ranges(request, file, asked.input).await?
        }
        _ => return Err(NtStatus::INVALID_DEVICE_REQUEST),
    };
    Ok((output, NtStatus::SUCCESS))
}

fn put_copied(copied: &Copied) -> Vec<u8> {
    let mut out = Vec::new();
    copied.put(&mut out);
    out
}

/// COPYCHUNK.
async fn copy(
    request: &Request<'_>,
    open: &Open,
    to: &OpenFile,
    input: &[u8],
) -> Result<Vec<u8>, NtStatus> {
    open.may(access::WRITE_DATA)?;
    let asked = match CopyChunks::decode(input) {
        Err(SmbError::Limit(_)) => return Err(NtStatus::INVALID_PARAMETER),
        asked => asked.map_err(status::of_wire)?,
    };
    let total: u64 = asked.chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
    let fits = |chunk: &Chunk| (1..=SMB_COPY_CHUNK_MAX).contains(&chunk.length);
    if total > SMB_COPY_TOTAL_MAX.into() || !asked.chunks.iter().all(fits) {
        debug_assert!(asked.chunks.len() <= SMB_COPY_CHUNKS_MAX);
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let id: FileId = Reader::new(&asked.key, "resume key").get().map_err(status::of_wire)?;
    let source = request.session.open(id, request.header.tree_id());
    let source = source.map_err(|_| NtStatus::OBJECT_NAME_NOT_FOUND)?;
    source.may(access::READ_DATA | access::EXECUTE)?;
    let from = source.file()?;
    let (core, who) = (&request.conn.core, &request.session.who);
    let mut copied = Copied { chunks: 0, partial: 0, total: 0 };
    for chunk in &asked.chunks {
        let size = core.attr(who, &from.node).await.map_err(status::of)?.size;
        if chunk.source.saturating_add(chunk.length.into()) > size {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        copy_one(request, from, to, chunk).await?;
        copied.chunks += 1;
        copied.total += chunk.length;
    }
    Ok(put_copied(&copied))
}

/// One chunk, by the file system if it can, otherwise through our memory.
async fn copy_one(
    request: &Request<'_>,
    from: &OpenFile,
    to: &OpenFile,
    chunk: &Chunk,
) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (source, target) = (from.node.handle, to.node.handle);
    let mut done = 0;
    while done < u64::from(chunk.length) {
        let (at, to_at) = (chunk.source + done, chunk.target.saturating_add(done));
        let left = u64::from(chunk.length) - done;
        let inside = move |fs: &dyn FileSystem, cx: Context<'_>| {
            fs.copy_range(cx, (&source, at), (&target, to_at), left)
        };
        let copied = match core.alter(who, &to.node.reached, inside).await {
            Err(Status::NotSupported | Status::CrossDevice | Status::Invalid) => {
                through(request, from, to, (at, to_at, left)).await?
            }
            copied => copied.map_err(status::of)?,
        };
        if copied == 0 {
            return Err(NtStatus::END_OF_FILE);
        }
        done += copied;
    }
    Ok(())
}

async fn through(
    request: &Request<'_>,
    from: &OpenFile,
    to: &OpenFile,
    (at, to_at, left): (u64, u64, u64),
) -> Result<u64, NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (fs, source) = (Arc::clone(&from.node.reached.share.fs), from.node.handle);
    let mut data = vec![0; left.min(SMB_COPY_CHUNK_MAX.into()) as usize];
    let read = move |cx: Context<'_>| {
        fs.read(cx, &source, at, &mut data).map(|done| {
            data.truncate(done.count);
            data
        })
    };
    let read = core.pooled(who, &from.node.reached.cred, read).await.map_err(status::of)?;
    let data = read.map_err(status::of)?;
    let count = data.len() as u64;
    let spare = core.write_at(who, &to.node, to_at, data).await.map_err(status::of)?;
    core.engine.large.give(spare);
    Ok(count)
}

async fn zero(request: &Request<'_>, file: &OpenFile, input: &[u8]) -> Result<(), NtStatus> {
    let mut r = Reader::new(input, "SET_ZERO_DATA");
    let begin: u64 = r.get().map_err(status::of_wire)?;
    let end: u64 = r.get().map_err(status::of_wire)?;
    let len = end.checked_sub(begin).ok_or(NtStatus::INVALID_PARAMETER)?;
    if len == 0 {
        return Ok(());
    }
    let handle = file.node.handle;
    let zero = move |fs: &dyn FileSystem, cx: Context<'_>| fs.deallocate(cx, &handle, begin, len);
    let (core, who) = (&request.conn.core, &request.session.who);
    core.alter(who, &file.node.reached, zero).await.map_err(status::of)
}

/// Where there is data; all of it, if the file system cannot tell.
async fn ranges(request: &Request<'_>, file: &OpenFile, input: &[u8]) -> Result<Vec<u8>, NtStatus> {
    let mut r = Reader::new(input, "QUERY_ALLOCATED_RANGES");
    let begin: u64 = r.get().map_err(status::of_wire)?;
    let len: u64 = r.get().map_err(status::of_wire)?;
    let (core, who) = (&request.conn.core, &request.session.who);
    let size = core.attr(who, &file.node).await.map_err(status::of)?.size;
    let end = begin.saturating_add(len).min(size);
    let (fs, handle) = (Arc::clone(&file.node.reached.share.fs), file.node.handle);
    let look = move |cx: Context<'_>| {
        let (mut at, mut out) = (begin, Vec::new());
        while at < end && out.len() + 16 <= SMB_TRANSACT_MAX {
            let from = match fs.seek(cx, &handle, at, Seek::Data) {
                Err(Status::NotSupported) => Some(at),
                Err(Status::TooLarge) => None,
                found => found?,
            };
            let Some(from) = from.filter(|from| *from < end) else { break };
            let to = match fs.seek(cx, &handle, from, Seek::Hole) {
                Err(Status::NotSupported) => Some(end),
                found => found?,
            };
            let to = to.unwrap_or(end).min(end);
            from.put(&mut out);
            (to - from).put(&mut out);
            at = to.max(from + 1);
        }
        Ok(out)
    };
    core.look(who, &file.node.reached.cred, look).await.map_err(status::of)
}
