//! What is pure of SMB: no I/O and no clock.

pub mod clients;
pub mod credits;
pub(super) mod instances;
pub(super) mod leases;
pub(super) mod listings;
pub(super) mod location;
pub(super) mod mail_order;
pub(super) mod notices;
pub mod open_files;
pub(super) mod opens;
pub(super) mod parked;
pub(super) mod pipes;
pub(super) mod removals;
pub(super) mod replays;
pub mod seats;
pub(super) mod session;
pub mod sessions;
pub(super) mod setup;
pub mod times;
