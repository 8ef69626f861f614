//! Small numbers for clients and shares, so that a record needs no pointer, and the way back.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::RwLock;

use base::limits::CLIENT_NAMES_MAX;

/// The number of every client that came after the table was full.
pub const OTHER_CLIENT: u32 = 0;
/// The user number of a call without credentials.
pub const NO_USER: u32 = u32::MAX;
/// The share number of an operation on no share.
pub const NO_SHARE: u16 = 0;

struct Table<K> {
    numbers: HashMap<K, u32>,
    names: Vec<K>,
}

impl<K: Clone + Eq + Hash> Table<K> {
    fn new() -> RwLock<Self> {
        RwLock::new(Self { numbers: HashMap::new(), names: Vec::new() })
    }
}

/// Numbers from 1 for names, at most `max` of them; 0 for the rest.
fn intern<K: Clone + Eq + Hash>(table: &RwLock<Table<K>>, name: K, max: usize) -> u32 {
    let known = |t: &Table<K>| t.numbers.get(&name).copied();
    if let Some(number) = known(&table.read().unwrap_or_else(|e| e.into_inner())) {
        return number;
    }
    let mut table = table.write().unwrap_or_else(|e| e.into_inner());
    if let Some(number) = known(&table) {
        return number;
    }
    if table.names.len() >= max {
        return 0;
    }
    table.names.push(name.clone());
    let number = table.names.len() as u32;
    table.numbers.insert(name, number);
    number
}

fn name_of<K: Clone>(table: &RwLock<Table<K>>, number: u32) -> Option<K> {
    let index = (number as usize).checked_sub(1)?;
    table.read().unwrap_or_else(|e| e.into_inner()).names.get(index).cloned()
}

/// Clients by address: every address that ever connected keeps its number for the process's life.
pub struct Clients(RwLock<Table<IpAddr>>);

impl Default for Clients {
    fn default() -> Self {
        Self(Table::new())
    }
}

impl Clients {
    /// The number of the client at `address`; a v4 address mapped into v6 is the v4 address.
    /// [`OTHER_CLIENT`] when the table is full. Called at accept, not for each operation.
    pub fn intern(&self, address: IpAddr) -> u32 {
        intern(&self.0, address.to_canonical(), CLIENT_NAMES_MAX)
    }

    /// The address of client `number` as text, `other` for [`OTHER_CLIENT`] and unknown numbers.
    pub fn name_of(&self, number: u32) -> String {
        name_of(&self.0, number).map_or_else(|| "other".to_owned(), |a: IpAddr| a.to_string())
    }
}

/// Shares by name.
pub struct Shares(RwLock<Table<String>>);

impl Default for Shares {
    fn default() -> Self {
        Self(Table::new())
    }
}

impl Shares {
    /// The number of the share `name`, from 1; [`NO_SHARE`] when 65 534 names are known.
    pub fn intern(&self, name: &str) -> u16 {
        intern(&self.0, name.to_owned(), usize::from(u16::MAX) - 1) as u16
    }

    /// The name of share `number`; `None` for [`NO_SHARE`] and unknown numbers.
    pub fn name_of(&self, number: u16) -> Option<String> {
        name_of(&self.0, u32::from(number))
    }
}

#[cfg(test)]
mod tests;
