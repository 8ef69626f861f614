//! A map with a limit: the entry that came first leaves for one that comes.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// The map.
pub struct FifoMap<K, V> {
    entries: HashMap<K, (u64, V)>,
    /// In the order in which they came. One that leaves early leaves this as well, so that a key
    /// which comes again is young again, and nothing grows with those that come and go.
    order: BTreeMap<u64, K>,
    next: u64,
    most: usize,
}

impl<K: Copy + Eq + Hash, V> FifoMap<K, V> {
    /// An empty one with room for `most` entries.
    pub fn new(most: usize) -> Self {
        Self { entries: HashMap::new(), order: BTreeMap::new(), next: 0, most }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// What is known of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Inserts an entry, or a new value of an existing one, which keeps its age. Returns the key
    /// that was evicted.
    pub fn insert(&mut self, key: K, value: V) -> Option<K> {
        if let Some((_, known)) = self.entries.get_mut(&key) {
            *known = value;
            return None;
        }
        self.order.insert(self.next, key);
        self.entries.insert(key, (self.next, value));
        self.next += 1;
        if self.entries.len() <= self.most {
            return None;
        }
        let (_, oldest) = self.order.pop_first()?;
        self.entries.remove(&oldest);
        Some(oldest)
    }

    /// Takes an entry out; whether it was there.
    pub fn remove(&mut self, key: &K) -> bool {
        let Some((age, _)) = self.entries.remove(key) else { return false };
        self.order.remove(&age);
        true
    }
}
