//! `plimsoll host`: the privileged helper, and the guard of a change that it has made.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use control::accounts::machine::Machine;
use host_helper::dhcp;
use host_helper::files::Folder;
use host_helper::guard::{self, Guards};
use host_helper::keeper::Keeper;
use host_helper::service::Helper;
use host_network::linux::{Files, Linux};
use host_pools::keeper::{FOLDER, Keeper as Pools};

use crate::cli::HostArgs;
use crate::cmd::serve::manager;
use crate::out::{Failure, OrFailure};

/// What is done, for messages.
const TRIED: &str = "run the helper";

/// Is the helper until its socket ends; or the guard until its change is confirmed or taken back.
///
/// # Errors
/// It cannot be one.
pub fn run(args: &HostArgs) -> Result<(), Failure> {
    if args.pools {
        let pools = pools(&args.state)?;
        let served = serve_input(&Helper::of_pools(pools.clone()));
        pools.leave();
        return served;
    }
    let folder = Folder::open(&args.state).or_failure(TRIED)?;
    let files = Files { dhcp: Some(folder.dhcp()), ..Files::default() };
    let mut linux = Linux::open(files.clone()).or_failure("open the network")?;
    if let (Some(seconds), Some(change)) = (args.guard, args.change) {
        let guarded = guard::run(&args.state, &mut linux, (change, seconds));
        return guarded.or_failure("guard a change");
    }
    // The child of a server belongs to the user of that server.
    let user = if args.child { 0 } else { user(&args.user)? };
    let program = std::env::current_exe().or_failure(TRIED)?;
    let guards = Guards { program, folder: folder.path().to_owned() };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").or_failure(TRIED)?;
    let mut keeper = Keeper::new(Box::new(linux), folder.clone(), Box::new(guards), boot.trim());
    if let Err(refusal) = keeper.start() {
        // What could be done is done, and the server shows the rest.
        base::error!("host", "{refusal}");
    }
    dhcp::start(folder, files).or_failure("follow DHCP")?;
    let helper = Helper::new(keeper, user);
    helper.follow().or_failure("follow the links of the machine")?;
    if args.child {
        return serve_input(&helper);
    }
    let helper = helper.with_pools(pools(&args.state)?);
    let listener = helper.bind(&args.socket).or_failure(TRIED)?;
    manager::notify("READY=1");
    helper.listen(&listener).or_failure(TRIED)
}

/// Serves the connection to the parent.
fn serve_input(helper: &Helper) -> Result<(), Failure> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().or_failure(TRIED)?;
    helper.serve(UnixStream::from(input));
    Ok(())
}

/// The pools of this machine; those that are imported are mounted from now on.
fn pools(state: &Path) -> Result<Arc<Pools>, Failure> {
    let pools = Pools::open(Path::new(FOLDER), state).or_failure("open the file of the pools")?;
    pools.start().or_failure("start the thread of the pools")?;
    Ok(pools)
}

/// The number of a user by its name, or a number.
fn user(name: &str) -> Result<u32, Failure> {
    let known = name.parse().ok().or_else(|| Machine::default().by_name(name).map(|user| user.uid));
    known.ok_or_else(|| {
        Failure::new(TRIED, &format!("there is no user {name}"), "name another one with --user")
    })
}
