//! A map cut into parts with a lock each, so that clients do not meet at one.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

use base::limits::NFS4_STATE_SHARDS;

type Part<K, V> = RwLock<HashMap<K, Arc<V>>>;

/// A map from `K` to shared values.
pub struct Shards<K, V> {
    parts: Box<[Part<K, V>]>,
    hasher: RandomState,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        let parts = (0..NFS4_STATE_SHARDS).map(|_| RwLock::default()).collect();
        Self { parts, hasher: RandomState::new() }
    }
}

impl<K: Hash + Eq + Clone, V> Shards<K, V> {
    fn part(&self, key: &K) -> &Part<K, V> {
        &self.parts[self.hasher.hash_one(key) as usize % self.parts.len()]
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.part(key).read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Sets the value of a key.
    pub fn insert(&self, key: K, value: Arc<V>) {
        self.part(&key).write().unwrap_or_else(PoisonError::into_inner).insert(key, value);
    }

    /// Takes a key out.
    pub fn remove(&self, key: &K) -> Option<Arc<V>> {
        self.part(key).write().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.parts.iter().map(|p| p.read().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }

    /// All values.
    pub fn all(&self) -> Vec<Arc<V>> {
        let parts = self.parts.iter();
        let all = parts.map(|p| p.read().unwrap_or_else(PoisonError::into_inner));
        all.flat_map(|p| p.values().cloned().collect::<Vec<_>>()).collect()
    }
}
