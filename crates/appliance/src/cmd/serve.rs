//! `plimsoll serve`: the wiring of the server, read top to bottom.

mod announce;
mod connections;
pub(in crate::cmd) mod manager;
mod plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::lab::desk::{RunQueue, Worker};
use base::clock::{self, SystemClock};
use base::failure::read_text;
use base::limits::CONFIGURATION_BYTES_MAX;
use base::protocol::ports::ADMIN;
use control::accounts::People;
use control::api::Control;
use control::certificates::keeper::Keeper;
use control::listen::{self, ListenConfig, ListenError, Listening};
use control::replication::Replication;
use control::state::StateDir;
use control::state::keys::Keys;
use control::state::registry::{self, Entry, Registration};
use control::tree::store::Folder;
use control::tree::viewer::Everything;
use control::tree::{Actor, Tree};
use head::lease::Follower;
use head::local;
use host::silent_end::SilentEnd;
use probe::hub::{Hub, HubOptions};
use service::lab::from_here;
use service::node::set_log_levels;
use service::running::{Running, Setup};
use service::{administration, certificates, users};

use crate::cli::ServeArgs;
use crate::cmd::memory;
use crate::out::{Failure, OrFailure, chain};
use crate::sys;
use crate::tree::ROOT;
use announce::Announcement;
use connections::Recorder;
use plan::Plan;

/// What is tried with the state directory, for messages.
const STATE: &str = "use the state directory";

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// Anything that prevents it from serving all that was requested: it never serves only a part.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    // Before the first thread, which would take the signals otherwise.
    sys::hold_signals();
    clock::calibrate();
    follow_lease(args)?;
    let plan = Plan::from_args(args)?;

    let state = StateDir::open(&plan.state).or_failure(STATE)?;
    // From here on commands find the server, and wait until it answers.
    let registration = register(&plan, &state);
    let keys = Keys::open(&state).or_failure(STATE)?;
    // Unique: the state directory is locked.
    serve::files::upload::set_owner(keys.number());
    let accounts = users::given(&plan.users).or_failure(STATE)?;
    let tree = open_tree(&state, args.config.as_deref())?;
    let certificates = certificates::open(&state, args.address, &tree).or_failure(STATE)?;
    let document = tree.document();
    let (sizes, cores) = (memory::at_start(), std::thread::available_parallelism());
    let cores = cores.map_or(1, usize::from);
    let hub = Hub::new(HubOptions { cores, recorder_bytes: sizes.recorder });
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
        buffered: sizes.buffered,
        users: users::known(&accounts),
        certificates: &certificates,
        lab: desk.clone(),
        replication: open_replication(&state)?,
        links: registry::default_dir().join(::lab::bridge::cli::SOCKETS),
        head: head_socket(args),
    };
    let running = Running::start(setup)?;
    let clock = Arc::new(SystemClock);
    let people = People::start(accounts.clone(), clock.clone(), &tree);
    administration::join(&running, &state, &people, &tree)?;
    let first = users::first(&state, &tree, &accounts).or_failure("enter the first users")?;
    let control =
        Control::new(running.clone(), accounts.clone(), tree.clone(), &keys.api_token, clock);
    let shown = certificates.shown().clone();
    let config = ListenConfig { admin: plan.admin, shown, socket: state.socket() };
    let listening = listen(&running, &control, config)?;
    let keeper =
        Keeper::start(certificates).or_failure("start the thread that renews certificates")?;
    let lab = desk.start(from_here(running.services.nfs.at()));

    // All services and the administration answer: nothing that starts them may follow.
    Announcement {
        json: args.announce.is_some(),
        running: &running,
        login: control.login_once(&users::for_login(&accounts, &plan.users)),
        first: first.as_deref().map(|password| (users::FIRST, password)),
    }
    .print()?;
    manager::notify("READY=1");
    let connections = serve_on(&plan, &running);
    keeper.end();
    end(registration, lab, listening, &running);
    // The lock of the state directory goes last.
    drop(state);
    connections::vanish(connections, args.address);
    Ok(())
}

/// Ends this process at once when the lease of its head is over. Standard input is the lock on the
/// resource: it is moved away, so that no child gets it.
///
/// # Errors
/// The lease cannot be followed, or is over already.
fn follow_lease(args: &ServeArgs) -> Result<(), Failure> {
    const TRIED: &str = "follow the lease of the head";
    let (Some(path), Some(id)) = (&args.lease, args.lease_id) else { return Ok(()) };
    let follower = Follower::open(path, id).or_failure(TRIED)?;
    if follower.left().is_none() {
        return Err(Failure::new(TRIED, "it is over", "the head starts the resource again"));
    }
    sys::retain_input().or_failure(TRIED)?;
    follower.start(sys::kill_self).or_failure(TRIED)
}

/// The local socket of the head that has started this server, or runs on this machine.
fn head_socket(args: &ServeArgs) -> Option<PathBuf> {
    args.lease.as_deref().map(local::of_lease).or_else(local::of_this_machine)
}

/// Opens the tree. With a file, its configuration is in effect from this start on: it is recorded
/// as an import unless nothing differs.
///
/// # Errors
/// Something cannot be read, or the file is wrong.
fn open_tree(state: &StateDir, file: Option<&Path>) -> Result<Arc<Tree>, Failure> {
    let disk = Arc::new(Folder::new(state.path()));
    let tree = Tree::open(disk, &ROOT, Arc::new(SystemClock)).map_err(|e| {
        let hint = "STATE/configuration has the revisions; move the highest away to revert";
        Failure::of("read the configuration", &e).hint(hint)
    })?;
    if let Some(file) = file {
        import(&tree, file)?;
    }
    set_log_levels(&tree.document());
    Ok(Arc::new(tree))
}

fn import(tree: &Tree, file: &Path) -> Result<(), Failure> {
    let tried = format!("import the configuration in {}", file.display());
    let text = read_text(&tried, file, CONFIGURATION_BYTES_MAX as u64, "")?;
    let who = Actor::new("serve --config", "command line");
    let done = tree.import(&text, false, &who, &Everything).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let hint = problems.first().map_or("", |first| first.hint.as_str());
        Failure::new(&tried, &all.join("\n  "), hint)
    })?;
    for note in &done.notes {
        base::info!("configuration", "{note}");
    }
    Ok(())
}

/// Starts the administration and, with it, all services. Its address is stored in `running` for the
/// announcement.
fn listen(
    running: &Running,
    control: &Arc<Control>,
    config: ListenConfig,
) -> Result<Listening, Failure> {
    let listening = listen::start(control.clone(), config).map_err(|e| match &e {
        ListenError::Address { address, source } => ADMIN.refused(*address, source),
        other => Failure::of("start the admin interface", other),
    })?;
    let _ = running.admin.set((listening.admin(), listening.places().clone()));
    // Until now connections wait, so that no client finds one service before another.
    running.parts.runtimes.release();
    // Hashing passwords, reading tables and making keys have left much free memory.
    base::memory::give_back();
    Ok(listening)
}

/// Runs of the lab, which are made by this very program.
fn open_lab(state: &StateDir) -> Result<Arc<RunQueue>, Failure> {
    let program = std::env::current_exe();
    let opened =
        program.and_then(|it| RunQueue::open(state.path().join("lab"), it, state.socket()));
    opened.or_failure("use the folder of the lab")
}

/// Runs of dsync, which are made by this very program.
fn open_replication(state: &StateDir) -> Result<Arc<Replication>, Failure> {
    let tried = "use the files of replication";
    let program = std::env::current_exe().or_failure(tried)?;
    let clock = Arc::new(SystemClock);
    Replication::open(state.path().to_owned(), program, clock).or_failure(tried)
}

/// Waits for the signal that ends the server; signals to read files again are handled. If another
/// head takes the address of a resource over, the connections are returned, since clients must not
/// see their end.
fn serve_on(plan: &Plan<'_>, running: &Running) -> Option<SilentEnd> {
    let lease = plan.args.lease.as_ref();
    let recorder = lease.and_then(|_| Recorder::start(&running.parts.state, plan.args.address));
    while sys::wait_for_signal() {
        let files = plan.args.exports.is_some() || running.services.use_files();
        if !files && !manager::there() {
            // The terminal is gone, and there is nothing to read again.
            break;
        }
        reload(plan, running);
    }
    manager::notify("STOPPING=1");
    recorder.map(|recorder| recorder.hand_over())
}

/// Reads export rules and certificates again. Where they are wrong, the current ones stay in use.
fn reload(plan: &Plan<'_>, running: &Running) {
    let services = &running.services;
    let rules = plan::export_rules(plan.args)
        .and_then(|rules| services.check_rules(&rules).map(|()| rules));
    match rules {
        Ok(rules) => running.shares.set_rules(&running.given, &rules),
        Err(failure) => failure.print(),
    }
    services.renew_tls(&running.certificates).iter().for_each(Failure::print);
}

/// In the order of the data: first no new requests are accepted, then the received data is
/// recorded.
fn end(registration: Option<Registration>, lab: Worker, listening: Listening, running: &Running) {
    drop(registration);
    // While it is still served: what a run has made on a share is removed.
    lab.end();
    running.replication.end();
    running.services.drain();
    running.parts.transfers.end();
    listening.end();
    running.end();
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
