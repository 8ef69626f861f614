//! The extended attribute that SMB reads at each open and each query of a file (`user.DOSATTRIB`),
//! cached: reading it may read the disk, so each of these requests took a thread of the pool.
//!
//! A value is valid as long as the file has the change time that it had before the value was read:
//! each change of an extended attribute moves it. Where change times are as coarse as the kernel's
//! tick, there could be two changes within one; so nothing is cached of a file that changed within
//! the last [`CHANGE_SETTLED`](base::limits::CHANGE_SETTLED).

use std::sync::Mutex;

use base::limits::XATTR_CACHED_MAX;

use crate::attr::Time;
use crate::fs::Result;
use crate::host::lock::lock;
use crate::status::Status;

/// The value of one attribute of one file.
#[derive(Default)]
pub struct CachedXattr(Mutex<Option<Found>>);

struct Found {
    ctime: Time,
    /// `None` if the file does not have the attribute.
    value: Option<Box<[u8]>>,
}

impl CachedXattr {
    /// The value, or that there is none, for a file with this change time; `None` if it is not
    /// cached.
    pub fn get(&self, ctime: Time) -> Option<Result<Vec<u8>>> {
        let found = lock(&self.0);
        let found = found.as_ref().filter(|found| found.ctime == ctime)?;
        Some(found.value.as_deref().map(<[u8]>::to_vec).ok_or(Status::NotFound))
    }

    /// A value was read at the time `now` (nanoseconds since the epoch) or later, before which the
    /// file had the change time `ctime`.
    pub fn note(&self, ctime: Time, now: u64, value: &Result<Vec<u8>>) {
        let value = match value {
            Ok(bytes) if bytes.len() <= XATTR_CACHED_MAX => Some(bytes.as_slice().into()),
            Err(Status::NotFound) => None,
            _ => return,
        };
        if ctime.is_settled(now) {
            *lock(&self.0) = Some(Found { ctime, value });
        }
    }
}
