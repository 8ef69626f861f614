//! A list of which most have one entry: that one takes no memory of its own.

/// The list.
pub(crate) struct Few<T> {
    first: Option<T>,
    others: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, others: Vec::new() }
    }
}

impl<T> Few<T> {
    /// A list of one.
    pub const fn one(one: T) -> Self {
        Self { first: Some(one), others: Vec::new() }
    }

    /// Appends an entry.
    pub fn push(&mut self, one: T) {
        match self.first {
            None => self.first = Some(one),
            Some(_) => self.others.push(one),
        }
    }

    /// Entry `n`.
    pub fn get(&self, n: usize) -> Option<&T> {
        n.checked_sub(1).map_or(self.first.as_ref(), |n| self.others.get(n))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// Them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.others)
    }

    /// Them, in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.others)
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}
