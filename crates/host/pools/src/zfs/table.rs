//! The output of `-H`: a line for each element, with tabulators between its values.

use std::collections::BTreeMap;

use super::value::size;

/// Most lines that are read.
pub const LINES_MAX: usize = 65_536;

/// Lines of at least this number of values.
pub fn lines<const N: usize>(text: &str) -> Vec<[&str; N]> {
    let of = text.lines().filter_map(|line| {
        let mut values = line.split('\t');
        let mut row = [""; N];
        for slot in &mut row {
            *slot = values.next()?;
        }
        Some(row)
    });
    of.take(LINES_MAX).collect()
}

/// Properties of datasets and snapshots: name, property, value.
pub type Properties = BTreeMap<String, BTreeMap<String, String>>;

/// The output of `zfs get -H -p -o name,property,value`.
pub fn properties(text: &str) -> Properties {
    let mut all = Properties::new();
    for [name, property, value] in lines::<3>(text) {
        // `-` is the value of a property that is not set.
        if value != "-" {
            all.entry(name.to_owned()).or_default().insert(property.to_owned(), value.to_owned());
        }
    }
    all
}

/// A number of bytes among properties; `none` is none.
pub fn bytes(of: &BTreeMap<String, String>, name: &str) -> Option<u64> {
    of.get(name).and_then(|text| size(text))
}

#[cfg(test)]
mod tests;
