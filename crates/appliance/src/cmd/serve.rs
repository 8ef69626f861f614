//! `plimsoll serve`: the wiring of the server, read top to bottom.

mod announce;
mod configuration;
mod exports;
mod manager;
mod plan;
mod settings;

use std::sync::Arc;

use ::lab::desk::{Desk, Worker};
use base::clock::{self, SystemClock};
use base::protocol::ports::ADMIN;
use control::accounts::People;
use control::api::Control;
use control::certificates::keeper::Keeper;
use control::listen::{self, ListenConfig, ListenError, Listening};
use control::replication::Replication;
use control::state::keys::Keys;
use control::state::registry::{self, Entry, Registration};
use control::state::{StateDir, StateError};
use probe::hub::{Hub, HubOptions};
use service::lab::{Results, from_here};
use service::running::Running;
use service::storage::Setup;
use service::{administration, certificates, users};

use crate::cli::ServeArgs;
use crate::cmd::memory;
use crate::out::{Failure, chain};
use crate::sys::{self, Signal};
use announce::Announcement;
use plan::Plan;

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
    let keys = keys(&state)?;
    let accounts = users::given(&plan.users).map_err(|e| state_failure(&e))?;

    let tree = configuration::open(&state, args.config.as_deref())?;
    let certificates =
        certificates::open(&state, args.address, &tree).map_err(|e| state_failure(&e))?;
    let document = tree.document();
    let (hub, buffered) = hub();
    let desk = open_lab(&state)?;
    let setup = Setup {
        share: plan.share.clone(),
        at: (args.address, args.port_offset),
        luns: &plan.luns,
        nfs_given: &plan.nfs_given,
        document: &document,
        state: &state,
        secret: keys.handle_secret,
        hub: &hub,
        buffered,
        users: users::known(&accounts),
        certificates: &certificates,
    };
    let links = registry::default_dir().join(::lab::bridge::cli::SOCKETS);
    let running = Running::start(setup, Results(desk.clone()), open_replication(&state)?, links)?;
    let clock = Arc::new(SystemClock);
    let people = People::start(accounts.clone(), clock.clone(), &tree);
    administration::join(&running, &state, &people, &tree)?;
    let first = users::first(&state, &tree, &accounts)
        .map_err(|e| Failure::of("enter the first users", &e))?;
    let control =
        Control::new(running.clone(), accounts.clone(), tree.clone(), &keys.api_token, clock);
    let shown = certificates.shown().clone();
    let config = ListenConfig { admin: plan.admin, shown, socket: state.socket() };
    let listening = listen(&running, &control, config)?;
    running.storage.answer();
    let keeper = Keeper::start(certificates)
        .map_err(|e| Failure::of("start the thread that renews certificates", &e))?;
    let registration = register(&plan, &state);
    let lab = desk.start(from_here(running.storage.services.nfs.at()));

    Announcement {
        json: args.announce.is_some(),
        running: &running,
        state: state.path(),
        admin: listening.admin(),
        login: control.login_once(&users::for_login(&accounts, &plan.users)),
        first: first.as_deref().map(|password| (users::FIRST, password)),
        logged: manager::logged(),
    }
    .print()?;
    manager::tell("READY=1");
    serve_on(&plan, &running);
    manager::tell("STOPPING=1");
    keeper.end();
    end(registration, lab, listening, &running);
    // The lock of the state directory goes last.
    drop(state);
    Ok(())
}

/// The secrets; the names of uploads follow from them.
fn keys(state: &StateDir) -> Result<Keys, Failure> {
    let keys = Keys::open(state).map_err(|e| state_failure(&e))?;
    // The lock of the state directory sees to it that nobody else has this number now.
    serve::files::upload::set_owner(keys.number());
    Ok(keys)
}

/// The administration, from now on, and with it all services; whoever tells of the server knows
/// where it is.
fn listen(
    running: &Running,
    control: &Arc<Control>,
    config: ListenConfig,
) -> Result<Listening, Failure> {
    let listening = listen::start(control.clone(), config).map_err(|e| admin_failure(&e))?;
    let _ = running.admin.set(listening.admin());
    let _ = running.admin_places.set(listening.places().clone());
    running.storage.answer();
    Ok(listening)
}

/// Where operations are written down, and how many bytes each service may hold for its peers.
fn hub() -> (Arc<Hub>, usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let sizes = memory::at_start();
    (Hub::new(HubOptions { cores, recorder_bytes: sizes.recorder }), sizes.buffered)
}

/// Runs of the lab, which are made by this very program.
fn open_lab(state: &StateDir) -> Result<Arc<Desk>, Failure> {
    let tried = "use the folder of the lab";
    let program = std::env::current_exe().map_err(|e| Failure::of(tried, &e))?;
    let desk = Desk::open(state.path().join("lab"), program, state.socket());
    desk.map_err(|e| Failure::of(tried, &e))
}

/// Runs of dsync, which are made by this very program.
fn open_replication(state: &StateDir) -> Result<Arc<Replication>, Failure> {
    let tried = "use the files of replication";
    let program = std::env::current_exe().map_err(|e| Failure::of(tried, &e))?;
    let state = state.path().to_owned();
    let opened = Replication::open(state, program, Arc::new(SystemClock));
    opened.map_err(|e| Failure::of(tried, &e))
}

/// Waits for the signal that ends it; what only asks for files to be read again is followed.
fn serve_on(plan: &Plan<'_>, running: &Running) {
    while sys::wait_for_signal() == Signal::Reload {
        let files = plan.args.exports.is_some() || running.storage.services.use_files();
        if !files && !manager::there() {
            // The terminal is gone, and there is nothing to read again.
            return;
        }
        reload(plan, running);
    }
}

/// Reads export rules and certificates again. Where they are wrong, those before go on.
fn reload(plan: &Plan<'_>, running: &Running) {
    let services = &running.storage.services;
    let rules =
        exports::read(plan.args).and_then(|rules| services.check_rules(&rules).map(|()| rules));
    match rules {
        Ok(rules) => running.storage.set_rules(&rules),
        Err(failure) => failure.tell(),
    }
    services.renew_tls(&running.certificates).iter().for_each(Failure::tell);
}

/// In the order of the data: first nothing new comes in, then what came is written down.
fn end(registration: Option<Registration>, lab: Worker, listening: Listening, running: &Running) {
    drop(registration);
    // While it is still served: what a run has made on a share is removed.
    lab.end();
    running.replication.end();
    running.storage.services.drain();
    running.storage.parts.transfers.end();
    listening.end();
    if let Some(alerts) = running.alerts() {
        alerts.end();
    }
    running.statistics.end();
}

/// Local commands find the server without it too, by `--state`: no reason not to serve.
fn register(plan: &Plan<'_>, state: &StateDir) -> Option<Registration> {
    let entry = Entry {
        pid: std::process::id(),
        dir: plan.share.directory.clone(),
        state: state.path().to_owned(),
        socket: state.socket(),
    };
    registry::register(&registry::default_dir(), &entry)
        .inspect_err(|e| {
            base::warning!("server", "local commands need --state: {}", chain(e));
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
