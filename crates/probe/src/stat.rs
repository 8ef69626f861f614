//! The grammar of statistic ids: `group.metric[filter=value]…[breakdown]`.
//!
//! In a value `]`, `\` and `=` are escaped by `\`. A value of a range breakdown is `LOW-HIGH`, the
//! upper end not included. The id is what the API, the command line, a URL and a title all share.

use base::text::decimal;
use std::fmt;
use std::str::FromStr;

/// Longest id that is taken from a peer: a path of 4 KiB, escaped, and some filters.
pub const ID_MAX: usize = 16 << 10;
/// Most filters in an id: more than there are dimensions.
pub const FILTERS_MAX: usize = 16;

/// Why a text is not a statistic id, or not a valid one. Always the caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatError {
    /// The text does not follow the grammar.
    #[error("`{id}` is not a statistic id: {why}")]
    Syntax {
        /// The text.
        id: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No such statistic, breakdown or filter.
    #[error("unknown {what} `{name}`{}", near(.known))]
    Unknown {
        /// `statistic`, `breakdown`, `operation` or `status`.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// Existing ones instead, nearest first.
        known: Vec<String>,
    },
    /// More dimensions at once than are read.
    #[error("{name} supports at most two breakdowns, including filters")]
    Combined {
        /// `bridge.packets`
        name: String,
    },
    /// A value that the dimension cannot have.
    #[error("`{value}` is not a value of {dimension}: {why}")]
    Value {
        /// The dimension.
        dimension: String,
        /// The value.
        value: String,
        /// What it should be.
        why: &'static str,
    },
}

fn near(known: &[String]) -> String {
    match known {
        [] => String::new(),
        _ => format!("; did you mean {}?", known.join(" or ")),
    }
}

/// A parsed statistic id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatId {
    /// `nfs3`
    pub group: String,
    /// `ops`
    pub metric: String,
    /// What was drilled into, in order: (`op`, `read`).
    pub filters: Vec<(String, String)>,
    /// What it is broken down by; `None` is the raw statistic.
    pub breakdown: Option<String>,
}

impl StatId {
    /// `group.metric` without filters and breakdown.
    pub fn raw(group: &str, metric: &str) -> Self {
        let (group, metric) = (group.to_owned(), metric.to_owned());
        Self { group, metric, filters: Vec::new(), breakdown: None }
    }

    /// The dimensions that occur in it, each once.
    pub fn dimensions(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.filters.iter().map(|(d, _)| d.as_str()).collect();
        all.extend(self.breakdown.as_deref());
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The two ends of `LOW-HIGH`, the upper one not included; either may be missing.
pub fn range(dimension: &str, value: &str) -> Result<(u64, u64), StatError> {
    let wrong = |why| StatError::Value { dimension: dimension.into(), value: value.into(), why };
    let (low, high) = value.split_once('-').ok_or(wrong("expected LOW-HIGH"))?;
    let end = |text: &str, open: u64| match text {
        "" => Ok(open),
        _ => decimal(text).ok_or(wrong("expected two whole numbers, LOW-HIGH")),
    };
    let (low, high) = (end(low, 0)?, end(high, u64::MAX)?);
    if low < high { Ok((low, high)) } else { Err(wrong("LOW must be below HIGH")) }
}

impl fmt::Display for StatId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.group, self.metric)?;
        for (dimension, value) in &self.filters {
            write!(f, "[{dimension}=")?;
            for c in value.chars() {
                if matches!(c, ']' | '\\' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
            f.write_str("]")?;
        }
        match &self.breakdown {
            Some(breakdown) => write!(f, "[{breakdown}]"),
            None => Ok(()),
        }
    }
}

impl FromStr for StatId {
    type Err = StatError;

    fn from_str(id: &str) -> Result<Self, StatError> {
        // What is echoed of a hostile text is bounded.
        let wrong = |why| StatError::Syntax { id: id.chars().take(200).collect(), why };
        if id.len() > ID_MAX {
            return Err(wrong("it is too long"));
        }
        let (name, mut rest) = id.split_at(id.find('[').unwrap_or(id.len()));
        let (group, metric) = name.split_once('.').ok_or(wrong("expected group.metric"))?;
        if !is_word(group) || !is_word(metric) {
            return Err(wrong("names have letters, digits and _ only"));
        }
        let mut stat = Self::raw(group, metric);
        while !rest.is_empty() {
            if stat.breakdown.is_some() {
                return Err(wrong("the breakdown must come last"));
            }
            if stat.filters.len() == FILTERS_MAX {
                return Err(wrong("it has too many filters"));
            }
            let inner = rest.strip_prefix('[').ok_or(wrong("expected [ after ]"))?;
            let (dimension, value, after) = bracket(inner).ok_or(wrong("a ] is missing"))?;
            if !is_word(&dimension) {
                return Err(wrong("dimensions have letters, digits and _ only"));
            }
            match value {
                Some(value) => stat.filters.push((dimension, value)),
                None => stat.breakdown = Some(dimension),
            }
            rest = after;
        }
        Ok(stat)
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What stands before the closing bracket, split at the first `=`, and what comes after.
fn bracket(text: &str) -> Option<(String, Option<String>, &str)> {
    let (mut name, mut value) = (String::new(), None::<String>);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let c = match c {
            ']' => return Some((name, value, &text[at + 1..])),
            '=' if value.is_none() => {
                value = Some(String::new());
                continue;
            }
            '\\' => chars.next()?.1,
            c => c,
        };
        value.as_mut().unwrap_or(&mut name).push(c);
    }
    None
}

#[cfg(test)]
mod tests;
