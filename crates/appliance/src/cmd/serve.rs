//! `plimsoll serve`: the wiring of the server, read top to bottom.

mod announce;
mod clients;
mod engine;
mod exports;
mod manager;
mod names;
mod nfs4;
mod nlm;
mod owners;
mod plan;
mod portmap;
mod status;
mod storage;
mod tls;

use std::sync::{Arc, OnceLock};

use base::clock::{self, NS_PER_S, SystemClock, wall_ns};
use control::api::Control;
use control::listen::{self, ListenConfig, ListenError, Listening};
use control::state::keys::{Identity, Keys};
use control::state::registry::{self, Entry, Registration};
use control::state::users::{Users, generate_password};
use control::state::{StateDir, StateError};
use probe::hub::{Hub, HubOptions};

use crate::cli::ServeArgs;
use crate::out::{Failure, chain};
use crate::services::ADMIN;
use crate::sys::{self, Signal};
use announce::Announcement;
use clients::NfsClients;
use engine::Statistics;
use plan::Plan;
use status::Running;
use storage::Storage;

/// The user who is made when nobody may sign in yet.
const FIRST_USER: &str = "admin";

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Anything that keeps it from serving all that was asked for: it never serves half of it.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    // Before the first thread, which would take the signals otherwise.
    sys::hold_signals();
    clock::calibrate();
    let plan = Plan::from_args(args)?;

    let state = StateDir::open(&plan.state).map_err(|e| state_failure(&e))?;
    let keys = Keys::open(&state, plan.address).map_err(|e| state_failure(&e))?;
    let users = Users::open(&state).map_err(|e| state_failure(&e))?;
    let first = sign_in_users(&users, &plan).map_err(|e| state_failure(&e))?;

    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let hub = Hub::new(HubOptions { cores, recorder_bytes: base::limits::RECORDER_BYTES });
    let tls = plan.tls.offer(&keys.identity)?;
    let storage = Storage::start(&plan, &state, keys.handle_secret, &hub, tls)?;
    let statistics = Statistics::start(&state, &hub, &storage)?;

    let running = Arc::new(Running {
        nfs: NfsClients::new(&storage, &hub),
        hub,
        statistics,
        storage,
        started: wall_ns() / NS_PER_S,
        admin: OnceLock::new(),
    });
    let control = Control::new(running.clone(), users, keys.api_token, Arc::new(SystemClock));
    let config =
        ListenConfig { admin: plan.admin, identity: keys.identity.clone(), socket: state.socket() };
    let listening = listen::start(control.clone(), config).map_err(|e| admin_failure(&e))?;
    // Set once, here.
    let _ = running.admin.set(listening.admin());
    let registration = register(&plan, &state);

    Announcement {
        plan: &plan,
        running: &running,
        state: state.path(),
        admin: listening.admin(),
        login: control.login_once(plan.login_user(FIRST_USER)),
        first: first.as_deref().map(|password| (FIRST_USER, password)),
        logged: manager::logged(),
    }
    .print()?;
    manager::tell("READY=1");
    while sys::wait_for_signal() == Signal::Reload {
        if plan.exports.file().is_none() && !plan.tls.any() && !manager::there() {
            // The terminal is gone, and there is nothing to read again.
            break;
        }
        reload(&plan, &running, &keys.identity);
    }
    manager::tell("STOPPING=1");
    end(registration, listening, &running);
    // The lock of the state directory goes last.
    drop(state);
    Ok(())
}

/// Reads export rules and certificates again. Where they are wrong, those before go on.
fn reload(plan: &Plan, running: &Running, own: &Identity) {
    let rules = plan.exports.read().and_then(|rules| plan.tls.check(&rules).map(|()| rules));
    match rules {
        Ok(rules) => running.storage.set_rules(&rules),
        Err(failure) => failure.tell(),
    }
    if let Err(failure) = plan.tls.renew(running.storage.tls(), own) {
        failure.tell();
    }
}

/// In the order of the data: first nothing new comes in, then what came is written down.
fn end(registration: Option<Registration>, listening: Listening, running: &Running) {
    drop(registration);
    running.storage.drain();
    listening.end();
    running.statistics.end();
}

/// Enters the users that were asked for. If there is nobody then, makes one, whose password is
/// returned to be printed once.
fn sign_in_users(users: &Users, plan: &Plan) -> Result<Option<String>, StateError> {
    for (user, password) in &plan.users {
        users.set(user, password)?;
    }
    if !users.is_empty() {
        return Ok(None);
    }
    let password = generate_password();
    users.set(FIRST_USER, &password)?;
    Ok(Some(password))
}

/// Local commands find the server without it too, by `--state`: no reason not to serve.
fn register(plan: &Plan, state: &StateDir) -> Option<Registration> {
    let entry = Entry {
        pid: std::process::id(),
        dir: plan.dir.clone(),
        state: state.path().to_owned(),
        socket: state.socket(),
    };
    registry::register(&registry::default_dir(), &entry)
        .inspect_err(|e| {
            eprintln!("plimsoll: local commands will need --state: {}", chain(e));
        })
        .ok()
}

fn state_failure(error: &StateError) -> Failure {
    Failure::of("use the state directory", error)
}

fn admin_failure(error: &ListenError) -> Failure {
    match error {
        ListenError::Address { address, source } => ADMIN.refused(*address, source),
        other => Failure::of("start the admin interface", other),
    }
}
