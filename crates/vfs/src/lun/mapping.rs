//! Which initiator sees which unit under which number.

use std::collections::BTreeSet;

use base::limits::LUNS_MAX;
use thiserror::Error;

/// The initiators that may use a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Initiators {
    /// None: the default.
    #[default]
    Nobody,
    /// Every initiator that has logged in to the target.
    Everybody,
    /// Those with these names.
    Named(BTreeSet<String>),
    /// Every initiator that has logged in to the target, except those with these names.
    Others(BTreeSet<String>),
}

impl Initiators {
    /// Whether this one may.
    pub fn admits(&self, initiator: &str) -> bool {
        match self {
            Self::Nobody => false,
            Self::Everybody => true,
            Self::Named(names) => names.contains(initiator),
            Self::Others(names) => !names.contains(initiator),
        }
    }
}

/// A unit in its place.
#[derive(Debug, Clone)]
pub struct Mapped<T> {
    /// Its number.
    pub number: u16,
    /// The initiators that may use it.
    pub initiators: Initiators,
    /// The unit.
    pub unit: T,
}

/// Why a unit cannot be added: the administrator's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MappingError {
    /// Another unit has this number.
    #[error("number {0} is taken")]
    NumberInUse(u16),
    /// There are as many as there may be.
    #[error("no more than {LUNS_MAX} units")]
    Full,
}

/// Units by their numbers. An initiator cannot distinguish two units with the same number, so that
/// a number belongs to one unit for all initiators.
#[derive(Debug, Clone)]
pub struct Mapping<T> {
    units: Vec<Mapped<T>>,
}

impl<T> Default for Mapping<T> {
    fn default() -> Self {
        Self { units: Vec::new() }
    }
}

impl<T> Mapping<T> {
    /// Adds a unit: under this number, or the lowest that is free.
    ///
    /// # Errors
    /// [`MappingError`].
    pub fn add(
        &mut self,
        number: Option<u16>,
        initiators: Initiators,
        unit: T,
    ) -> Result<u16, MappingError> {
        if self.units.len() >= LUNS_MAX {
            return Err(MappingError::Full);
        }
        let free = || (0..).find(|number| self.get(*number).is_none()).unwrap_or_default();
        let number = number.unwrap_or_else(free);
        let at = match self.units.binary_search_by_key(&number, |mapped| mapped.number) {
            Ok(_) => return Err(MappingError::NumberInUse(number)),
            Err(at) => at,
        };
        self.units.insert(at, Mapped { number, initiators, unit });
        Ok(number)
    }

    /// Takes the unit with this number away.
    pub fn remove(&mut self, number: u16) -> Option<Mapped<T>> {
        let at = self.units.binary_search_by_key(&number, |mapped| mapped.number).ok()?;
        Some(self.units.remove(at))
    }

    /// The unit with this number.
    pub fn get(&self, number: u16) -> Option<&Mapped<T>> {
        let at = self.units.binary_search_by_key(&number, |mapped| mapped.number).ok()?;
        self.units.get(at)
    }

    /// The unit with this number, if this initiator may use it.
    pub fn find(&self, initiator: &str, number: u16) -> Option<&T> {
        let mapped = self.get(number)?;
        mapped.initiators.admits(initiator).then_some(&mapped.unit)
    }

    /// What an initiator sees, by number.
    pub fn seen_by<'a>(&'a self, initiator: &'a str) -> impl Iterator<Item = (u16, &'a T)> {
        let admits = |mapped: &&Mapped<T>| mapped.initiators.admits(initiator);
        self.units.iter().filter(admits).map(|mapped| (mapped.number, &mapped.unit))
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Mapped<T>> {
        self.units.iter()
    }
}

#[cfg(test)]
mod tests;
