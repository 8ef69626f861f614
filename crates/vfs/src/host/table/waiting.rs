//! The rows of a table that are to be written, or taken out, with the next transaction.
//!
//! It cannot grow while the disk is full, however many files come and go meanwhile: what never
//! was on disk and is gone needs no row, so there are at most as many as the table may hold, and
//! as many as the file holds.

use std::collections::HashMap;
use std::hash::Hash;

/// What is to become of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// Written.
    Put {
        /// As bytes of the file.
        record: Vec<u8>,
        /// There is no row of this key in the file.
        new: bool,
    },
    /// Taken out.
    Gone,
}

/// Rows by key.
#[derive(Debug)]
pub struct Waiting<K>(HashMap<K, Row>);

impl<K> Default for Waiting<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Waiting<K> {
    /// Whether there is nothing to be done.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Option<&[u8]>)> {
        self.0.iter().map(|(key, row)| match row {
            Row::Put { record, .. } => (key, Some(record.as_slice())),
            Row::Gone => (key, None),
        })
    }

    /// A row is to be written; `new` if the table did not have its key until now.
    pub fn put(&mut self, key: K, record: Vec<u8>, new: bool) {
        let new = match self.0.get(&key) {
            Some(Row::Put { new, .. }) => *new,
            Some(Row::Gone) => false,
            None => new,
        };
        self.0.insert(key, Row::Put { record, new });
    }

    /// A row is to be taken out.
    pub fn remove(&mut self, key: K) {
        if matches!(self.0.get(&key), Some(Row::Put { new: true, .. })) {
            self.0.remove(&key);
        } else {
            self.0.insert(key, Row::Gone);
        }
    }

    /// These could not be written: they come before those that came meanwhile.
    pub fn put_back(&mut self, earlier: Self) {
        for (key, row) in std::mem::replace(self, earlier).0 {
            match row {
                Row::Put { record, new } => self.put(key, record, new),
                Row::Gone => self.remove(key),
            }
        }
    }
}
