//! What NFS over RDMA needs: a device, its libraries, and memory that may be locked.

use base::limits::RDMA_REGISTERED_MAX;
use base::units;
use nix::sys::resource::{Resource, getrlimit};
use verbs::devices::{self, Device};
use verbs::load;

use super::finding::Outcome;

/// The devices, their drivers, link layers and states; available if a port is active.
pub fn device() -> Outcome {
    let all = devices::list();
    let words = |device: &Device| {
        let Device { name, driver, link_layer, iwarp, state } = device;
        let kind = if *iwarp { "iWARP" } else { link_layer };
        format!("{name}: {driver}, {kind}, {state}")
    };
    match all.as_slice() {
        [] => Outcome::is(false, "no device"),
        all => {
            let active = all.iter().any(|device| device.state == "ACTIVE");
            Outcome::is(active, all.iter().map(words).collect::<Vec<_>>().join("; "))
        }
    }
}

/// The libraries that are loaded when the service starts.
pub fn libraries() -> Outcome {
    match load::check() {
        Ok(()) => Outcome::is(true, "libibverbs and librdmacm"),
        Err(why) => Outcome::is(false, why.to_string()),
    }
}

/// The limit of memory that may be locked, and so registered.
pub fn locked_memory() -> Outcome {
    let limit = match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((now, _)) => now,
        Err(e) => return Outcome::unknown(std::io::Error::from(e).to_string()),
    };
    match limit {
        libc::RLIM_INFINITY => Outcome::is(true, "no limit"),
        bytes => Outcome::is(bytes >= RDMA_REGISTERED_MAX as u64, units::bytes(bytes as f64)),
    }
}
