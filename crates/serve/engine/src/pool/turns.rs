//! What is queued of the connections of a client: in order within a connection, in turn among them.

use std::collections::{HashMap, VecDeque};

/// The queues of the connections.
pub(super) struct InTurn<T> {
    /// Those in which there is something.
    queues: HashMap<u64, VecDeque<T>>,
    /// The same connections, in the order of their turns.
    turns: VecDeque<u64>,
}

impl<T> Default for InTurn<T> {
    fn default() -> Self {
        Self { queues: HashMap::new(), turns: VecDeque::new() }
    }
}

impl<T> InTurn<T> {
    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// How many are queued.
    pub fn len(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }

    /// Queues one of a connection.
    pub fn push(&mut self, connection: u64, one: T) {
        let queue = self.queues.entry(connection).or_default();
        if queue.is_empty() {
            self.turns.push_back(connection);
        }
        queue.push_back(one);
    }

    /// Takes the first of the connection that has the turn.
    pub fn pop(&mut self) -> Option<T> {
        let connection = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&connection)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&connection);
        } else {
            self.turns.push_back(connection);
        }
        first
    }

    /// Those of a connection.
    pub fn of(&mut self, connection: u64) -> impl Iterator<Item = &mut T> {
        self.queues.get_mut(&connection).into_iter().flatten()
    }

    /// Removes those of a connection that are not to be kept.
    pub fn retain(&mut self, connection: u64, keep: impl FnMut(&T) -> bool) {
        let Some(queue) = self.queues.get_mut(&connection) else { return };
        queue.retain(keep);
        if queue.is_empty() {
            self.queues.remove(&connection);
            self.turns.retain(|one| *one != connection);
        }
    }

    /// All of them.
    pub fn into_all(self) -> impl Iterator<Item = T> {
        self.queues.into_values().flatten()
    }
}
