//! What of the links of interfaces is missing, has no carrier, or does not reach the hosts that its
//! group probes: a group or an aggregation continues without one of its links, and only this shows
//! it.

use std::collections::{BTreeMap, BTreeSet};

use host_network::configuration::{Class, Configuration};
use host_network::linux::Carrier;

use crate::problems::{Fault, Severity};

/// Links that are named at most.
const NAMED_MAX: usize = 8;

/// Links by name, and how each of them works.
pub(super) type Carriers = BTreeMap<String, Carrier>;

/// A link of an interface that does not work.
pub(super) struct CarrierLoss {
    /// The link.
    pub link: String,
    /// The interface.
    pub interface: String,
    /// How it works; nothing if there is no such link.
    pub carrier: Option<Carrier>,
    /// Devices of the interface that work.
    pub left: usize,
}

impl CarrierLoss {
    fn sentence(&self) -> String {
        let Self { link, interface, .. } = self;
        let what = match self.carrier {
            None => "is missing",
            Some(Carrier::Unanswered) => "reaches none of the probed hosts",
            Some(_) => "has no carrier",
        };
        format!("{link} {what} (interface {interface})")
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
pub(super) fn dark(configuration: &Configuration, carriers: &Carriers) -> Vec<CarrierLoss> {
    let mut dark = Vec::new();
    for (name, interface) in configuration.interfaces.iter().filter(|(_, one)| one.enabled) {
        let mut below = BTreeSet::new();
        interface.links.iter().for_each(|link| enter(configuration, link, &mut below));
        let is_device = |link: &str| {
            let device = configuration.datalinks.get(link).map(|one| &one.class);
            device.is_none_or(|class| *class == Class::Device)
        };
        let works = |link: &&&str| is_device(link) && carriers.get(**link) == Some(&Carrier::Works);
        let left = below.iter().filter(works).count();
        for link in below {
            let carrier = carriers.get(link).copied();
            // What is made of others has a carrier if one of them has.
            let named = match carrier {
                None | Some(Carrier::Unanswered) => true,
                Some(Carrier::None) => is_device(link),
                Some(Carrier::Works) => false,
            };
            if named {
                let (link, interface) = (link.to_owned(), name.clone());
                dark.push(CarrierLoss { link, interface, carrier, left });
            }
        }
    }
    dark
}

/// The same in a sentence.
pub(super) fn problem(configuration: &Configuration, carriers: &Carriers) -> Option<String> {
    let dark = dark(configuration, carriers);
    let mut found: Vec<String> = dark.iter().map(CarrierLoss::sentence).collect();
    let more = found.len().saturating_sub(NAMED_MAX);
    found.truncate(NAMED_MAX);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    (!found.is_empty()).then(|| found.join("; "))
}

/// Enters a link and those that it is made of.
pub(super) fn enter<'a>(
    configuration: &'a Configuration,
    link: &'a str,
    below: &mut BTreeSet<&'a str>,
) {
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
