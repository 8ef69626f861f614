//! Persistent reservations of one unit (SPC-5 §5.14) as pure state: the registrations and their
//! keys, the reservation and its holder, and the effect of each action of PERSISTENT RESERVE OUT.
//!
//! An I_T nexus is an initiator port ([`Port`]: name and ISID) at our one target port. A changed
//! state takes effect when its owner exchanges it for the old one, which with APTPL is after it is
//! on disk ([`store`]): so every action gives a new state.

use core::net::IpAddr;
use std::collections::BTreeMap;

use base::limits::{
    LUN_REGISTRATIONS_ADDRESS_MAX, LUN_REGISTRATIONS_INITIATOR_MAX, LUN_REGISTRATIONS_MAX,
};
use thiserror::Error;

pub mod store;

/// An initiator port (RFC 7143 §3.4.3): a registration is of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Name of the initiator.
    pub name: String,
    /// ISID of the session.
    pub isid: [u8; 6],
}

/// The I_T nexus that requests an action.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Its initiator port.
    pub port: &'a Port,
    /// The address, or /64, of the initiator.
    pub address: IpAddr,
}

/// A registration: its key, and the address that made it, which counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registration {
    key: u64,
    /// Unknown of those that an earlier version stored.
    from: Option<IpAddr>,
}

/// Type of a reservation, by its number in SPC-5 §6.16.3.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Others may read.
    WriteExclusive = 1,
    /// Others may neither read nor write.
    ExclusiveAccess = 3,
    /// Registered initiators may write; others may read.
    WriteExclusiveRegistrants = 5,
    /// Registered initiators may read and write.
    ExclusiveAccessRegistrants = 6,
    /// As 5, and all registered initiators hold it.
    WriteExclusiveAll = 7,
    /// As 6, and all registered initiators hold it.
    ExclusiveAccessAll = 8,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::WriteExclusive,
        Self::ExclusiveAccess,
        Self::WriteExclusiveRegistrants,
        Self::ExclusiveAccessRegistrants,
        Self::WriteExclusiveAll,
        Self::ExclusiveAccessAll,
    ];

    /// The one with this number.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Whether all registered initiators hold it.
    pub const fn is_held_by_all(self) -> bool {
        matches!(self, Self::WriteExclusiveAll | Self::ExclusiveAccessAll)
    }

    /// Whether it admits registered initiators.
    const fn admits_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }

    /// Whether it admits reads of all initiators.
    const fn admits_readers(self) -> bool {
        matches!(
            self,
            Self::WriteExclusive | Self::WriteExclusiveRegistrants | Self::WriteExclusiveAll
        )
    }
}

/// What a command does to the medium, as reservations see it (SBC-4 §4.17, SPC-5 table 66).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Read,
    /// It changes the medium, or what others see of the unit.
    Write,
}

/// A reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Its type.
    pub kind: Kind,
    /// The initiator that made it. If all hold it, this one may no longer be registered.
    pub holder: Port,
}

/// A unit attention condition that an action establishes for other initiators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Notice {
    /// RESERVATIONS PREEMPTED.
    ReservationsPreempted,
    /// RESERVATIONS RELEASED.
    ReservationsReleased,
    /// REGISTRATIONS PREEMPTED.
    RegistrationsPreempted,
}

/// What an action has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The state after it.
    pub state: Reservations,
    /// The unit attention conditions to establish, by initiator.
    pub notices: Vec<(Port, Notice)>,
    /// Initiators that have lost their registration: their tasks are aborted if the action requires
    /// it.
    pub removed: Vec<Port>,
}

/// Why an action is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// RESERVATION CONFLICT.
    #[error("reservation conflict")]
    Conflict,
    /// INVALID RELEASE OF PERSISTENT RESERVATION.
    #[error("the reservation is of another type")]
    InvalidRelease,
    /// INVALID FIELD IN PARAMETER LIST.
    #[error("a parameter is not valid")]
    InvalidParameter,
    /// INVALID FIELD IN CDB.
    #[error("the action is not valid")]
    InvalidAction,
    /// INSUFFICIENT REGISTRATION RESOURCES.
    #[error("no registration is left for this initiator")]
    Full,
}

/// Outcome of an action.
pub type Outcome = Result<Effect, Refused>;

/// The state of one unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reservations {
    generation: u32,
    registrations: BTreeMap<Port, Registration>,
    holding: Option<Holding>,
    persists: bool,
}

impl Reservations {
    /// PRgeneration: how often registrations were changed.
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The registered initiators with their keys.
    pub fn registrations(&self) -> impl Iterator<Item = (&Port, u64)> {
        self.registrations.iter().map(|(port, one)| (port, one.key))
    }

    /// The reservation.
    pub const fn holding(&self) -> Option<&Holding> {
        self.holding.as_ref()
    }

    /// Whether the state outlives a loss of power (PTPL_A).
    pub const fn persists(&self) -> bool {
        self.persists
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.registrations.is_empty() && self.holding.is_none()
    }

    /// The key of a port.
    pub fn key_of(&self, port: &Port) -> Option<u64> {
        self.registrations.get(port).map(|one| one.key)
    }

    /// Whether this port holds the reservation.
    pub fn holds(&self, port: &Port) -> bool {
        self.holding.as_ref().is_some_and(|holding| match holding.kind.is_held_by_all() {
            true => self.registrations.contains_key(port),
            false => holding.holder == *port,
        })
    }

    /// Whether a command of this port may be carried out.
    pub fn permits(&self, port: &Port, access: Access) -> bool {
        let Some(holding) = &self.holding else { return true };
        let is_registered = self.registrations.contains_key(port);
        self.holds(port)
            || (holding.kind.admits_registrants() && is_registered)
            || (holding.kind.admits_readers() && access == Access::Read)
    }

    /// This notice for all other registered initiators.
    fn others(&self, port: &Port, notice: Notice) -> Vec<(Port, Notice)> {
        let others = self.registrations.keys().filter(|other| *other != port);
        others.map(|other| (other.clone(), notice)).collect()
    }

    fn effect(self, notices: Vec<(Port, Notice)>) -> Effect {
        Effect { state: self, notices, removed: Vec::new() }
    }

    fn check_key(&self, port: &Port, key: u64) -> Result<(), Refused> {
        if self.key_of(port) == Some(key) { Ok(()) } else { Err(Refused::Conflict) }
    }

    /// REGISTER, or REGISTER AND IGNORE EXISTING KEY if `key` is `None`: gives this port, and those
    /// of `others` with it that are not registered, the key `new`; 0 takes the registration away.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn register(
        &self,
        Origin { port, address }: Origin<'_>,
        key: Option<u64>,
        new: u64,
        others: &[Port],
        persist: bool,
    ) -> Outcome {
        let mut next = self.clone();
        match self.key_of(port) {
            Some(had) if key.is_some_and(|key| key != had) => return Err(Refused::Conflict),
            Some(_) if !others.is_empty() => return Err(Refused::InvalidParameter),
            None if key.is_some_and(|key| key != 0) => return Err(Refused::Conflict),
            None if new == 0 => return Ok(next.effect(Vec::new())),
            _ => {}
        }
        next.persists = persist;
        next.generation = next.generation.wrapping_add(1);
        if new == 0 {
            let notices = next.unregister(port);
            return Ok(next.effect(notices));
        }
        let registration = Registration { key: new, from: Some(address) };
        // A port that is registered retains its key.
        for other in others {
            next.registrations.entry(other.clone()).or_insert(registration);
        }
        next.registrations.insert(port.clone(), registration);
        next.check_parts(self, address)?;
        Ok(next.effect(Vec::new()))
    }

    /// Whether registrations that were added to those of `before` are within the limits: of all, of
    /// the address that added them, and of each initiator name at this address. Others could use
    /// the name; so those that it has at other addresses do not count.
    fn check_parts(&self, before: &Self, address: IpAddr) -> Result<(), Refused> {
        let all = &self.registrations;
        let mut added = all.keys().filter(|port| !before.registrations.contains_key(port));
        let is_of_address = |one: &&Registration| one.from == Some(address);
        let is_beyond = |added: &Port| {
            let of_name = all.iter().filter(|(port, one)| {
                port.name == added.name && one.from.is_none_or(|from| from == address)
            });
            all.len() > LUN_REGISTRATIONS_MAX
                || all.values().filter(is_of_address).count() > LUN_REGISTRATIONS_ADDRESS_MAX
                || of_name.count() > LUN_REGISTRATIONS_INITIATOR_MAX
        };
        if added.any(is_beyond) { Err(Refused::Full) } else { Ok(()) }
    }

    /// Removes a registration, and the reservation with it if no other initiator holds it.
    fn unregister(&mut self, port: &Port) -> Vec<(Port, Notice)> {
        let held = self.holds(port);
        self.registrations.remove(port);
        let Some(holding) = self.holding.as_ref().filter(|_| held) else { return Vec::new() };
        if holding.kind.is_held_by_all() && !self.registrations.is_empty() {
            return Vec::new();
        }
        let tells = holding.kind.admits_registrants();
        self.holding = None;
        if tells { self.others(port, Notice::ReservationsReleased) } else { Vec::new() }
    }

    /// RESERVE.
    ///
    /// # Errors
    /// [`Refused::Conflict`].
    pub fn reserve(&self, port: &Port, key: u64, kind: Kind) -> Outcome {
        self.check_key(port, key)?;
        let mut next = self.clone();
        match &self.holding {
            Some(holding) if self.holds(port) && holding.kind == kind => {}
            Some(_) => return Err(Refused::Conflict),
            None => next.holding = Some(Holding { kind, holder: port.clone() }),
        }
        Ok(next.effect(Vec::new()))
    }

    /// RELEASE.
    ///
    /// # Errors
    /// [`Refused::Conflict`], [`Refused::InvalidRelease`].
    pub fn release(&self, port: &Port, key: u64, kind: Kind) -> Outcome {
        self.check_key(port, key)?;
        let mut next = self.clone();
        let Some(holding) = self.holding.as_ref().filter(|_| self.holds(port)) else {
            return Ok(next.effect(Vec::new()));
        };
        if holding.kind != kind {
            return Err(Refused::InvalidRelease);
        }
        next.holding = None;
        let notices = match kind.admits_registrants() {
            true => self.others(port, Notice::ReservationsReleased),
            false => Vec::new(),
        };
        Ok(next.effect(notices))
    }

    /// CLEAR.
    ///
    /// # Errors
    /// [`Refused::Conflict`].
    pub fn clear(&self, port: &Port, key: u64) -> Outcome {
        self.check_key(port, key)?;
        let notices = self.others(port, Notice::ReservationsPreempted);
        let (generation, persists) = (self.generation.wrapping_add(1), self.persists);
        Ok(Self { generation, persists, ..Self::default() }.effect(notices))
    }

    /// PREEMPT, and what PREEMPT AND ABORT needs: removes the registrations with the key `victim`,
    /// and takes over the reservation if it is theirs.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn preempt(&self, port: &Port, key: u64, victim: u64, kind: Kind) -> Outcome {
        self.check_key(port, key)?;
        let by_all = self.holding.as_ref().is_some_and(|h| h.kind.is_held_by_all());
        let takes_over = match &self.holding {
            None => false,
            Some(_) if by_all => victim == 0,
            Some(holding) => self.key_of(&holding.holder) == Some(victim),
        };
        if victim == 0 && !takes_over {
            return Err(Refused::InvalidParameter);
        }
        // The initiator that takes over stays registered, even if it names its own key.
        let stays = |other: &Port, its: u64| {
            let is_meant = if by_all && victim == 0 { true } else { its == victim };
            !is_meant || (takes_over && other == port)
        };
        let mut next = self.clone();
        next.registrations.retain(|other, its| stays(other, its.key));
        let mut removed: Vec<Port> = Vec::new();
        for (other, its) in &self.registrations {
            if !stays(other, its.key) {
                removed.push(other.clone());
            }
        }
        if removed.is_empty() && !takes_over {
            return Err(Refused::Conflict);
        }
        next.generation = next.generation.wrapping_add(1);
        let notified = removed.iter().filter(|other| *other != port);
        let mut notices: Vec<_> =
            notified.map(|other| (other.clone(), Notice::RegistrationsPreempted)).collect();
        if takes_over {
            let changed = self.holding.as_ref().is_some_and(|holding| holding.kind != kind);
            next.holding = Some(Holding { kind, holder: port.clone() });
            if changed {
                notices.extend(next.others(port, Notice::ReservationsReleased));
            }
        } else if by_all && next.registrations.is_empty() {
            next.holding = None;
        }
        removed.retain(|other| other != port);
        Ok(Effect { state: next, notices, removed })
    }

    /// REGISTER AND MOVE: registers `to` with the key `new` and gives it the reservation.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn transfer(
        &self,
        Origin { port, address }: Origin<'_>,
        (key, new): (u64, u64),
        to: &Port,
        unregister: bool,
        persist: bool,
    ) -> Outcome {
        self.check_key(port, key)?;
        let Some(holding) = self.holding.as_ref().filter(|_| self.holds(port)) else {
            return Err(Refused::Conflict);
        };
        if holding.kind.is_held_by_all() {
            return Err(Refused::Conflict);
        }
        if new == 0 || to == port {
            return Err(Refused::InvalidParameter);
        }
        let mut next = self.clone();
        next.persists = persist;
        next.generation = next.generation.wrapping_add(1);
        let from = self.registrations.get(to).map_or(Some(address), |one| one.from);
        next.registrations.insert(to.clone(), Registration { key: new, from });
        next.holding = Some(Holding { kind: holding.kind, holder: to.clone() });
        if unregister {
            next.registrations.remove(port);
        }
        next.check_parts(self, address)?;
        Ok(next.effect(Vec::new()))
    }
}

#[cfg(test)]
mod tests;
