//! `plimsoll sftp-server`: the subsystem that OpenSSH's sshd starts for a signed-in user. It runs
//! with the uid of that user, so the kernel checks the permissions; it does not communicate with a
//! server on this machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use base::random::{Random, SystemRandom};
use control::accounts::machine::Machine;
use probe::hub::{Hub, HubOptions};
use serve::exec::Engine;
use serve::files::{Caller, Core, Files, VPath};
use serve::pool::{Pool, PoolLimits};
use serve::sftp::stdio::Stream;
use serve::sftp::{Session, Settings, Uploads, conn};
use serve::transport::budget::Limits;
use serve::transport::{Budgets, raise_descriptor_limit};
use vfs::flush::FlushGroup;
use vfs::host::acting;
use vfs::host::{HostFs, HostOptions};
use vfs::identity::{Identity, Owners, Person};
use vfs::share::rules::Transport;
use vfs::share::{Service, ShareTable, Shares, tag};
use vfs::transfers::NoLog;

use crate::cli::{SftpServerArgs, UploadsArg};
use crate::cmd::memory;
use crate::out::{Failure, OrFailure};

/// What is done, for messages.
const TRIED: &str = "serve SFTP";
/// The only share, unless there are names for several: the client does not see it.
const ROOT: &str = "root";
/// Threads for what may block: one client, and a core or two.
const POOL: PoolLimits = PoolLimits { threads: 4, queue: 1024, per_client: 1024 };
/// Memory of the flight recorder, which is not read here: the minimum.
const RECORDER_BYTES: usize = 64 << 10;

/// No user signs in here: sshd has authenticated the user.
struct SignedIn(Arc<Person>);

impl Identity for SignedIn {
    fn person(&self, _: &str) -> Option<Arc<Person>> {
        Some(Arc::clone(&self.0))
    }

    fn anonymous(&self) -> Arc<Person> {
        Arc::clone(&self.0)
    }
}

/// Names and directories of the shares.
fn shares(args: &SftpServerArgs) -> Result<Vec<(String, PathBuf)>, Failure> {
    if args.shares.is_empty() {
        return Ok(vec![(ROOT.to_owned(), args.root.clone())]);
    }
    let split = |share: &String| {
        let (name, dir) = share.split_once('=').filter(|(name, _)| !name.is_empty())?;
        Some((name.to_owned(), PathBuf::from(dir)))
    };
    let wrong = |share: &String| {
        Failure::usage(
            TRIED,
            &format!("{share:?} is not a share: use NAME=DIR"),
            "--share NAME=DIR",
        )
    };
    args.shares.iter().map(|share| split(share).ok_or_else(|| wrong(share))).collect()
}

fn table(args: &SftpServerArgs) -> Result<ShareTable, Failure> {
    let mut secret = [0; 32];
    SystemRandom.fill(&mut secret);
    let mut table = ShareTable::default();
    for (name, dir) in shares(args)? {
        let fs = HostFs::open(&dir, HostOptions::new(tag(&name), secret)).or_failure(TRIED)?;
        table.add(&name, fs, args.read_only).or_failure(TRIED)?;
    }
    Ok(table)
}

/// Where the client begins, from the list of shares on.
fn home(args: &SftpServerArgs, root: &VPath) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let start = match &args.start {
        Some(start) => start.clone().into_bytes(),
        None => {
            let at = std::env::current_dir().unwrap_or_default();
            let within = args.root.canonicalize().ok();
            let within = within.and_then(|top| at.strip_prefix(top).ok().map(Path::to_owned));
            within.unwrap_or_default().as_os_str().as_bytes().to_vec()
        }
    };
    let start = VPath::parse(&start).unwrap_or_default();
    start.parts().iter().fold(root.clone(), |path, name| path.with(name)).to_bytes()
}

/// Runs it, until the client has gone.
///
/// # Errors
/// The directory cannot be served, or the process was not started by sshd.
pub fn run(args: &SftpServerArgs) -> Result<(), Failure> {
    raise_descriptor_limit().or_failure(TRIED)?;
    let table = table(args)?;
    let root = match args.shares.is_empty() {
        true => VPath::ROOT.with(ROOT.as_bytes()),
        false => VPath::ROOT,
    };
    let names = Arc::new(Machine::default());
    let cred = acting::own().clone();
    let person = Arc::new(Person {
        name: names.user(cred.uid).unwrap_or_else(|| cred.uid.to_string()),
        home: Some(home(args, &root)),
        anonymous: false,
        cred,
    });
    let uploads = match args.uploads {
        UploadsArg::Whole => Uploads::Atomic,
        UploadsArg::InPlace => Uploads::InPlace,
    };
    let settings =
        Settings { uploads, umask: args.umask, root, owners: names, ..Settings::default() };
    // As many bytes as one of the services of a server may hold here.
    let (_, sizes) = memory::here();
    let limits = Limits { bytes: sizes.buffered, ..Limits::default() };
    let files = Arc::new(Files {
        service: Service::Sftp,
        shares: Shares::new(table),
        locks: Arc::default(),
        engine: Engine::new(
            Pool::start(POOL).or_failure(TRIED)?,
            Arc::new(FlushGroup::start().or_failure(TRIED)?),
            Arc::new(Budgets::new(limits)),
            Hub::new(HubOptions { cores: 1, recorder_bytes: RECORDER_BYTES }),
        ),
        identity: Arc::new(SignedIn(Arc::clone(&person))),
        sign_ins: Arc::default(),
        transfers: Arc::new(NoLog),
    });
    let pool = Arc::clone(&files.engine.pool);
    let served = exchange(files, person, settings);
    // Temporary files of abandoned uploads are removed there, and no other process knows of them.
    pool.wait_idle();
    served
}

fn exchange(files: Arc<Files>, person: Arc<Person>, settings: Settings) -> Result<(), Failure> {
    let failed = |e: &dyn std::error::Error| {
        Failure::of(TRIED, e)
            .hint("it is started by sshd: Subsystem sftp /usr/bin/plimsoll sftp-server")
    };
    let copy = |fd: &dyn AsFd| -> std::io::Result<OwnedFd> { fd.as_fd().try_clone_to_owned() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| failed(&e))?;
    base::clock::calibrate();
    let local = tokio::task::LocalSet::new();
    let served = local.block_on(&runtime, async {
        let input = Stream::reading(copy(&std::io::stdin())?)?;
        let output = Stream::writing(copy(&std::io::stdout())?)?;
        let core = Core::new(0, 1, Arc::clone(&files));
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let who = Caller::new(person, (peer, 0), Transport::Tls, Service::Sftp);
        let session = Session::new(Rc::clone(&core), who, Arc::new(settings));
        Ok::<_, std::io::Error>(conn::serve(session, input, output).await)
    });
    // Temporary files of uploads that ended with the channel are removed.
    runtime.block_on(local);
    match served.map_err(|e| failed(&e))? {
        Ok(()) | Err(conn::Ended::Gone(_)) => Ok(()),
        Err(ended) => Err(failed(&ended)),
    }
}
