//! What of the links of interfaces is missing or has no carrier: a group or an aggregation
//! continues without one of its links, and only this shows it.

use std::collections::{BTreeMap, BTreeSet};

use host_network::configuration::{Class, Configuration};

use crate::problems::{Fault, Severity};

/// Links that are named at most.
const NAMED_MAX: usize = 8;

/// Links by name, and whether each has a carrier.
pub(super) type Carriers = BTreeMap<String, bool>;

/// A link of an interface that is missing or has no carrier.
pub(super) struct Dark {
    /// The link.
    pub link: String,
    /// The interface.
    pub interface: String,
    /// Whether there is no such link.
    pub missing: bool,
    /// Devices of the interface that have a carrier.
    pub left: usize,
}

impl Dark {
    fn sentence(&self) -> String {
        let Self { link, interface, .. } = self;
        match self.missing {
            true => format!("{link} is missing (interface {interface})"),
            false => format!("{link} has no carrier (interface {interface})"),
        }
    }

    /// As a problem of the machine.
    pub(super) fn fault(&self) -> Fault {
        let (severity, impact) = match self.left {
            0 => (Severity::Critical, "The interface has no link that works."),
            1 => (Severity::Major, "One link is left: the next failure interrupts the interface."),
            _ => (Severity::Minor, "The interface continues with less throughput."),
        };
        Fault {
            id: format!("link-{}-{}", self.interface, self.link),
            severity,
            what: format!("{}.", self.sentence()),
            impact: impact.to_owned(),
            remedy: "Check the cable, the port and the switch.".to_owned(),
        }
    }
}

/// What is wrong with the links of enabled interfaces.
pub(super) fn dark(configuration: &Configuration, carriers: &Carriers) -> Vec<Dark> {
    let mut dark = Vec::new();
    for (name, interface) in configuration.interfaces.iter().filter(|(_, one)| one.enabled) {
        let mut below = BTreeSet::new();
        interface.links.iter().for_each(|link| enter(configuration, link, &mut below));
        let is_device = |link: &str| {
            let device = configuration.datalinks.get(link).map(|one| &one.class);
            device.is_none_or(|class| *class == Class::Device)
        };
        let works = |link: &&&str| is_device(link) && carriers.get(**link) == Some(&true);
        let left = below.iter().filter(works).count();
        for link in below {
            let missing = match carriers.get(link) {
                None => true,
                // What is made of others has a carrier if one of them has.
                Some(false) if is_device(link) => false,
                Some(_) => continue,
            };
            let (link, interface) = (link.to_owned(), name.clone());
            dark.push(Dark { link, interface, missing, left });
        }
    }
    dark
}

/// The same in a sentence.
pub(super) fn problem(configuration: &Configuration, carriers: &Carriers) -> Option<String> {
    let dark = dark(configuration, carriers);
    let mut found: Vec<String> = dark.iter().map(Dark::sentence).collect();
    let more = found.len().saturating_sub(NAMED_MAX);
    found.truncate(NAMED_MAX);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    (!found.is_empty()).then(|| found.join("; "))
}

/// Enters a link and those that it is made of.
fn enter<'a>(configuration: &'a Configuration, link: &'a str, below: &mut BTreeSet<&'a str>) {
    if !below.insert(link) {
        return;
    }
    let class = configuration.datalinks.get(link).map(|datalink| &datalink.class);
    for next in class.into_iter().flat_map(|class| class.links()) {
        enter(configuration, next, below);
    }
}

#[cfg(test)]
mod tests;
