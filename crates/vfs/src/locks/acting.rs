//! For which client, and with which of its owners, a thread acts: their own opens and leases are
//! not in its way. Operations are synchronous, so this holds for exactly them.

use std::cell::{Cell, RefCell};

use super::{ClientKey, Owner};

thread_local! {
    static CLIENT: Cell<Option<ClientKey>> = const { Cell::new(None) };
    static BY: RefCell<Vec<Owner>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, what this thread does to files is done for this client, and does not recall its
/// own delegations. Operations are synchronous, so this holds for exactly them.
pub struct ByClient(Option<ClientKey>);

impl ByClient {
    /// Acts for `client`.
    pub fn acting(client: ClientKey) -> Self {
        Self(CLIENT.replace(Some(client)))
    }

    /// The client for which this thread acts.
    pub fn now() -> Option<ClientKey> {
        CLIENT.get()
    }
}

impl Drop for ByClient {
    fn drop(&mut self) {
        CLIENT.set(self.0);
    }
}

/// While it lives, what this thread does to names is done for these owners: their own opens are not
/// in the way, nor those of their protocol that they share a file with. Operations are synchronous,
/// so this holds for exactly them.
pub struct ByOwners(Vec<Owner>);

impl ByOwners {
    /// Acts for `owners`.
    pub fn acting(owners: &[Owner]) -> Self {
        if owners.is_empty() && BY.with_borrow(Vec::is_empty) {
            return Self(Vec::new());
        }
        Self(BY.replace(owners.to_vec()))
    }
}

impl Drop for ByOwners {
    fn drop(&mut self) {
        BY.replace(std::mem::take(&mut self.0));
    }
}

/// Whether this thread acts for an owner.
pub(super) fn acts_for(owner: &Owner) -> bool {
    BY.with_borrow(|owners| owners.contains(owner))
}

/// The owner for which this thread acts and `is` holds.
pub(super) fn acting_owner(is: impl Fn(&Owner) -> bool) -> Option<Owner> {
    BY.with_borrow(|owners| owners.iter().find(|owner| is(owner)).cloned())
}
