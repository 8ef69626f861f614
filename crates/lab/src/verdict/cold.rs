//! Whether a read was cold: what was resident before, and what the device below the share read
//! while the clients did. Pure.
//!
//! A server that answers from a cache shows the cache's rate as the disk's. POSIX_FADV_DONTNEED
//! alone frees nothing while the server maps the file, so that the pages are counted afterwards.
//! Read-ahead that warms the set makes the device read much in the beginning and little later, so
//! that the later half of the payload is judged separately, too; and a short step, in which the
//! counters were not read between, by what the device read beyond what clients did.

use base::memory::page_size;
use serde::{Deserialize, Serialize};

/// Pages that may be resident before, of those of the files.
const RESIDENT_MAX: f64 = 0.01;
/// Bytes that the device must have read, of those that clients have.
const DEVICE_MIN: f64 = 0.95;

/// The same of the later half of the payload. Read-ahead of the earlier half, and the moments at
/// which counters are read, account for the difference.
const LATER_MIN: f64 = 0.5;

/// Bytes that the device may have read beyond what clients have, of those of the set: they are in
/// memory for what is read next. A tenth at the end is a twentieth on average.
const AHEAD_MAX: f64 = 0.1;

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
    /// Pages of the data that clients read from, if that is less than the files.
    #[serde(default)]
    pub set: Option<u64>,
    /// Of the later half of the payload: bytes that the device read, and the payload; `None` if
    /// the counters were not read between.
    #[serde(default)]
    pub later: Option<(u64, u64)>,
}

impl ColdEvidence {
    /// Share of the data that was resident before. Other files do not lessen it.
    fn resident_share(&self) -> Option<f64> {
        let (resident, all) = self.resident?;
        let all = self.set.map_or(all, |set| set.min(all));
        (all > 0).then(|| (resident as f64 / all as f64).min(1.0))
    }

    /// Share of the payload that the device read.
    fn device_share(&self) -> Option<f64> {
        let (_, bytes) = self.device.as_ref()?;
        (self.payload > 0).then(|| *bytes as f64 / self.payload as f64)
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The evidence of a read without a doubt, in words.
pub fn proof(e: &ColdEvidence) -> String {
    let share = |share: Option<f64>| share.map_or("nothing".to_owned(), percent);
    let device = e.device.as_ref().map_or("the device", |(name, _)| name.as_str());
    let (resident, read) = (share(e.resident_share()), share(e.device_share()));
    format!(
        "{resident} of the pages were resident before, {device} read {read} of what clients did"
    )
}

/// Why a read is not shown to be cold; none if it is. Each sentence has its number.
pub fn doubts(e: &ColdEvidence) -> Vec<String> {
    let mut out = Vec::new();
    match (e.resident, e.resident_share()) {
        (_, Some(share)) if share >= RESIDENT_MAX => {
            let (share, most) = (percent(share), percent(RESIDENT_MAX));
            out.push(format!(
                "{share} of the pages were resident before: less than {most} is cold"
            ));
        }
        (_, Some(_)) => {}
        (Some(_), None) => out.push("the files have no pages".to_owned()),
        (None, None) => {
            out.push("resident pages were not counted (cachestat, Linux 6.5)".to_owned());
        }
    }
    match (&e.device, &e.share_device) {
        (Some((name, _)), Some(own)) if name != own => {
            out.push(format!("the counters are those of {name}, the share is on {own}"));
        }
        (Some((name, _)), Some(_)) => match e.device_share() {
            None => out.push("clients read nothing".to_owned()),
            Some(share) if share < DEVICE_MIN => {
                let (share, least) = (percent(share), percent(DEVICE_MIN));
                out.push(format!(
                    "{name} read {share} of what clients did: at least {least} is cold"
                ));
            }
            Some(_) => out.extend(warmed(e, name).or_else(|| ahead(e, name))),
        },
        _ => out.push("the device below the share was not observed".to_owned()),
    }
    out
}

/// Whether what was read in the beginning has warmed the rest.
fn warmed(e: &ColdEvidence, name: &str) -> Option<String> {
    let (device, payload) = e.later.filter(|(_, payload)| *payload > 0)?;
    let share = device as f64 / payload as f64;
    (share < LATER_MIN).then(|| {
        let (share, least) = (percent(share), percent(LATER_MIN));
        format!(
            "{name} read {share} of the later half of the payload: with less than {least}, \
             what was read ahead has warmed it"
        )
    })
}

/// Whether more was read than clients asked for, so that the rest would come from memory. What
/// clients have read already cannot be warmed: at the end of the set more is read than it has.
fn ahead(e: &ColdEvidence, name: &str) -> Option<String> {
    let (_, device) = e.device.as_ref()?;
    let set = e.set?.saturating_mul(page_size());
    let more = device.saturating_sub(e.payload).min(set.saturating_sub(e.payload));
    let share = more as f64 / set.max(1) as f64;
    (share > AHEAD_MAX).then(|| {
        let (share, most) = (percent(share), percent(AHEAD_MAX));
        format!(
            "{name} read {share} of the set beyond what clients did: with more than {most}, what \
             was read ahead has warmed it"
        )
    })
}

#[cfg(test)]
mod tests;
