//! What of the links of interfaces is missing or has no carrier: a group or an aggregation
//! continues without one of its links, and only this shows it.

use std::collections::{BTreeMap, BTreeSet};

use host_network::configuration::{Class, Configuration};

/// Links that are named at most.
const NAMED_MAX: usize = 8;

/// Links by name, and whether each has a carrier.
pub(super) type Carriers = BTreeMap<String, bool>;

/// What is wrong with the links of enabled interfaces, in a sentence.
pub(super) fn problem(configuration: &Configuration, carriers: &Carriers) -> Option<String> {
    let mut found = Vec::new();
    for (name, interface) in configuration.interfaces.iter().filter(|(_, one)| one.enabled) {
        let mut below = BTreeSet::new();
        interface.links.iter().for_each(|link| enter(configuration, link, &mut below));
        for link in below {
            let device = configuration.datalinks.get(link).map(|one| &one.class);
            let is_device = device.is_none_or(|class| *class == Class::Device);
            match carriers.get(link) {
                None => found.push(format!("{link} is missing (interface {name})")),
                // What is made of others has a carrier if one of them has.
                Some(false) if is_device => {
                    found.push(format!("{link} has no carrier (interface {name})"));
                }
                Some(_) => {}
            }
        }
    }
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
