//! What all protocols share on the way from the network card to their handlers.
//!
//! - [`runtimes`]: one thread with a runtime of its own for each core.
//! - [`listener`]: accepts and deals connections to the cores, within the budget.
//! - [`budget`]: how much of everything may be in use, and the figures that show it.
//! - [`connections`]: permits for connections of all services, which share the descriptors.
//!   [`pace`]: how slow a peer may be.
//! - [`acks`]: when replies have arrived. [`address_places`]: places, a part for each address.
//! - [`arrivals`]: when requests came that wait until replies are taken.
//! - [`buffers`]: receive and reply buffers, used again.
//! - [`link`]: a socket, unencrypted or with TLS. [`tls`]: certificates for clients that use TLS.
//! - [`small`]: services that are asked a few times: a question, an answer.
//! - [`tasks`]: what runs for a service, and its end.
//! - [`silence`]: whether peers see the end of their connections.
//! - [`send`]: bytes, and parts of files, to the peer. [`tcp_info`]: what the kernel knows of it.

pub mod acks;
pub mod address_places;
pub mod arrivals;
pub mod budget;
pub mod buffers;
pub mod connections;
pub mod link;
pub mod listener;
pub mod outgoing;
pub mod pace;
pub mod runtimes;
pub mod send;
pub mod silence;
pub mod small;
pub mod tasks;
pub mod tcp_info;
pub mod tls;

pub use base::tally;
pub use budget::Budgets;
pub use runtimes::Runtimes;
pub use tasks::Tasks;

/// Raises the soft limit on descriptors to the hard one; returns the limit that now holds.
///
/// # Errors
/// The error of the system call if the limit cannot be read or set.
pub fn raise_descriptor_limit() -> std::io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the kernel to fill.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a valid rlimit that the kernel only reads.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(limit.rlim_cur)
}
