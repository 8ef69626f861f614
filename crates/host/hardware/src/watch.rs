//! What is remembered of the hardware from one look to the next: disks that were there, the errors
//! since an administrator has seen to them, the last report of each disk.

use std::collections::BTreeMap;

use host::Root;
use serde::{Deserialize, Serialize};

use crate::Hardware;
use crate::disk::Disk;
use crate::schedule::Schedule;
use crate::smart::is_suspended;
use crate::smart::report::{Report, Verdict};

/// Most disks that are remembered; the first of those that are absent goes beyond it.
const DISKS_MAX: usize = 4_096;

/// A count that only grows while its driver is loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// As it was read last.
    last: u64,
    /// By how much it has grown since it was marked as repaired.
    pub grown: u64,
}

impl Count {
    fn from(value: u64) -> Self {
        Self { last: value, grown: 0 }
    }

    /// A smaller value is one of a new start, with errors of the start only.
    fn see(&mut self, value: u64) {
        self.grown = self.grown.saturating_add(value.saturating_sub(self.last));
        self.last = value;
    }
}

/// A disk that is or was here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// As it was seen last.
    pub disk: Disk,
    /// Whether it is absent now.
    pub absent: bool,
    /// Commands that have failed.
    pub failed: Option<Count>,
    /// The last report on its health.
    pub report: Option<Report>,
    /// When that was, in seconds since the epoch.
    pub reported_s: u64,
}

/// Corrected and uncorrected errors of a memory module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryErrors {
    /// Corrected.
    pub corrected: Count,
    /// Not corrected.
    pub uncorrected: Count,
}

/// All that is remembered; the file `hardware.json` of the state directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watch {
    /// Disks by identity.
    pub disks: BTreeMap<String, Remembered>,
    /// Memory modules by the name of their node.
    pub memory: BTreeMap<String, MemoryErrors>,
    /// When disks were queried last.
    pub schedule: Schedule,
}

impl Watch {
    /// Takes what was read now.
    pub fn see(&mut self, hardware: &Hardware) {
        for one in self.disks.values_mut() {
            one.absent = !hardware.disks.iter().any(|disk| disk.identity == one.disk.identity);
        }
        for disk in &hardware.disks {
            let known = self.disks.entry(disk.identity.clone()).or_default();
            let is_back = known.disk.devices != disk.devices;
            match (&mut known.failed, disk.failed_commands) {
                // Another device of the kernel begins to count again.
                (Some(count), Some(value)) if is_back => count.last = value,
                (Some(count), Some(value)) => count.see(value),
                (failed, value) => *failed = value.map(Count::from).or(*failed),
            }
            known.disk = disk.clone();
        }
        while self.disks.len() > DISKS_MAX {
            let Some(key) = self.disks.iter().find(|(_, one)| one.absent).map(|(key, _)| key)
            else {
                break;
            };
            let key = key.clone();
            self.disks.remove(&key);
        }
        self.see_memory(hardware);
        let disks = &self.disks;
        self.schedule.retain(|identity| disks.contains_key(identity));
    }

    fn see_memory(&mut self, hardware: &Hardware) {
        for module in &hardware.memory {
            let (Some(corrected), Some(uncorrected)) = (module.corrected, module.uncorrected)
            else {
                continue;
            };
            let first = MemoryErrors {
                corrected: Count::from(corrected),
                uncorrected: Count::from(uncorrected),
            };
            let known = self.memory.entry(module.name.clone()).or_insert(first);
            known.corrected.see(corrected);
            known.uncorrected.see(uncorrected);
        }
        self.memory.retain(|name, _| hardware.memory.iter().any(|module| module.name == *name));
    }

    /// Disks that may be queried at this second, by identity, each with a name of the kernel. They
    /// count as queried. Disks that the kernel has suspended get their report here.
    pub fn due(&mut self, root: &Root, now_s: u64) -> Vec<(String, String)> {
        let mut due = Vec::new();
        for (identity, one) in self.disks.iter().filter(|(_, one)| !one.absent) {
            let Some(device) = one.disk.devices.first() else { continue };
            if self.schedule.take(identity, now_s) {
                due.push((identity.clone(), device.clone()));
            }
        }
        let (asleep, awake): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|(_, device)| is_suspended(root, device));
        for (identity, _) in asleep {
            self.report(&identity, Report::standby(), None, now_s);
        }
        awake
    }

    /// Enters a report; `failed` commands as they are after the query, which may have counted.
    /// Standby does not replace a verdict of failure.
    pub fn report(&mut self, identity: &str, report: Report, failed: Option<u64>, now_s: u64) {
        let Some(known) = self.disks.get_mut(identity) else { return };
        if let (Some(count), Some(value)) = (&mut known.failed, failed) {
            count.last = value;
        }
        known.reported_s = now_s;
        let keeps = report.verdict == Verdict::Standby
            && known
                .report
                .as_ref()
                .is_some_and(|old| matches!(old.verdict, Verdict::PreFailure | Verdict::Failing));
        if !keeps {
            known.report = Some(report);
        }
    }

    /// A disk by the name of its node.
    pub fn disk(&self, name: &str) -> Option<&Remembered> {
        self.disks.values().find(|one| one.disk.name == name)
    }
}

#[cfg(test)]
mod tests;
