//! What is wrong with a fabric, as a list. It belongs to the list of all problems of the machine.

use crate::attribute::{ERRORS, PortInfo};
use crate::counters::Counters;
use crate::walk::{Fabric, Manager, Port, PortId};

/// Problems that are listed; a cable that fails has one or two.
pub const PROBLEMS_MAX: usize = 256;

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No subnet manager.
    NoManager,
    /// Symbol errors grow.
    SymbolErrors,
    /// A node or port does not reply.
    NoReply,
    /// A link is narrower or slower than its ends.
    Narrow,
}

impl Kind {
    fn id(self, port: &str) -> String {
        let kind = match self {
            Self::NoManager => "no-subnet-manager",
            Self::SymbolErrors => "symbol-errors",
            Self::NoReply => "no-reply",
            Self::Narrow => "narrow",
        };
        format!("fabric-{kind}-{port}")
    }
}

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable while the problem lasts, and a name of a node: `fabric-symbol-errors-PORT`.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// What is wrong.
    pub what: String,
    /// What it affects.
    pub impact: &'static str,
    /// What an administrator does.
    pub remedy: &'static str,
}

/// The problems of a fabric; `name` gives the name of a port.
pub fn problems(
    fabric: &Fabric,
    counters: &Counters,
    name: impl Fn(PortId) -> String,
) -> Vec<Problem> {
    let mut list: Vec<Problem> = manager(fabric, &name).into_iter().collect();
    for (id, port) in &fabric.ports {
        list.extend(symbol_errors(*id, counters, &name));
        list.extend(silent(*id, port, &name));
    }
    list.extend(fabric.links().filter_map(|link| narrow_link(fabric, link, &name)));
    list.truncate(PROBLEMS_MAX);
    list
}

fn manager(fabric: &Fabric, name: &impl Fn(PortId) -> String) -> Option<Problem> {
    let local = name(fabric.local?);
    let what = match fabric.manager {
        Manager::None => format!("no subnet manager has configured {local}"),
        Manager::Silent(lid) => format!("no subnet manager replies to {local} (last at LID {lid})"),
        Manager::Unlinked | Manager::Master(_) => return None,
    };
    Some(Problem {
        id: Kind::NoManager.id(&local),
        kind: Kind::NoManager,
        what,
        impact: "Ports that come up get no LID and no partitions; routes are not repaired.",
        remedy: "Start a subnet manager (opensm) on a host or switch of the fabric.",
    })
}

fn symbol_errors(
    id: PortId,
    counters: &Counters,
    name: &impl Fn(PortId) -> String,
) -> Option<Problem> {
    let counted = counters.ports.get(&id)?;
    let symbol = ERRORS.iter().position(|error| error.name == "symbol")?;
    let more = *counted.errors.get(symbol)?;
    let port = name(id);
    (more > 0 && counted.rates.is_some()).then(|| Problem {
        id: Kind::SymbolErrors.id(&port),
        kind: Kind::SymbolErrors,
        what: format!("symbol errors grow at {port}: {more} more in the last interval"),
        impact: "Packets are lost and repeated; the link may go down.",
        remedy: "Clean and reseat the cable of the port; replace it if the errors continue.",
    })
}

fn silent(id: PortId, port: &Port, name: &impl Fn(PortId) -> String) -> Option<Problem> {
    let (what, lack) = match (&port.info, port.silent) {
        (_, Some(lack)) => ("the node linked to", lack),
        (Some(Err(lack)), None) => ("the port", *lack),
        _ => return None,
    };
    let port = name(id);
    Some(Problem {
        id: Kind::NoReply.id(&port),
        kind: Kind::NoReply,
        what: format!("{what} {port} does not reply: {lack}"),
        impact: "The node and what is behind it are not shown and not counted.",
        remedy: "Check power and firmware of the node at the other end of the link.",
    })
}

/// A link that uses less than both its ends support and have enabled: what an administrator has
/// limited is no problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Narrow {
    /// Lanes in use, and those that both ends have enabled.
    pub lanes: (u8, u8),
    /// The speed in use, and the highest that both ends have enabled.
    pub speed: (&'static str, &'static str),
}

/// What a link has less than its ends, if it has.
pub fn narrow(fabric: &Fabric, (a, b): (PortId, PortId)) -> Option<Narrow> {
    let info = |id| fabric.ports.get(&id).and_then(Port::info);
    let (one, other) = (info(a)?, info(b)?);
    let lanes = one.lanes_enabled().min(other.lanes_enabled());
    let (speed, speed_name) = slower(one, other);
    let (used, used_name) = one.speed();
    let is_known = one.is_linked() && one.lanes() != 0 && used != 0;
    let is_narrow = is_known && (one.lanes() < lanes || used < speed);
    is_narrow.then(|| Narrow { lanes: (one.lanes(), lanes), speed: (used_name, speed_name) })
}

fn narrow_link(
    fabric: &Fabric,
    link: (PortId, PortId),
    name: &impl Fn(PortId) -> String,
) -> Option<Problem> {
    let Narrow { lanes: (lanes_used, lanes), speed: (used_name, speed_name) } =
        narrow(fabric, link)?;
    let (from, to) = (name(link.0), name(link.1));
    Some(Problem {
        id: Kind::Narrow.id(&from),
        kind: Kind::Narrow,
        what: format!(
            "the link {from} to {to} runs at {lanes_used}x {used_name}; both ends support \
             {lanes}x {speed_name}"
        ),
        impact: "The link carries less than its ports can.",
        remedy: "Reseat or replace the cable; check that it is rated for the speed.",
    })
}

fn slower(one: &PortInfo, other: &PortInfo) -> (u8, &'static str) {
    one.speed_enabled_max().min(other.speed_enabled_max())
}

#[cfg(test)]
mod tests;
