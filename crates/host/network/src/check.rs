//! What is wrong with a configuration, by item and property, before anything is changed.
//!
//! What depends on the machine is checked against its state: devices that do not exist, links of
//! other programs, bounds of an MTU. What the kernel alone knows (whether a driver has the
//! connected mode) is refused by the step.

mod addresses;
mod datalinks;
mod routes;

use std::net::IpAddr;

use crate::compile::{Record, compile};
use crate::configuration::Configuration;
use crate::plan::removed;
use crate::state::{Link, State};

/// Longest name of a link: the kernel has 16 bytes, the last one is a NUL.
pub const NAME_MAX: usize = 15;
/// Most hosts that a group probes (BOND_MAX_ARP_TARGETS of Linux).
pub const PROBES_MAX: usize = 16;

/// What is wrong with a property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{item}: {property}: {sentence}")]
pub struct Refusal {
    /// `datalinks/NAME`, `interfaces/NAME`, `routes/NAME`, `dns`, `identity`.
    pub item: String,
    /// Which property; `name` is that of the item.
    pub property: &'static str,
    /// What is wrong with it.
    pub sentence: String,
}

/// What the check is made against.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// The state now.
    pub observed: &'a State,
    /// What was changed before.
    pub record: &'a Record,
    /// Addresses by which the administration is reached: those that it listens at, and that of the
    /// connection on which the change is requested.
    pub administration: &'a [IpAddr],
    /// The address by which it is to be reached afterwards, if the request names one.
    pub successor: Option<IpAddr>,
}

/// Everything that is wrong with a configuration; nothing if it can be planned for.
pub fn check(configuration: &Configuration, machine: Machine<'_>) -> Vec<Refusal> {
    let mut refusals = Refusals::default();
    datalinks::check(configuration, machine, &mut refusals);
    addresses::check(configuration, machine, &mut refusals);
    routes::check(configuration, machine, &mut refusals);
    if refusals.list.is_empty() {
        // Only what is sound can be compiled.
        foreign_links_above(configuration, machine, &mut refusals);
    }
    refusals.list
}

/// Links of other programs end with the link that they are made on.
fn foreign_links_above(
    configuration: &Configuration,
    machine: Machine<'_>,
    refusals: &mut Refusals,
) {
    let Machine { observed, record, .. } = machine;
    let (target, _) = compile(configuration, observed, record);
    let removed = removed(observed, &target);
    for (name, link) in observed.links.iter().filter(|(_, link)| !link.is_made()) {
        let Some(on) = link.kind.on().filter(|on| removed.contains(on)) else { continue };
        let sentence = format!(
            "{on} is removed or made again, and {name}, which Plimsoll has not made, would be \
             removed with it: remove {name} first"
        );
        refusals.add(&format!("datalinks/{on}"), "class", sentence);
    }
}

#[derive(Default)]
struct Refusals {
    list: Vec<Refusal>,
}

impl Refusals {
    fn add(&mut self, item: &str, property: &'static str, sentence: String) {
        self.list.push(Refusal { item: item.to_owned(), property, sentence });
    }
}

/// What is wrong with a text as the name of a link, if anything is.
fn wrong_name(name: &str) -> Option<String> {
    if name.len() > NAME_MAX {
        let bytes = name.len();
        return Some(format!("a name has at most {NAME_MAX} bytes, this one has {bytes}"));
    }
    let reserved = ["", ".", "..", "all", "default", "lo"].contains(&name);
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    (reserved || !name.bytes().all(is_plain) || name.starts_with('-')).then(|| {
        "a name has letters, digits, dots, hyphens and underscores, and is not lo, all or default"
            .to_owned()
    })
}

/// Whether a link that Plimsoll has not made has this name.
fn is_foreign(observed: &State, name: &str) -> bool {
    observed.links.get(name).is_some_and(|link: &Link| !link.is_made())
}

#[cfg(test)]
mod tests;
