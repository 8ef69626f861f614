//! QUERY_INFO: of files, file systems and security descriptors.

use std::rc::Rc;

use vfs::fs::Space;
use wire::smb::class::{
    FullSize, OpenFileInfo, file_class, fs_attributes, fs_class, put_fs_attributes, put_no_quota,
    put_sector_size, put_volume,
};
use wire::smb::codec::Field;
use wire::smb::create::access;
use wire::smb::dir::put_output;
use wire::smb::header::put_error_data;
use wire::smb::info::{QueryRequest, info_type};
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

use super::dispatch::{Handled, Reply, Request};
use super::state::opens::{Open, OpenFile};
use super::{facts, names, security, status};

/// Bytes of a sector, the unit of reported sizes.
const SECTOR: u32 = 512;
const UNIT_SECTORS: u32 = 8;

/// QUERY_INFO.
pub(super) async fn run(request: Rc<Request>) -> Handled {
    let asked = QueryRequest::decode(request.message()).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = open.file()?;
    let (data, least) = match asked.info_type {
        info_type::FILE => of_file(&request, &open, file, asked.class).await?,
        info_type::FILE_SYSTEM => of_fs(&request, file, asked.class).await?,
        info_type::SECURITY => {
            let data = security::query(&request, &open, file, asked.additional).await?;
            if data.len() > asked.output_max as usize {
                return too_small(&request, data.len());
            }
            (data, 0)
        }
        _ => return Err(NtStatus::NOT_SUPPORTED),
    };
    let max = asked.output_max as usize;
    if max < least {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let mut out = request.reply();
    put_output(out.vec(), data.get(..max.min(data.len())).unwrap_or_default());
    let status = if data.len() > max { NtStatus::BUFFER_OVERFLOW } else { NtStatus::SUCCESS };
    request.done(Reply { status, file: Some(request.file_id(asked.file)), ..Reply::new(out) })
}

/// How many bytes it takes, as the data of an error.
fn too_small(request: &Request, needed: usize) -> Handled {
    let mut out = request.reply();
    let data = (needed as u32).to_le_bytes();
    put_error_data(out.vec(), request.conn.agreed()?.dialect == Dialect::SMB311, &data);
    request.done(Reply { status: NtStatus::BUFFER_TOO_SMALL, ..Reply::new(out) })
}

/// Whether the open's rights permit to ask (MS-SMB2 §3.3.5.20.1).
const fn may_ask(open: &Open, class: u8) -> Result<(), NtStatus> {
    match class {
        file_class::BASIC
        | file_class::ALL
        | file_class::NETWORK_OPEN
        | file_class::ATTRIBUTE_TAG => open.may(access::READ_ATTRIBUTES),
        file_class::FULL_EA => open.may(access::READ_EA),
        _ => Ok(()),
    }
}

async fn of_file(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    class: u8,
) -> Result<(Vec<u8>, usize), NtStatus> {
    may_ask(open, class)?;
    let (attr, facts) = facts::now(&request.conn, &request.session.who, file).await?;
    let delete_pending = file.entry.is_marked();
    let known = OpenFileInfo {
        facts,
        links: attr.nlink.saturating_sub(u32::from(delete_pending)),
        delete_pending,
        fileid: attr.fileid,
        fsid: attr.fsid,
        access: open.access,
        mode: file.mode.get(),
        position: file.position.get(),
        path: names::shown(&file.path.borrow()),
    };
    known.class(class).ok_or(match class {
        // There are no short names.
        file_class::ALTERNATE_NAME => NtStatus::OBJECT_NAME_NOT_FOUND,
        file_class::FULL_EA => NtStatus::EAS_NOT_SUPPORTED,
        _ => NtStatus::INVALID_INFO_CLASS,
    })
}

/// Blocks as units of [`UNIT_SECTORS`].
fn sizes(space: &Space) -> FullSize {
    let unit = u64::from(SECTOR * UNIT_SECTORS);
    FullSize {
        total: space.total_bytes / unit,
        available: space.avail_bytes / unit,
        free: space.free_bytes / unit,
        sectors: UNIT_SECTORS,
        sector: SECTOR,
    }
}

async fn of_fs(
    request: &Request,
    file: &OpenFile,
    class: u8,
) -> Result<(Vec<u8>, usize), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    let (reached, mut out) = (&file.node.reached, Vec::new());
    let least = match class {
        fs_class::VOLUME => {
            let serial = (file.node.attr.fsid ^ file.node.attr.fsid >> 32) as u32;
            put_volume(&mut out, 0, serial, &reached.share.name);
            out.len().min(24)
        }
        fs_class::SIZE | fs_class::FULL_SIZE => {
            let space = core.space(who, reached).await.map_err(status::of)?;
            let sizes = sizes(&space);
            sizes.put(&mut out);
            if class == fs_class::SIZE {
                out.drain(16..24);
            }
            out.len()
        }
        fs_class::DEVICE => {
            // A disk that is mounted.
            7u32.put(&mut out);
            0x20u32.put(&mut out);
            8
        }
        fs_class::ATTRIBUTE => {
            let features = reached.share.fs.features();
            let mut bits = fs_attributes::CASE_SENSITIVE
                | fs_attributes::CASE_PRESERVED
                | fs_attributes::UNICODE
                | fs_attributes::ACLS
                | fs_attributes::HARD_LINKS;
            if features.sparse {
                bits |= fs_attributes::SPARSE;
            }
            if !reached.writable {
                bits |= fs_attributes::READ_ONLY;
            }
            if features.clone {
                bits |= fs_attributes::BLOCK_REFCOUNTING;
            }
            put_fs_attributes(&mut out, bits, reached.share.fs.abilities().name_max);
            16
        }
        fs_class::CONTROL => {
            put_no_quota(&mut out);
            out.len()
        }
        fs_class::SECTOR_SIZE => {
            put_sector_size(&mut out, SECTOR);
            out.len()
        }
        fs_class::OBJECT_ID => {
            file.node.attr.fsid.put(&mut out);
            out.resize(64, 0);
            64
        }
        _ => return Err(NtStatus::INVALID_INFO_CLASS),
    };
    Ok((out, least))
}
