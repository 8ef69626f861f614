//! Whether a read was cold: what was resident before, and what the device below the share read
//! while the clients did. Pure.
//!
//! A server that answers from a cache shows the cache's rate as the disk's. POSIX_FADV_DONTNEED
//! alone frees nothing while the server maps the file, so that the pages are counted afterwards.

use serde::{Deserialize, Serialize};

/// Pages that may be resident before, of those of the files.
const RESIDENT_MAX: f64 = 0.01;
/// Bytes that the device must have read, of those that clients have.
const DEVICE_MIN: f64 = 0.95;

/// What was seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ColdEvidence {
    /// Pages of the files that were in the page cache before the first read, and all of them, by
    /// cachestat(2); `None` if not seen.
    pub resident: Option<(u64, u64)>,
    /// The device below the share, by its file system.
    pub share_device: Option<String>,
    /// The device that was read from during the run: its name, bytes; `None` if not seen.
    pub device: Option<(String, u64)>,
    /// Bytes that clients have read.
    pub payload: u64,
}

/// Why a read is not shown to be cold; none if it is. Each sentence has its number.
pub fn doubts(e: &ColdEvidence) -> Vec<String> {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut out = Vec::new();
    match e.resident {
        Some((resident, all)) if all > 0 => {
            let share = resident as f64 / all as f64;
            if share >= RESIDENT_MAX {
                let most = percent(RESIDENT_MAX);
                let share = percent(share);
                out.push(format!(
                    "{share} of the pages were resident before: less than {most} is cold"
                ));
            }
        }
        Some(_) => out.push("the files have no pages".to_owned()),
        None => out.push("resident pages were not counted (cachestat, Linux 6.5)".to_owned()),
    }
    match (&e.device, &e.share_device) {
        (Some((name, _)), Some(own)) if name != own => {
            out.push(format!("the counters are those of {name}, the share is on {own}"));
        }
        (Some((name, bytes)), Some(_)) => {
            let share = *bytes as f64 / e.payload.max(1) as f64;
            if share < DEVICE_MIN {
                let (share, least) = (percent(share), percent(DEVICE_MIN));
                out.push(format!(
                    "{name} read {share} of what clients did: at least {least} is cold"
                ));
            }
        }
        _ => out.push("the device below the share was not observed".to_owned()),
    }
    out
}

#[cfg(test)]
mod tests;
