//! CREATEs that are invalid or that ask for what is not supported (MS-SMB2 §3.3.5.9, MS-FSA
//! §2.1.5.1).

use wire::smb::class::attributes;
use wire::smb::contexts::{self, Context};
use wire::smb::create::{Disposition, Request, access, options, share_access};
use wire::smb::durable::{AppInstance, AppVersion, DurableV2, ReconnectV2, check_v1, reconnect_v1};
use wire::smb::lease::Lease;
use wire::smb::status::NtStatus;

use crate::durable::DurableRequest;
use crate::instances::Application;
use crate::{names, status};

/// The largest file: sizes are signed.
const SIZE_MAX: u64 = i64::MAX as u64;
/// Delegate, the highest ImpersonationLevel.
const IMPERSONATION_MAX: u32 = 3;

/// What the contexts of a CREATE ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Contexts<'a> {
    /// The rights that the user has.
    pub maximal_access: bool,
    /// The number of the file on disk.
    pub on_disk_id: bool,
    /// A lease.
    pub lease: Option<Lease>,
    /// A durable handle.
    pub durable: DurableRequest,
    /// The application that opens it.
    pub application: Application,
    /// Bytes to reserve.
    pub reserve: Option<u64>,
    /// The time of the snapshot that has it (FILETIME).
    pub snapshot: Option<u64>,
    /// A security descriptor for a new file.
    pub security: Option<&'a [u8]>,
}

/// Looks at options and masks.
///
/// # Errors
/// The status of the response.
pub(super) fn check(create: &Request<'_>, disposition: Disposition) -> Result<(), NtStatus> {
    let has = |option: u32| create.options & option != 0;
    if create.impersonation > IMPERSONATION_MAX {
        return Err(NtStatus::BAD_IMPERSONATION_LEVEL);
    }
    if has(options::UNKNOWN) || (has(options::DIRECTORY) && has(options::NON_DIRECTORY)) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    // Nothing can replace a directory (MS-FSA §2.1.5.1).
    let replaces = matches!(
        disposition,
        Disposition::Supersede | Disposition::Overwrite | Disposition::OverwriteIf
    );
    if has(options::DIRECTORY) && replaces {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if names::is_of_dir(create.name) && has(options::NON_DIRECTORY) {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    if has(options::NOT_SERVED) {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let known = share_access::READ | share_access::WRITE | share_access::DELETE;
    if create.share & !known != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    check_attributes(create)?;
    let mask = access::specific(create.access);
    if mask & access::UNKNOWN != 0 || mask == 0 {
        return Err(NtStatus::ACCESS_DENIED);
    }
    if mask & access::SYSTEM_SECURITY != 0 {
        return Err(NtStatus::PRIVILEGE_NOT_HELD);
    }
    if has(options::DELETE_ON_CLOSE) && mask & (access::DELETE | access::MAXIMUM_ALLOWED) == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    Ok(())
}

fn check_attributes(create: &Request<'_>) -> Result<(), NtStatus> {
    if create.attributes & !attributes::NAMED != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if create.attributes & attributes::ENCRYPTED != 0 {
        return Err(NtStatus::ACCESS_DENIED);
    }
    let is_dir = create.options & options::DIRECTORY != 0;
    if is_dir && create.attributes & attributes::TEMPORARY != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    Ok(())
}

/// Reads the contexts.
///
/// # Errors
/// The status of the response.
pub(super) fn contexts<'a>(create: &Request<'a>) -> Result<Contexts<'a>, NtStatus> {
    let mut asked = Contexts::default();
    let all = contexts::decode(create.contexts).map_err(status::of_wire)?;
    asked.durable = durable(&all)?;
    for context in all {
        match context.name {
            contexts::EXTENDED_ATTRIBUTES => return Err(NtStatus::EAS_NOT_SUPPORTED),
            contexts::SNAPSHOT => {
                let bytes = context.data.try_into().map_err(|_| NtStatus::INVALID_PARAMETER)?;
                asked.snapshot = Some(u64::from_le_bytes(bytes));
            }
            contexts::APP_INSTANCE => {
                let one = AppInstance::decode(context.data).map_err(status::of_wire)?;
                asked.application.id = Some(one.id);
            }
            contexts::APP_VERSION => {
                let one = AppVersion::decode(context.data).map_err(status::of_wire)?;
                asked.application.version = Some((one.high, one.low));
            }
            contexts::MAXIMAL_ACCESS => asked.maximal_access = true,
            contexts::ON_DISK_ID => asked.on_disk_id = true,
            contexts::LEASE => {
                let lease = Lease::decode(context.data).map_err(status::of_wire)?;
                asked.lease = asked.lease.or(Some(lease));
            }
            contexts::SECURITY => asked.security = Some(context.data),
            contexts::ALLOCATION => {
                let bytes = context.data.try_into().map_err(|_| NtStatus::INVALID_PARAMETER)?;
                let size = u64::from_le_bytes(bytes);
                if size > SIZE_MAX {
                    return Err(NtStatus::INVALID_PARAMETER);
                }
                asked.reserve = Some(size);
            }
            _ => {}
        }
    }
    Ok(asked)
}

/// Reads the contexts of durable handles, of which one excludes most others (MS-SMB2 §3.3.5.9.7,
/// §3.3.5.9.12).
fn durable(all: &[Context<'_>]) -> Result<DurableRequest, NtStatus> {
    let find = |name| all.iter().find(|one| one.name == name).map(|one| one.data);
    let (new, again) = (find(contexts::DURABLE), find(contexts::DURABLE_RECONNECT));
    let (new_v2, again_v2) = (find(contexts::DURABLE_V2), find(contexts::DURABLE_V2_RECONNECT));
    let is_one = match (new_v2.is_some(), again_v2.is_some()) {
        (false, false) => true,
        (true, true) => false,
        _ => new.is_none() && again.is_none(),
    };
    if !is_one {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let is_alone = |with: &[&[u8]]| {
        all.iter().all(|one| one.name == contexts::LEASE || with.contains(&one.name))
    };
    if let Some(data) = again {
        let file = reconnect_v1(data).map_err(status::of_wire)?;
        return match is_alone(&[contexts::DURABLE, contexts::DURABLE_RECONNECT]) {
            true => Ok(DurableRequest::Reconnect(file, None)),
            false => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
        };
    }
    if let Some(data) = again_v2 {
        let asked = ReconnectV2::decode(data).map_err(status::of_wire)?;
        let with = [contexts::DURABLE_V2_RECONNECT, contexts::APP_INSTANCE, contexts::APP_VERSION];
        return match is_alone(&with) {
            true => Ok(DurableRequest::Reconnect(asked.file, Some(asked.guid))),
            false => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
        };
    }
    Ok(match (new, new_v2) {
        (_, Some(data)) => DurableRequest::V2(DurableV2::decode(data).map_err(status::of_wire)?),
        (Some(data), _) => {
            check_v1(data).map_err(status::of_wire)?;
            DurableRequest::V1
        }
        _ => DurableRequest::Nothing,
    })
}
