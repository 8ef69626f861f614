//! What the services that transfer files share: the way to files, uploads, changes, measuring.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]

mod exclusive;
mod replaced;
mod scene;
mod stretches;
mod uploads;
mod ways;
