//! Errors of memory, as the drivers of memory controllers count them (EDAC).

use host::Root;
use serde::{Deserialize, Serialize};

use crate::files::{names, number, text};

const CONTROLLERS: &str = "sys/devices/system/edac/mc";
/// Most modules of a controller.
const DIMMS_MAX: usize = 256;

/// A memory controller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    /// `mc0`.
    pub name: String,
    /// Its modules.
    pub dimms: Vec<Dimm>,
}

/// A module as its driver has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimm {
    /// Label of the driver, else `mc0 dimm1`.
    pub label: String,
    /// Bytes.
    pub size: Option<u64>,
    /// Errors that were corrected.
    pub corrected: u64,
    /// Errors that were not corrected.
    pub uncorrected: u64,
}

/// All controllers.
pub(crate) fn read(root: &Root) -> Vec<Controller> {
    let is_one =
        |name: &String| name.strip_prefix("mc").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let controllers = names(root, CONTROLLERS).into_iter().filter(is_one);
    controllers.map(|name| Controller { dimms: dimms(root, &name), name }).collect()
}

fn dimms(root: &Root, controller: &str) -> Vec<Dimm> {
    let folder = format!("{CONTROLLERS}/{controller}");
    let is_one = |name: &String| name.starts_with("dimm") || name.starts_with("rank");
    let mut dimms = Vec::new();
    for name in names(root, &folder).into_iter().filter(is_one).take(DIMMS_MAX) {
        let read = |what: &str| format!("{folder}/{name}/{what}");
        let count = |what: &str| number(root, &read(what)).unwrap_or_default();
        let label = text(root, &read("dimm_label"));
        dimms.push(Dimm {
            label: label.unwrap_or_else(|| format!("{controller} {name}")),
            // In MiB.
            size: number::<u64>(root, &read("size")).and_then(|mib| mib.checked_mul(1 << 20)),
            corrected: count("dimm_ce_count"),
            uncorrected: count("dimm_ue_count"),
        });
    }
    dimms
}
