//! What this host's certificate is made out to.

use std::net::IpAddr;
use std::sync::Arc;

use base::clock::SystemClock;
use control::certificates::Certificates;
use control::certificates::own::is_private;
use control::certificates::room::Host;
use control::state::{StateDir, StateError};
use control::tree::Tree;

use crate::reach::machine_name;

/// Certificates by the configuration.
///
/// # Errors
/// The state directory cannot be used.
pub fn open(
    state: &StateDir,
    address: IpAddr,
    tree: &Arc<Tree>,
) -> Result<Arc<Certificates>, StateError> {
    let host = Host { names: names(address), address };
    Certificates::start(state.path(), host, tree, Arc::new(SystemClock))
}

/// The host's name, and the addresses that it listens on. If that is all of them: the private ones,
/// because a public one is seldom kept, and a new one would require a new CA.
fn names(address: IpAddr) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let host = machine_name();
    names.extend(host.is_ascii().then_some(host));
    if address.is_unspecified() {
        let all = host::addresses::addresses(&host::Root::default());
        let all = all.iter().map(ToString::to_string);
        names.extend(all.filter(|address| is_private(address)));
    } else {
        names.push(address.to_string());
    }
    names.sort();
    names.dedup();
    names
}
