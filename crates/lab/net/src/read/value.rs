//! Numbers, sizes, times and variables, as uperf writes them.

use super::{Loader, Read, refuse};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Where the values of `$name` come from.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// Values by name, which come first.
    pub set: BTreeMap<String, String>,
    /// Whether the environment is asked for others.
    pub environment: bool,
    /// Hosts without a value are addresses of this machine: 127.0.0.11 and up.
    pub local_hosts: bool,
}

impl Variables {
    /// From words NAME=VALUE; the name may begin with `$`.
    ///
    /// # Errors
    /// A word is something else.
    pub fn of(settings: &[String]) -> Result<Self, String> {
        let mut set = BTreeMap::new();
        for setting in settings {
            let (name, value) = setting.split_once('=').ok_or_else(|| {
                format!("--set {setting}: use NAME=VALUE for the variable $NAME of a profile")
            })?;
            let name = name.strip_prefix('$').unwrap_or(name);
            set.insert(name.to_owned(), value.to_owned());
        }
        Ok(Self { set, ..Self::default() })
    }

    fn get(&self, name: &str) -> Option<String> {
        let from = |name: &str| match self.set.get(name) {
            Some(value) => Some(value.clone()),
            None if self.environment => std::env::var(name).ok(),
            None => None,
        };
        // uperf reads all of a profile in lower case.
        from(name).or_else(|| from(&name.to_lowercase())).filter(|value| !value.is_empty())
    }
}

/// Addresses of hosts that have no value.
#[derive(Debug, Default)]
pub struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    /// The address of a name, the same each time.
    fn address(&mut self, name: &str) -> Ipv4Addr {
        let known = self.names.iter().position(|known| known == name);
        let n = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        let first = u32::from(Ipv4Addr::new(127, 0, 0, 11));
        Ipv4Addr::from(first + (n as u32).min(u32::from(u16::MAX)))
    }
}

impl Loader<'_> {
    /// A text in which a variable is replaced.
    pub(super) fn text(&self, value: &str, line: u32) -> Read<String> {
        let Some(name) = value.strip_prefix('$') else { return Ok(value.to_owned()) };
        if name.is_empty() {
            return refuse(line, "'$' without a name");
        }
        match self.variables.get(name) {
            Some(value) => Ok(value),
            None => refuse(
                line,
                format!(
                    "variable ${name} has no value: add --set {name}=VALUE, or set it in the \
                         environment"
                ),
            ),
        }
    }

    /// The same of a host.
    pub(super) fn host(&mut self, value: &str, line: u32) -> Read<String> {
        let variable = value.strip_prefix('$').filter(|name| !name.is_empty());
        match variable {
            Some(name) if self.variables.local_hosts && self.variables.get(name).is_none() => {
                let address = self.hosts.address(name);
                self.note(format!("${name} has no value: {address} of this machine"));
                Ok(address.to_string())
            }
            _ => self.text(value, line),
        }
    }

    /// A whole number with B, K, M or G in powers of 1,024.
    pub(super) fn number(&self, value: &str, line: u32) -> Read<u64> {
        let text = self.text(value.trim(), line)?;
        match number(&text) {
            Some(number) => Ok(number),
            None => refuse(line, format!("{text:?} is not a number, as 8192, 8k or 1.5m")),
        }
    }

    /// A time: seconds, or with s, ms, us, ns.
    pub(super) fn nanoseconds(&self, value: &str, line: u32) -> Read<u64> {
        let text = self.text(value.trim(), line)?;
        match nanoseconds(&text) {
            Some(ns) => Ok(ns),
            None => refuse(line, format!("{text:?} is not a time, as 30s, 10ms or 5us")),
        }
    }
}

/// Digits and a point, and what follows them.
fn parts(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    Some((digits.parse().ok()?, suffix))
}

fn scaled(number: f64, by: f64) -> Option<u64> {
    let product = number * by;
    // Beyond 2^53 a float is no exact number any more.
    (product.is_finite() && product < 9.0e15).then_some(product as u64)
}

fn number(text: &str) -> Option<u64> {
    let (number, suffix) = parts(text)?;
    let shift = match suffix.to_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        _ => return None,
    };
    scaled(number, f64::from(1_u32 << shift))
}

fn nanoseconds(text: &str) -> Option<u64> {
    let (number, suffix) = parts(text)?;
    let by = match suffix.to_lowercase().as_str() {
        "" | "s" | "sec" => 1e9,
        "m" | "ms" => 1e6,
        "u" | "us" => 1e3,
        "n" | "ns" => 1.0,
        _ => return None,
    };
    scaled(number, by)
}
