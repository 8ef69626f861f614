//! The privileged helper (`plimsoll host`): a process of root next to the server, which changes
//! this machine on typed requests, and only on those.
//!
//! - [`request`]: what can be requested and answered, and how it is framed. Nothing in a request
//!   names a file or a program; a disk is named as the kernel names it, or by its serial number.
//! - [`service`]: the socket, users that may connect, the log. [`client`]: the other end.
//! - [`keeper`]: a change of the network: checked, written to disk, taken, confirmed or taken back.
//!   `appear` has it configure devices that appear later.
//! - [`guard`]: the process that takes an unconfirmed change back even if the others end.
//! - [`dhcp`]: a client for each link with DHCP.
//! - [`files`]: what of it is on disk (`docs/formats/host.md`).
//!
//! The health of disks is queried by `host_hardware::smart`, pools are those of
//! `host_pools::keeper`.

mod appear;
pub mod client;
pub mod dhcp;
pub mod files;
pub mod guard;
pub mod keeper;
pub mod request;
pub mod service;
mod sys;
