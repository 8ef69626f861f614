//! IOCTL: what does not fit elsewhere.

use std::net::IpAddr;
use std::rc::Rc;

use base::limits::SMB_TRANSACT_MAX;
use wire::smb::codec::Field;
use wire::smb::create::{FileId, access};
use wire::smb::ioctl::{IS_FSCTL, Negotiated, Request as Asks, Response, ValidateNegotiate, code};
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

use super::broken::Broken;
use super::dispatch::{Handled, Reply, Request};
use super::reply::START;
use super::{pipe, snapshots, status};

mod copy;
mod sparse;

/// IOCTL.
pub(super) async fn run(request: Rc<Request>) -> Handled {
    let asked = Asks::decode(request.message()).map_err(status::of_wire)?;
    if asked.flags & IS_FSCTL == 0 {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let max = asked.output_max as usize;
    if max > SMB_TRANSACT_MAX {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let (output, status) = match asked.code {
        code::VALIDATE_NEGOTIATE => (validate(&request, asked.input)?, NtStatus::SUCCESS),
        code::QUERY_NETWORK_INTERFACE if asked.file == FileId::RELATED => {
            (interfaces(&request), NtStatus::SUCCESS)
        }
        code::QUERY_NETWORK_INTERFACE => return Err(NtStatus::INVALID_PARAMETER),
        code::DFS_GET_REFERRALS | code::DFS_GET_REFERRALS_EX => {
            return Err(NtStatus::FS_DRIVER_REQUIRED);
        }
        code::PIPE_TRANSCEIVE => {
            let open = request.open(asked.file)?;
            pipe::transceive(&request, &open, (asked.input, max))?
        }
        _ => of_file(&request, &asked).await?,
    };
    if output.len() > max && asked.code != code::PIPE_TRANSCEIVE {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    let mut out = request.reply();
    let file = request.file_id(asked.file);
    Response { code: asked.code, file, output: &output }.put(out.vec(), START);
    request.done(Reply { status, ..Reply::new(out) })
}

/// Repeats what NEGOTIATE had, under a signature: an attacker may have changed it (§3.3.5.15.12).
fn validate(request: &Request, input: &[u8]) -> Result<Vec<u8>, NtStatus> {
    let agreed = request.conn.agreed()?;
    let said = ValidateNegotiate::decode(input).map_err(status::of_wire)?;
    let (guid, capabilities, mode, dialects) = &agreed.client;
    let same = said.guid == *guid
        && said.capabilities == *capabilities
        && said.security_mode == *mode
        && said.dialects == *dialects;
    if !same || agreed.dialect == Dialect::SMB311 {
        // §3.3.5.15.12.
        request.conn.end(Broken::Negotiation);
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
fn interfaces(request: &Request) -> Vec<u8> {
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

async fn of_file(request: &Request, asked: &Asks<'_>) -> Result<(Vec<u8>, NtStatus), NtStatus> {
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
        code::COPYCHUNK | code::COPYCHUNK_WRITE => {
            return copy::chunks(request, &open, file, asked).await;
        }
        code::ENUMERATE_SNAPSHOTS => {
            let by = (&*request.conn.core, &request.caller());
            snapshots::enumerate(by, &file.node.reached, asked.output_max as usize).await?
        }
        code::DUPLICATE_EXTENTS => {
            copy::extents(request, &open, file, asked.input).await?;
            Vec::new()
        }
        code::SET_SPARSE => {
            sparse::set(request, &open, file, asked.input).await?;
            Vec::new()
        }
        code::GET_COMPRESSION => vec![0; 2],
        code::SET_COMPRESSION => {
            open.may(access::READ_DATA | access::WRITE_DATA)?;
            // No compression is the only format.
            if !asked.input.starts_with(&[0, 0]) {
                return Err(NtStatus::NOT_SUPPORTED);
            }
            Vec::new()
        }
        code::CREATE_OR_GET_OBJECT_ID => {
            let (id, volume) = (file.node.attr.fileid, file.node.attr.fsid);
            let mut out = Vec::new();
            // The object, the volume where it was made, and as what it was made there.
            [volume, id, volume, 0, volume, id, 0, 0].iter().for_each(|part| part.put(&mut out));
            out
        }
        code::SET_ZERO_DATA => {
            open.may(access::WRITE_DATA)?;
            sparse::zero(request, file, asked).await?;
            Vec::new()
        }
        code::QUERY_ALLOCATED_RANGES => {
            open.may(access::READ_DATA)?;
            let mut ranges = sparse::ranges(request, file, asked).await?;
            // As many as fit: the client requests the rest (MS-FSA §2.1.5.10.22).
            let fits = asked.output_max as usize / sparse::RANGE * sparse::RANGE;
            if fits > 0 && ranges.len() > fits {
                ranges.truncate(fits);
                return Ok((ranges, NtStatus::BUFFER_OVERFLOW));
            }
            ranges
        }
        _ => return Err(NtStatus::INVALID_DEVICE_REQUEST),
    };
    Ok((output, NtStatus::SUCCESS))
}
