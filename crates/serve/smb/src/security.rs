//! Security descriptors: derived from owner, group and permissions of Unix, and set as far as those
//! can say it. What they cannot say is refused, not lost.

use vfs::attr::{Attr, SetAttr};
use wire::smb::create::access;
use wire::smb::info::SetRequest;
use wire::smb::security::{Descriptor, parts};
use wire::smb::status::NtStatus;

use super::dispatch::Request;
use super::state::opens::{Open, OpenFile};
use super::{facts, status};
use files::Node;

/// QUERY_INFO: the parts that are asked for.
///
/// # Errors
/// STATUS_ACCESS_DENIED; as of GETATTR.
pub(super) async fn query(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    wanted: u32,
) -> Result<Vec<u8>, NtStatus> {
    if wanted & parts::SACL != 0 {
        open.may(access::SYSTEM_SECURITY)?;
    }
    if wanted & (parts::OWNER | parts::GROUP | parts::DACL) != 0 {
        open.may(access::READ_CONTROL)?;
    }
    let (attr, _) = facts::look(&request.conn, &request.session.who, &file.node).await?;
    let mut descriptor = of(&attr, &file.node);
    if wanted & parts::OWNER == 0 {
        descriptor.owner = None;
    }
    if wanted & parts::GROUP == 0 {
        descriptor.group = None;
    }
    if wanted & parts::DACL == 0 {
        descriptor.dacl = None;
    }
    let mut out = Vec::new();
    descriptor.put(&mut out);
    Ok(out)
}

fn of(attr: &Attr, node: &Node) -> Descriptor {
    Descriptor::of_mode(attr.uid, attr.gid, attr.mode, node.is_dir())
}

/// SET_INFO.
///
/// # Errors
/// STATUS_NOT_SUPPORTED for what Unix cannot say; STATUS_ACCESS_DENIED; as of SETATTR.
pub(super) async fn set(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    asked: &SetRequest<'_>,
) -> Result<(), NtStatus> {
    let wanted = asked.additional;
    if wanted & parts::SACL != 0 {
        open.may(access::SYSTEM_SECURITY)?;
    }
    if wanted & (parts::OWNER | parts::GROUP) != 0 {
        open.may(access::WRITE_OWNER)?;
    }
    if wanted & parts::DACL != 0 {
        open.may(access::WRITE_DAC)?;
    }
    let new = Descriptor::decode(asked.data).map_err(status::of_wire)?;
    apply(request, &file.node, &new, wanted).await
}

/// The descriptor of a new file. One that Unix cannot say leaves what the directory and the mask
/// give.
///
/// # Errors
/// As of SETATTR.
pub(super) async fn of_new(
    request: &Request,
    node: &Node,
    descriptor: &[u8],
) -> Result<(), NtStatus> {
    let new = Descriptor::decode(descriptor).map_err(status::of_wire)?;
    match apply(request, node, &new, parts::DACL).await {
        Err(NtStatus::NOT_SUPPORTED) => Ok(()),
        done => done,
    }
}

async fn apply(
    request: &Request,
    node: &Node,
    new: &Descriptor,
    wanted: u32,
) -> Result<(), NtStatus> {
    let (conn, who) = (&request.conn, &request.session.who);
    let (attr, _) = facts::look(conn, who, node).await?;
    let now = of(&attr, node);
    let (mut uid, mut gid) = (attr.uid, attr.gid);
    if wanted & parts::OWNER != 0
        && let Some(owner) = &new.owner
    {
        uid = owner.as_user().ok_or(NtStatus::NOT_SUPPORTED)?;
    }
    if wanted & parts::GROUP != 0
        && let Some(group) = &new.group
    {
        gid = group.as_group().ok_or(NtStatus::NOT_SUPPORTED)?;
    }
    let mut mode = attr.mode;
    // A list that is written back as it was read changes nothing.
    if wanted & parts::DACL != 0 && new.dacl != now.dacl {
        let dacl = new.dacl.as_ref().ok_or(NtStatus::NOT_SUPPORTED)?;
        let bits = wire::smb::security::mode_of(dacl, uid, gid);
        mode = attr.mode & !0o777 | bits.ok_or(NtStatus::NOT_SUPPORTED)?;
    }
    let set = SetAttr {
        mode: (mode != attr.mode).then_some(mode),
        uid: (uid != attr.uid).then_some(uid),
        gid: (gid != attr.gid).then_some(gid),
        ..SetAttr::default()
    };
    if set == SetAttr::default() {
        return Ok(());
    }
    conn.core.set_attr(who, node, set).await.map_err(status::of)
}
