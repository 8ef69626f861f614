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

/// Longest label of a client that is kept, in bytes: a host name's first part (RFC 1035 §2.3.4).
const LABEL_MAX: usize = 63;

/// What the machines at an address call themselves.
enum Label {
    One(String),
    /// Behind one address there are several (NAT).
    Several(String),
}

/// Clients by address: every address that ever connected keeps its number for the process's life.
pub struct Clients {
    table: RwLock<Table<IpAddr>>,
    labels: RwLock<HashMap<u32, Label>>,
}

impl Default for Clients {
    fn default() -> Self {
        Self { table: Table::new(), labels: RwLock::default() }
    }
}

impl Clients {
    /// The number of the client at `address`; a v4 address mapped into v6 is the v4 address.
    /// [`OTHER_CLIENT`] when the table is full. Called at accept, not for each operation.
    pub fn intern(&self, address: IpAddr) -> u32 {
        intern(&self.table, address.to_canonical(), CLIENT_NAMES_MAX)
    }

    /// The address of client `number` as text, `other` for [`OTHER_CLIENT`] and unknown numbers.
    pub fn name_of(&self, number: u32) -> String {
        name_of(&self.table, number).map_or_else(|| "other".to_owned(), |a: IpAddr| a.to_string())
    }

    /// Records `machine` as the machine name sent from the address of client `number` (AUTH_SYS,
    /// RFC 5531 appendix A): a label for display, never an identity. Called once for each
    /// connection.
    pub fn label(&self, number: u32, machine: &[u8]) {
        let text: String = String::from_utf8_lossy(machine)
            .chars()
            .filter(|c| !c.is_control())
            .scan(0, |length, c| {
                *length += c.len_utf8();
                (*length <= LABEL_MAX).then_some(c)
            })
            .collect();
        // As many as there are numbers, which are bounded.
        if text.is_empty() || name_of(&self.table, number).is_none() {
            return;
        }
        let known = |labels: &HashMap<u32, Label>| match labels.get(&number) {
            None => false,
            Some(Label::One(name)) => *name == text,
            Some(Label::Several(_)) => true,
        };
        if known(&self.labels.read().unwrap_or_else(|e| e.into_inner())) {
            return;
        }
        let mut labels = self.labels.write().unwrap_or_else(|e| e.into_inner());
        let label = match labels.remove(&number) {
            None => Label::One(text),
            Some(Label::One(name)) if name == text => Label::One(name),
            Some(Label::One(name) | Label::Several(name)) => Label::Several(name),
        };
        labels.insert(number, label);
    }

    /// Address and machine name for display: `10.0.0.7 (anna)`, `10.0.0.7 (anna and others)`;
    /// `None` while no name was sent.
    pub fn label_of(&self, number: u32) -> Option<String> {
        let labels = self.labels.read().unwrap_or_else(|e| e.into_inner());
        let address = self.name_of(number);
        labels.get(&number).map(|label| match label {
            Label::One(name) => format!("{address} ({name})"),
            Label::Several(name) => format!("{address} ({name} and others)"),
        })
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

/// I_T nexuses of iSCSI by their names: an initiator at a target.
pub struct Nexuses(RwLock<Table<(String, String)>>);

impl Default for Nexuses {
    fn default() -> Self {
        Self(Table::new())
    }
}

impl Nexuses {
    /// The number of an initiator at a target; [`NO_USER`] when as many are known as may be. Called
    /// at login, not for each operation.
    pub fn intern(&self, initiator: &str, target: &str) -> u32 {
        let names = (initiator.to_owned(), target.to_owned());
        match intern(&self.0, names, CLIENT_NAMES_MAX) {
            0 => NO_USER,
            number => number,
        }
    }

    /// Initiator and target; `None` for unknown numbers.
    pub fn names_of(&self, number: u32) -> Option<(String, String)> {
        name_of(&self.0, number)
    }
}

#[cfg(test)]
mod tests;
