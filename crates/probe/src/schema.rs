//! The statistics that exist, as declared in `schema/*.toml`: ids, sentences, units, breakdowns.
//!
//! Code, API, command line and pages all read them from here, so a statistic is added in one place.

use std::str::FromStr;
use std::sync::OnceLock;

use base::units;
use serde::Deserialize;

use crate::op::Protocol;
use crate::phases::Phase;
use crate::stat::{StatError, StatId, range};

/// Whether values are rates or levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Counts events; shown per second.
    Counter,
    /// A level.
    Gauge,
}

impl Kind {
    /// As in `schema/` and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// Where a statistic comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Operation records.
    Operations,
    /// Readers of the machine's own counters.
    Host,
    /// [`crate::gauge::Gauges`].
    Gauge,
    /// Readers of what a protocol keeps of its clients.
    State,
}

/// Whether the elements of a breakdown are names or ranges of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Names.
    Discrete,
    /// Buckets of [`base::buckets`]: a heat map.
    Range,
}

impl Shape {
    /// As in `schema/` and the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Range => "range",
        }
    }
}

/// One statistic.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistic {
    /// `ops`
    pub id: String,
    /// What is counted: `operations`.
    pub sentence: String,
    /// Unit of its values: `ops/s`.
    pub unit: String,
    /// Rate or level.
    pub kind: Kind,
    /// Where it comes from.
    pub source: Source,
    /// What it can be broken down by.
    pub breakdowns: Vec<String>,
    /// What a level is held to unless its owner set another limit.
    pub limit: Option<u64>,
}

/// The statistics of one protocol or part of the machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// `nfs3`
    pub group: String,
    /// `NFSv3`, as titles begin.
    pub name: String,
    /// `Protocol: NFSv3`, as menus have it.
    pub sentence: String,
    /// The protocols' groups that it is the sum of, if it is one.
    #[serde(default)]
    pub members: Vec<String>,
    /// Whether its members are all protocols that move data.
    #[serde(default)]
    sum_of_data: bool,
    /// Names of a protocol's operations, by number.
    #[serde(default)]
    pub operations: Vec<String>,
    /// A protocol's status codes with their names.
    #[serde(default)]
    pub statuses: Vec<(u16, String)>,
    /// Its statistics.
    #[serde(rename = "statistic")]
    pub statistics: Vec<Statistic>,
}

impl Group {
    /// The number of the operation `name`; a number stands for one that has no name.
    pub fn op_number(&self, name: &str) -> Option<u8> {
        let known = self.operations.iter().position(|n| *n == name).map(|n| n as u8);
        known.or_else(|| plain(name).filter(|n: &u8| self.op(*n).is_none()))
    }

    /// The number of the status `name`; a number stands for one that has no name.
    pub fn status_number(&self, name: &str) -> Option<u16> {
        let known = self.statuses.iter().find(|(_, n)| *n == name).map(|(n, _)| *n);
        known.or_else(|| plain(name).filter(|n: &u16| self.status(*n).is_none()))
    }

    fn op(&self, number: u8) -> Option<&str> {
        self.operations.get(usize::from(number)).map(String::as_str)
    }

    fn status(&self, number: u16) -> Option<&str> {
        self.statuses.iter().find(|(n, _)| *n == number).map(|(_, name)| name.as_str())
    }
}

/// A number in the way that names of numbers are written: without a sign or leading zeros.
fn plain<N: FromStr + ToString>(text: &str) -> Option<N> {
    text.parse().ok().filter(|number: &N| number.to_string() == text)
}

/// A dimension.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    /// `op`
    pub id: String,
    /// `type of operation`
    pub sentence: String,
    /// Names or ranges.
    pub kind: Shape,
    /// Unit of a range: `ns` or `bytes`.
    pub unit: Option<String>,
    /// How a title states that an element was picked: `of type {}`.
    pub filter: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BreakdownFile {
    breakdown: Vec<Breakdown>,
}

/// All groups and dimensions.
#[derive(Debug, Clone)]
pub struct Schema {
    groups: Vec<Group>,
    breakdowns: Vec<Breakdown>,
}

/// Groups that are no protocol's, in the order that menus show: before those of protocols.
const SUMS: [&str; 2] =
    [include_str!("../../../schema/nfs.toml"), include_str!("../../../schema/rdma.toml")];
/// Behind them.
const OTHERS: [&str; 13] = [
    include_str!("../../../schema/all.toml"),
    include_str!("../../../schema/cpu.toml"),
    include_str!("../../../schema/nic.toml"),
    include_str!("../../../schema/ib.toml"),
    include_str!("../../../schema/tcp.toml"),
    include_str!("../../../schema/io.toml"),
    include_str!("../../../schema/capacity.toml"),
    include_str!("../../../schema/pool.toml"),
    include_str!("../../../schema/bridge.toml"),
    include_str!("../../../schema/mem.toml"),
    include_str!("../../../schema/process.toml"),
    include_str!("../../../schema/server.toml"),
    include_str!("../../../schema/analytics.toml"),
];

const BREAKDOWNS: &str = include_str!("../../../schema/breakdowns.toml");

/// The schema that this program was built with.
pub fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| match load() {
        Ok(schema) => schema,
        // Built in and held by a test: it cannot be wrong in a program that passed it.
        Err(error) => unreachable!("schema/: {error}"),
    })
}

fn load() -> Result<Schema, toml::de::Error> {
    let protocols = Protocol::ALL.into_iter().map(Protocol::schema);
    let all = SUMS.into_iter().chain(protocols).chain(OTHERS);
    let mut groups = all.map(toml::from_str).collect::<Result<Vec<Group>, _>>()?;
    for group in groups.iter_mut().filter(|group| group.sum_of_data) {
        let members = Protocol::ALL.into_iter().filter(|protocol| protocol.moves_data());
        group.members = members.map(|protocol| protocol.id().to_owned()).collect();
    }
    let breakdowns = toml::from_str::<BreakdownFile>(BREAKDOWNS)?.breakdown;
    Ok(Schema { groups, breakdowns })
}

impl Schema {
    /// All groups, in the order of menus.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group of this id.
    pub fn group(&self, group: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.group == group)
    }

    /// The statistic `group.metric`.
    pub fn statistic(&self, group: &str, metric: &str) -> Option<&Statistic> {
        self.group(group)?.statistics.iter().find(|s| s.id == metric)
    }

    /// The dimension of this id.
    pub fn breakdown(&self, id: &str) -> Option<&Breakdown> {
        self.breakdowns.iter().find(|b| b.id == id)
    }

    /// Whether `id` is the name of a range dimension.
    pub fn is_range(&self, id: &str) -> bool {
        self.breakdown(id).is_some_and(|b| b.kind == Shape::Range)
    }

    /// The statistic that `stat` names, when it, its filters and its breakdown exist.
    ///
    /// # Errors
    /// [`StatError::Unknown`] with the nearest names, [`StatError::Value`] for a bad range,
    /// [`StatError::Combined`] for more at once than a sample has.
    pub fn check(&self, stat: &StatId) -> Result<&Statistic, StatError> {
        let name = format!("{}.{}", stat.group, stat.metric);
        let Some(found) = self.statistic(&stat.group, &stat.metric) else {
            let all = self
                .groups
                .iter()
                .flat_map(|g| g.statistics.iter().map(move |s| format!("{}.{}", g.group, s.id)));
            let known = nearest(&name, all);
            return Err(StatError::Unknown { what: "statistic", name, known });
        };
        for dimension in stat.dimensions() {
            if !found.breakdowns.iter().any(|b| b == dimension) {
                let known = nearest(dimension, found.breakdowns.iter().cloned());
                let name = dimension.to_owned();
                return Err(StatError::Unknown { what: "breakdown", name, known });
            }
        }
        // A sample has two keys: what is asked for by more would look like silence.
        if found.source != Source::Operations && stat.dimensions().len() > 2 {
            return Err(StatError::Combined { name });
        }
        for (dimension, value) in stat.filters.iter().filter(|(d, _)| self.is_range(d)) {
            range(dimension, value)?;
        }
        for (dimension, value) in &stat.filters {
            self.known_value(stat, dimension, value)?;
        }
        Ok(found)
    }

    /// The protocols of the operations that a group counts: its own, or those of its members.
    pub fn protocols<'a>(&'a self, group: &'a str) -> impl Iterator<Item = Protocol> + 'a {
        let members = self.group(group).map(|g| g.members.as_slice()).unwrap_or_default();
        let counts = move |p: &Protocol| p.id() == group || members.iter().any(|m| m == p.id());
        Protocol::ALL.into_iter().filter(counts)
    }

    /// Refuses operations, status codes and versions that no protocol of the group has: a slip
    /// would look like silence.
    fn known_value(&self, stat: &StatId, dimension: &str, value: &str) -> Result<(), StatError> {
        let groups = || self.protocols(&stat.group).filter_map(|p| self.group(p.id()));
        let (what, all): (_, Vec<&str>) = match dimension {
            "op" => {
                ("operation", groups().flat_map(|g| &g.operations).map(String::as_str).collect())
            }
            "status" => {
                ("status", groups().flat_map(|g| &g.statuses).map(|s| s.1.as_str()).collect())
            }
            "protocol" => ("protocol", groups().map(|g| g.group.as_str()).collect()),
            "phase" => ("phase", Phase::ALL.map(Phase::id).to_vec()),
            _ => return Ok(()),
        };
        let is_known = |group: &Group| match dimension {
            "op" => group.op_number(value).is_some(),
            "status" => group.status_number(value).is_some(),
            "phase" => Phase::from_id(value).is_some(),
            _ => group.group == value,
        };
        // What is not of a protocol, such as disks, has other operations.
        if all.is_empty() || groups().any(is_known) {
            return Ok(());
        }
        // A number of one that has a name: filters go by names.
        let named = |group: &'_ Group| match dimension {
            "op" => plain(value).and_then(|n| group.op(n)).map(str::to_owned),
            "status" => plain(value).and_then(|n| group.status(n)).map(str::to_owned),
            _ => None,
        };
        let mut known: Vec<String> = groups().filter_map(named).collect();
        known.dedup();
        if known.is_empty() {
            known = nearest(value, all.into_iter().map(str::to_owned));
        }
        Err(StatError::Unknown { what, name: value.to_owned(), known })
    }

    /// The statistic as an English sentence. `label` gives the name to show for an element.
    pub fn title(&self, stat: &StatId, label: impl Fn(&str, &str) -> String) -> String {
        let mut title = match self.group(&stat.group) {
            Some(group) => group.name.clone(),
            None => stat.group.clone(),
        };
        if let Some(found) = self.statistic(&stat.group, &stat.metric) {
            title = format!("{title} {}", found.sentence);
            if found.kind == Kind::Counter {
                title += " per second";
            }
        }
        for (dimension, value) in &stat.filters {
            let Some(breakdown) = self.breakdown(dimension) else { continue };
            let shown = match breakdown.kind {
                Shape::Range => range_label(breakdown, value),
                Shape::Discrete => label(dimension, value),
            };
            title = format!("{title} {}", breakdown.filter.replace("{}", &shown));
        }
        if let Some(breakdown) = stat.breakdown.as_deref().and_then(|b| self.breakdown(b)) {
            title = format!("{title} broken down by {}", breakdown.sentence);
        }
        title
    }
}

/// `1000000-2000000` of latency → `1 ms to 2 ms`.
fn range_label(breakdown: &Breakdown, value: &str) -> String {
    let Ok((low, high)) = range(&breakdown.id, value) else { return value.to_owned() };
    let figure = |n: u64| match breakdown.unit.as_deref() {
        Some("ns") => units::time_ns(n as f64),
        _ => units::bytes(n as f64),
    };
    match (low, high) {
        (_, u64::MAX) => format!("{} and more", figure(low)),
        (0, _) => format!("less than {}", figure(high)),
        _ => format!("{} to {}", figure(low), figure(high)),
    }
}

/// The at most three names nearest to `wanted`, if they are near at all.
fn nearest(wanted: &str, all: impl Iterator<Item = String>) -> Vec<String> {
    let mut near: Vec<(usize, String)> = all.map(|name| (distance(wanted, &name), name)).collect();
    near.sort();
    let limit = wanted.len() / 4 + 1;
    near.into_iter().filter(|(d, _)| *d <= limit).take(3).map(|(_, name)| name).collect()
}

/// How many letters must change to make one name from the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
