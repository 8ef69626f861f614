//! Targets: their names, how initiators sign in, and the units behind them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use vfs::lun::mapping::{Initiators, Mapping, MappingError};
use vfs::lun::reservations::Port;
use wire::iscsi::chap::CHALLENGE;
use wire::iscsi::login_phase::{Access, Authentication, Credentials};
use wire::scsi::Asc;

use super::unit::{Nexus, Unit};

/// The one portal group.
pub const PORTAL_GROUP: u16 = 1;

/// How initiators sign in at a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignIn {
    /// What an initiator must know that has no secret of its own; without it such a one is let in
    /// by its name alone.
    pub common: Option<Credentials>,
    /// What initiators must know, by their names.
    pub initiators: HashMap<String, Credentials>,
    /// What the target proves itself with, if it is asked to.
    pub own: Option<Credentials>,
}

impl SignIn {
    /// How this initiator signs in; `random` is for the challenge.
    pub fn access(&self, initiator: &str, random: [u8; 1 + CHALLENGE]) -> Access {
        let theirs = self.initiators.get(initiator).or(self.common.as_ref());
        let authentication = match theirs {
            None => Authentication::None,
            Some(theirs) => {
                Authentication::Chap { initiator: theirs.clone(), target: self.own.clone(), random }
            }
        };
        Access { authentication, portal_group: PORTAL_GROUP }
    }
}

/// A target.
pub struct Target {
    /// Its iSCSI name.
    pub name: String,
    sign_in: RwLock<Arc<SignIn>>,
    units: RwLock<Arc<Mapping<Arc<Unit>>>>,
    /// Held while the units change.
    changing: Mutex<()>,
}

impl Target {
    /// A target without units.
    pub fn new(name: &str, sign_in: SignIn) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            sign_in: RwLock::new(Arc::new(sign_in)),
            units: RwLock::default(),
            changing: Mutex::default(),
        })
    }

    /// How initiators sign in.
    pub fn sign_in(&self) -> Arc<SignIn> {
        Arc::clone(&self.sign_in.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets it, for logins from now on.
    pub fn set_sign_in(&self, sign_in: SignIn) {
        *self.sign_in.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sign_in);
    }

    /// Its units as they are now.
    pub fn units(&self) -> Arc<Mapping<Arc<Unit>>> {
        Arc::clone(&self.units.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Mapping<Arc<Unit>>) -> T) -> T {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut units = Mapping::clone(&self.units());
        let value = change(&mut units);
        *self.units.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(units);
        for mapped in self.units().iter() {
            mapped.unit.establish_all(Asc::REPORTED_LUNS_CHANGED, None);
        }
        value
    }

    /// Adds a unit, under this number or the lowest that is free; initiators that have a session
    /// learn that there is something new.
    ///
    /// # Errors
    /// [`MappingError`].
    pub fn add(
        &self,
        number: Option<u16>,
        initiators: Initiators,
        unit: Arc<Unit>,
    ) -> Result<u16, MappingError> {
        self.change(|units| units.add(number, initiators, unit))
    }

    /// Takes a unit away. Sessions that use it find nothing under its number from then on.
    pub fn remove(&self, number: u16) -> Option<Arc<Unit>> {
        self.change(|units| units.remove(number)).map(|mapped| mapped.unit)
    }

    /// Has it serve these units in place of all others. Initiators with a session get REPORTED LUNS
    /// DATA HAS CHANGED if anything is different for any of them.
    pub fn set_units(&self, new: Mapping<Arc<Unit>>) {
        let before = self.units();
        let is_same = before.iter().count() == new.iter().count()
            && before.iter().zip(new.iter()).all(|(a, b)| {
                a.number == b.number
                    && a.initiators == b.initiators
                    && Arc::ptr_eq(&a.unit, &b.unit)
            });
        if !is_same {
            self.change(|units| *units = new);
        }
    }

    /// Whether an initiator has anything to find here.
    pub fn is_seen_by(&self, initiator: &str) -> bool {
        self.units().seen_by(initiator).next().is_some()
    }
}

/// All targets.
#[derive(Default)]
pub struct Targets {
    list: RwLock<Vec<Arc<Target>>>,
}

impl Targets {
    /// Adds one; false if there is one of this name.
    pub fn add(&self, target: Arc<Target>) -> bool {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = list.iter().all(|other| other.name != target.name);
        if is_new {
            list.push(target);
        }
        is_new
    }

    /// Takes one away.
    pub fn remove(&self, name: &str) {
        self.list.write().unwrap_or_else(PoisonError::into_inner).retain(|one| one.name != name);
    }

    /// The one of this name.
    pub fn find(&self, name: &str) -> Option<Arc<Target>> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.iter().find(|target| target.name == name).cloned()
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<Target>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Units that a session uses, each with what it has to do with it. A unit is joined when its first
/// command comes, and left with the session.
pub struct Joined {
    target: Arc<Target>,
    port: Port,
    from: IpAddr,
    units: HashMap<u16, (Arc<Unit>, Arc<Nexus>)>,
}

impl Joined {
    /// None yet, of an initiator port with a session from this address.
    pub fn new(target: Arc<Target>, port: Port, from: IpAddr) -> Self {
        Self { target, port, from, units: HashMap::new() }
    }

    /// The initiator port.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The target.
    pub fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// The unit with this number, if the initiator may use it now.
    pub fn find(&mut self, number: u16) -> Option<(Arc<Unit>, Arc<Nexus>)> {
        let units = self.target.units();
        let found = units.find(&self.port.name, number);
        match self.units.get(&number) {
            Some((unit, nexus)) if found.is_some_and(|now| Arc::ptr_eq(now, unit)) => {
                return Some((Arc::clone(unit), Arc::clone(nexus)));
            }
            Some(_) => {
                // Another unit, or none, has the number now.
                if let Some((unit, nexus)) = self.units.remove(&number) {
                    unit.leave(&nexus);
                }
            }
            None => {}
        }
        let unit = Arc::clone(found?);
        let nexus = unit.join(self.port.clone(), self.from);
        self.units.insert(number, (Arc::clone(&unit), Arc::clone(&nexus)));
        Some((unit, nexus))
    }

    /// The unit with this number, if it was joined.
    pub fn joined(&self, number: u16) -> Option<Arc<Unit>> {
        self.units.get(&number).map(|(unit, _)| Arc::clone(unit))
    }

    /// All units that the initiator sees, joined or not.
    pub fn seen(&self) -> Vec<Arc<Unit>> {
        let units = self.target.units();
        units.seen_by(&self.port.name).map(|(_, unit)| Arc::clone(unit)).collect()
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.units.values().for_each(|(unit, nexus)| unit.leave(nexus));
    }
}
