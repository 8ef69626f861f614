//! What leases of SMB cost: the ten rows of NFS and files of `bench paired` on two servers of one
//! build in turn, of which the second has clients with many leases on other files; and opens
//! without a lease and with one in turn.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::clock::Deadline;
use e2e::smb::caching::{self, Named, RWH};
use e2e::smb::{Answer, Ask, Offer, Protection, Smb, framed};
use wire::smb::create::{CloseRequest, FileId, options};
use wire::smb::header::Command;
use wire::smb::lease::LeaseKey;
use wire::smb::status::NtStatus;

use crate::files::builds::Builds;
use crate::ours::{self, SMB_PASSWORD, SMB_PORT, SMB_USER};
use crate::pairs::{self, Extent, Outcome, Target};
use crate::servers::{self, Version};
use crate::{Cli, cpu, paired};

/// First ports of the two servers.
const OFFSETS: [u16; 2] = [27_600, 28_100];
/// Names of the two.
const NAMES: [&str; 2] = ["without", "with"];
/// Leases of one client: a session has 16 384 opens at most.
const OF_CLIENT: u32 = 10_000;
/// Clients of one address, which has 65 536 opens at most.
const OF_ADDRESS: u8 = 5;
/// Files of one directory.
const OF_DIRECTORY: u32 = 1_000;
/// Requests that are sent at once.
const AT_ONCE: u32 = 32;
/// The directories with files that have leases, and with those that are opened.
const HELD: &str = "held";
const OPENED: &str = "opened";
/// What an open with a lease may cost of one without, at most.
const MOST: f64 = 1.15;

/// What is run and how long.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Leases that are held at the second server.
    #[arg(long, default_value_t = 100_000)]
    leases: u32,
    #[command(flatten)]
    extent: Extent,
}

/// Runs and prints the comparisons.
///
/// # Errors
/// When a server does not start, a lease is not granted, or a load fails.
pub fn run(cli: &Cli, arguments: &Arguments) -> io::Result<()> {
    let (mut rows, opens) = cli.in_scratch(|base| all(cli, arguments, base))?;
    if !rows.is_empty() {
        pairs::print(&rows, NAMES);
        println!();
    }
    if !opens.is_empty() {
        pairs::print(&opens, ["without a lease", "with one"]);
        pairs::judge(&opens, MOST);
    }
    rows.extend(opens);
    pairs::write(&rows, cli.out.as_deref())
}

/// The ten rows, and those of opens.
fn all(cli: &Cli, arguments: &Arguments, base: &Path) -> io::Result<(Vec<Outcome>, Vec<Outcome>)> {
    let extent = &arguments.extent;
    let (mut rows, opens) = nfs(cli, arguments, &base.join("nfs"))?;
    let names = Builds::rows();
    if names.iter().any(|name| name.contains(&extent.only)) {
        let builds = Builds::start(&base.join("transfers"), &cli.binary, &cli.binary)?;
        let (port, share, state) = builds.smb(1)?;
        let root = builds.root().to_owned();
        let place = SmbShare::new(&cli.binary, &state, (port, share), root)?;
        let held = place.hold(arguments.leases)?;
        rows.extend(builds.measure(extent)?);
        drop(held);
    }
    Ok((rows, opens))
}

fn nfs(cli: &Cli, arguments: &Arguments, base: &Path) -> io::Result<(Vec<Outcome>, Vec<Outcome>)> {
    let start = |number: usize| {
        let (name, offset) = (NAMES[number], OFFSETS[number]);
        let (share, state) = (base.join(name), base.join(format!("{name}.state")));
        fs::create_dir_all(&share)?;
        let server = servers::plimsoll(&cli.binary, &share, &state, offset)?;
        let exported = server.url(Version::V3).rsplit('/').next().unwrap_or_default().to_owned();
        let at = (SMB_PORT + offset, exported);
        let place = SmbShare::new(&cli.binary, &state, at, share)?;
        io::Result::Ok((server, place))
    };
    let ((without, plain), (with, place)) = (start(0)?, start(1)?);
    let held = place.hold(arguments.leases)?;
    let targets = [Target::from(&without), Target::from(&with)];
    let rows = pairs::nfs(&arguments.extent, paired::nfs_rows(), &targets)?;
    drop(held);
    let opens = Opener::new(&plain, without.pid)?.measure(&arguments.extent)?;
    Ok((rows, opens))
}

/// A share with SMB.
struct SmbShare {
    at: SocketAddr,
    share: String,
    /// Its directory.
    root: PathBuf,
}

impl SmbShare {
    /// Enables SMB at a server, and makes its user.
    fn new(
        binary: &Path,
        state: &Path,
        (port, share): (u16, String),
        root: PathBuf,
    ) -> io::Result<Self> {
        ours::enable_smb(binary, state, port)?;
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Self { at, share, root })
    }

    /// A client of this number, with credits.
    fn client(&self, number: u8) -> io::Result<Smb> {
        let from = IpAddr::from([127, 0, 0, 2 + number / OF_ADDRESS]);
        let offer = Offer { client: [number + 1; 16], ..Offer::default() };
        let mut smb = Smb::open((from, self.at), &offer, (SMB_USER, SMB_PASSWORD), &self.share)?;
        smb.protection = Protection::None;
        smb.earn_credits(8)?;
        Ok(smb)
    }

    /// Makes empty files that all users may use, in directories below `folder`.
    fn files(&self, folder: &str, count: u32) -> io::Result<()> {
        let permit = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        for number in 0..count {
            let path = self.root.join(name(folder, number).replace('\\', "/"));
            if number % OF_DIRECTORY == 0 {
                let within = path.parent().unwrap_or(&self.root);
                fs::create_dir_all(within)?;
                permit(within, 0o777)?;
            }
            File::create(&path)?;
            permit(&path, 0o666)?;
        }
        Ok(())
    }

    /// Clients that hold this number of leases, each of a file.
    fn hold(&self, leases: u32) -> io::Result<Vec<Smb>> {
        self.files(HELD, leases)?;
        let mut held = Vec::new();
        for from in (0..leases).step_by(OF_CLIENT as usize) {
            let number = u8::try_from(held.len()).map_err(io::Error::other)?;
            let mut smb = self.client(number)?;
            let until = leases.min(from + OF_CLIENT);
            for from in (from..until).step_by(AT_ONCE as usize) {
                let paths: Vec<_> =
                    (from..until.min(from + AT_ONCE)).map(|n| (name(HELD, n), n)).collect();
                let creates = paths.iter().map(|(path, n)| (Ask::open(path), Some(key(*n))));
                create(&mut smb, creates.collect())?;
            }
            held.push(smb);
        }
        eprintln!("bench: {leases} leases of {} clients", held.len());
        Ok(held)
    }
}

/// A file in the share.
fn name(folder: &str, number: u32) -> String {
    format!("{folder}\\{:03}\\{number}", number / OF_DIRECTORY)
}

/// The key of the lease of a file.
fn key(number: u32) -> LeaseKey {
    let mut key = [1; 16];
    key[..4].copy_from_slice(&number.to_le_bytes());
    key
}

/// Sends requests at once; their answers in the same order.
fn exchange(smb: &mut Smb, requests: Vec<Vec<u8>>) -> io::Result<Vec<Answer>> {
    let first = smb.next_id - requests.len() as u64;
    let mut answers: Vec<Option<Answer>> = vec![None; requests.len()];
    let mut left = answers.len();
    let frames: Vec<u8> =
        requests.into_iter().flat_map(|one| framed(&smb.protect(&[one]))).collect();
    smb.send_raw(&frames)?;
    while left > 0 {
        for answer in smb.receive()? {
            let at = answer.header.message_id.wrapping_sub(first) as usize;
            let is_last = answer.status() != NtStatus::PENDING;
            if let Some(slot) = answers.get_mut(at).filter(|_| is_last) {
                left -= usize::from(slot.replace(answer).is_none());
            }
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

/// Opens files, with a lease of all that there is to cache where there is a key.
fn create(smb: &mut Smb, asked: Vec<(Ask<'_>, Option<LeaseKey>)>) -> io::Result<Vec<FileId>> {
    let request = |(ask, key): &(Ask<'_>, Option<LeaseKey>)| {
        let named: Vec<Named> = key.iter().map(|key| caching::lease(*key, RWH)).collect();
        smb.request(Command::CREATE, 0, &caching::body(ask, &named))
    };
    let requests = asked.iter().map(request).collect();
    let answers = exchange(smb, requests)?;
    let opened = answers.iter().zip(&asked).map(|(answer, (ask, key))| {
        let wanted = if key.is_some() { RWH } else { 0 };
        match caching::opened(answer) {
            Ok((file, state)) if state == wanted => Ok(file),
            other => Err(io::Error::other(format!("{}: {other:?}", ask.path))),
        }
    });
    opened.collect()
}

fn close(smb: &mut Smb, files: &[FileId]) -> io::Result<()> {
    let request = |file: &FileId| {
        let close = CloseRequest { flags: 0, reserved: 0, file: *file };
        smb.request(Command::CLOSE, 0, &|out| close.put_body(out))
    };
    let requests = files.iter().map(request).collect();
    let answers = exchange(smb, requests)?;
    match answers.iter().find(|answer| answer.status() != NtStatus::SUCCESS) {
        Some(answer) => Err(io::Error::other(format!("CLOSE: {:?}", answer.status()))),
        None => Ok(()),
    }
}

/// What is done with each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// It is there: opened and closed.
    Open,
    /// It is made and closed, opened, and removed when it is closed.
    Life,
}

impl Work {
    const ALL: [Self; 2] = [Self::Open, Self::Life];

    fn name(self) -> String {
        let name = match self {
            Self::Open => "open, close",
            Self::Life => "create, close, open, remove",
        };
        format!("smb {name} 1x{AT_ONCE}")
    }
}

/// A client that opens files.
struct Opener {
    smb: Smb,
    /// The server.
    pid: u32,
}

impl Opener {
    fn new(place: &SmbShare, pid: u32) -> io::Result<Self> {
        place.files(OPENED, AT_ONCE)?;
        Ok(Self { smb: place.client(200)?, pid })
    }

    fn measure(&mut self, extent: &Extent) -> io::Result<Vec<Outcome>> {
        let mut rows = Vec::new();
        for work in Work::ALL {
            if work.name().contains(&extent.only) {
                // The first one fills caches.
                self.cost(work, true, Duration::from_secs_f64(extent.seconds / 2.0))?;
                let cost = |half: usize, time| self.cost(work, half == 1, time);
                rows.push(pairs::run(extent, work.name(), "µs/file", cost)?);
            }
        }
        Ok(rows)
    }

    /// CPU time of the server for each file.
    fn cost(&mut self, work: Work, has_lease: bool, time: Duration) -> io::Result<f64> {
        let (before, end, mut files) = (cpu::of(self.pid)?, Deadline::after(time), 0);
        while !end.passed() {
            self.batch(work, has_lease)?;
            files += AT_ONCE;
        }
        Ok((cpu::of(self.pid)? - before) * 1e6 / f64::from(files.max(1)))
    }

    fn batch(&mut self, work: Work, has_lease: bool) -> io::Result<()> {
        let made = if work == Work::Life { AT_ONCE } else { 0 };
        let paths: Vec<_> = (made..made + AT_ONCE).map(|n| (name(OPENED, n), n)).collect();
        let smb = &mut self.smb;
        let mut open = |ask: AskFor| {
            let creates = paths.iter().map(|(path, n)| (ask(path), has_lease.then(|| key(*n))));
            let files = create(smb, creates.collect())?;
            close(smb, &files)
        };
        match work {
            Work::Open => open(there),
            Work::Life => {
                open(new)?;
                open(gone)
            }
        }
    }
}

/// What is asked of CREATE for a path.
type AskFor = fn(&str) -> Ask<'_>;

/// What is there.
const fn there(path: &str) -> Ask<'_> {
    Ask::open(path)
}

/// What is not there.
const fn new(path: &str) -> Ask<'_> {
    Ask::make(path)
}

/// What is removed when it is closed.
const fn gone(path: &str) -> Ask<'_> {
    Ask::open(path).with(options::DELETE_ON_CLOSE)
}
