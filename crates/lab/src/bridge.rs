//! `plimsoll bridge`: joins two networks by a link with a delay, a rate, a queue, loss and other
//! impairments, and reports whether the bridge itself was late.
//!
//! A TUN device is in each network. A thread for each direction reads packets there, passes each to
//! [`link`], and writes those that are due to the other side. The link is pure: it gets the time
//! and its randomness as arguments.
//!
//! - [`shape`] has the parameters of a link and their notation.
//! - [`link`]: what becomes of a packet, and when; [`flight`]: packets in flight.
//! - [`gso`]: packets of many segments, which the line does not know.
//! - [`device`]: TUN devices in network namespaces; [`sys`]: system calls.
//! - [`direction`]: the thread; [`tally`]: what it counts, and what spoils a run.
//! - [`pair`]: the other half on another host.
//! - [`shared`]: what both directions share; [`status`]: how all of it stands.
//! - [`run`] goes from start to verdict; [`control`] has queries and changes meanwhile; [`cli`].

pub mod cli;
pub mod control;
pub mod device;
pub mod direction;
pub mod flight;
pub(crate) mod folder;
pub mod gso;
pub mod link;
pub mod pair;
pub mod run;
pub mod scene;
pub mod shape;
pub mod shared;
pub mod status;
mod sys;
pub mod tally;
mod text;

/// Whether this program may make namespaces and devices: it is root, be it of a namespace.
pub fn is_root() -> bool {
    sys::user() == 0
}
