//! Bays of disk enclosures (SES): which disk is in which bay, its lights.

use std::collections::BTreeMap;

use host::Root;

use crate::files::{is_set, link_name, names, number, text};

const CLASS: &str = "sys/class/enclosure";
/// Most enclosures; a chain of SAS has some ten.
const ENCLOSURES_MAX: usize = 64;
/// Most components of one: bays, fans, power supplies.
const COMPONENTS_MAX: usize = 512;

/// A bay with something in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bay {
    /// `enclosure 0:0:24:0, Slot 01`.
    pub words: String,
    /// Whether its locate light is on.
    pub locate: bool,
    /// Whether its fault light is on.
    pub fault: bool,
}

/// Bays by the SCSI address (`0:0:1:0`) of the disk in them.
pub(crate) fn bays(root: &Root) -> BTreeMap<String, Bay> {
    let mut bays = BTreeMap::new();
    for enclosure in names(root, CLASS).into_iter().take(ENCLOSURES_MAX) {
        let folder = format!("{CLASS}/{enclosure}");
        for component in names(root, &folder).into_iter().take(COMPONENTS_MAX) {
            let path = format!("{folder}/{component}");
            let Some(device) = link_name(root, &format!("{path}/device")) else { continue };
            let is_bay = text(root, &format!("{path}/type"))
                .is_none_or(|kind| matches!(kind.as_str(), "array device" | "device"));
            // Every enclosure is a SCSI device, too: that is no bay.
            if !is_bay || component == "device" {
                continue;
            }
            let name = component.trim();
            let slot = number::<u32>(root, &format!("{path}/slot"));
            let bay = match slot.filter(|_| !name.contains(|c: char| c.is_ascii_digit())) {
                Some(slot) => format!("{name} {slot}"),
                None => name.to_owned(),
            };
            let words = format!("enclosure {enclosure}, {bay}");
            let lit = |what: &str| is_set(root, &format!("{path}/{what}"));
            bays.insert(device, Bay { words, locate: lit("locate"), fault: lit("fault") });
        }
    }
    bays
}
