//! `plimsoll dsync`: makes a directory the same as another.

mod options;
mod report;
mod retry;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::clock::SystemClock;
use base::failure::{DEGRADED, Failure, OrFailure};
use base::limits::{DSYNC_PATTERN_MAX, DSYNC_RULES_MAX};
use wire::dsync::Rule;
use wire::xdr::Seq;

pub use self::options::DsyncArgs;
use self::options::RuleArg;
use self::report::Reporter;
use self::retry::Retry;
use crate::events::{Event, Report};
use crate::guard::Guard;
use crate::index::{Index, IndexedTrees};
use crate::run::ssh::{Location, Shell, place};
use crate::run::{self, With};
use crate::streams::connect::Calling;
use crate::{Counts, Options, Role, SyncError, Why, rules};

/// What is done, for messages.
const TRIED: &str = "synchronise the directories";

/// Runs it, or answers for the other side.
///
/// # Errors
/// What was asked cannot be meant, or the run did not come to its end.
pub fn run(args: &DsyncArgs) -> Result<ExitCode, Failure> {
    if args.answer {
        let link = run::stdio().or_failure(TRIED)?;
        run::answer(link, reached())
            .map_err(|why| Failure::of("answer another dsync", why.error()))?;
        // Failures of single files are reported by the side that the user has started.
        return Ok(ExitCode::SUCCESS);
    }
    let options = options(args)?;
    let (source, destination) = (named(args.source.as_ref())?, named(args.destination.as_ref())?);
    let reporter = Arc::new(Reporter::new(args));
    let carried = Arc::new(AtomicBool::new(false));
    let report: Report = {
        let (reporter, carried) = (Arc::clone(&reporter), Arc::clone(&carried));
        Arc::new(move |event| {
            if let Event::Progress(progress) = &event {
                carried.fetch_or(progress.counts.bytes_received > 0, Ordering::Relaxed);
            }
            reporter.event(event);
        })
    };
    if let (Location::Local(from), Location::Local(to)) = (&source, &destination) {
        apart(from, to)?;
    }
    let mut retry = Retry::new(args.retry);
    let guard = args.guard.map(Guard::inherited).transpose();
    let guard = guard.or_failure("reach the server that has started this run")?;
    let done = loop {
        let done = once(args, (&source, &destination), &options, (&report, guard.as_ref()))?;
        let Err(why) = &done else { break done };
        let next = retry.after(why.error(), carried.swap(false, Ordering::Relaxed));
        let Some((wait, left)) = next else { break done };
        reporter.retry(why.error(), wait, left);
        std::thread::sleep(wait);
    };
    reporter.clear();
    let counts: Counts = done.map_err(|why| failure(&why))?;
    reporter.end(&counts)?;
    Ok(if counts.failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(DEGRADED) })
}

/// A run, to its end or until it breaks off.
fn once(
    args: &DsyncArgs,
    (source, destination): (&Location, &Location),
    options: &Options,
    (report, guard): (&Report, Option<&Arc<Guard>>),
) -> Result<Result<Counts, Why>, Failure> {
    let index = index(args, source, destination)?;
    let with = With { index: index.as_ref(), guard };
    let (role, here, there) = match (source, destination) {
        (Location::Local(from), Location::Local(to)) => {
            return Ok(run::local_with(from, to, options, report, with));
        }
        (Location::Local(here), Location::Remote(there)) => (Role::SOURCE, here, there),
        (Location::Remote(there), Location::Local(here)) => (Role::DESTINATION, here, there),
        (Location::Remote(_), Location::Remote(_)) => {
            let hint = "run it on one of the two machines";
            return Err(Failure::usage(TRIED, "both are on other machines", hint));
        }
    };
    let calling = Calling {
        wish: args.streams,
        ports: args.data_port.unwrap_or_default(),
        hosts: vec![there.machine().to_owned()],
    };
    let shell = Shell {
        rsh: args.rsh.split_whitespace().map(str::to_owned).collect(),
        program: args.remote_program.clone(),
    };
    let ends = (here.as_path(), there.path.as_slice());
    Ok(shell.reach(there).map_err(Why::from).and_then(|(reached, link)| {
        reached.end(run::start_with(link, role, ends, options, (&calling, report), with))
    }))
}

/// The address by which ssh has come to this machine.
fn reached() -> Option<IpAddr> {
    // sshd(8): address and port of the client, then those of the server.
    let connection = std::env::var("SSH_CONNECTION").ok()?;
    connection.split(' ').nth(2)?.parse().ok()
}

fn named(text: Option<&OsString>) -> Result<Location, Failure> {
    let text = text.cloned().unwrap_or_default();
    place(text.as_bytes()).map_err(|why| {
        let hint = "a directory, [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]/PATH, or \
                    dsync://[USER@]HOST[:PORT]/SHARE/PATH";
        Failure::usage(TRIED, &format!("{}: {why}", text.display()), hint)
    })
}

/// Where something is, or would be.
fn real(path: &Path) -> Option<PathBuf> {
    // What is not there yet is where its parent is.
    path.canonicalize().ok().or_else(|| {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(parent.canonicalize().ok()?.join(path.file_name()?))
    })
}

/// What is kept from one run to the next, if that was asked for.
fn index(
    args: &DsyncArgs,
    source: &Location,
    destination: &Location,
) -> Result<Option<Arc<Index>>, Failure> {
    let Some(file) = &args.index else { return Ok(None) };
    let name = |place: &Location| match place {
        Location::Local(path) => {
            real(path).unwrap_or_else(|| path.clone()).into_os_string().into_vec()
        }
        Location::Remote(there) => {
            let kind = if there.share { "dsync" } else { "ssh" };
            let port = there.port.map(|port| format!(":{port}")).unwrap_or_default();
            let head = format!("{kind}://{}{port} ", there.host);
            [head.as_bytes(), &there.path].concat()
        }
    };
    let within = |place: &Location| match (place, real(file)) {
        (Location::Local(path), Some(file)) => {
            real(path).is_some_and(|path| file.starts_with(path))
        }
        _ => false,
    };
    if within(source) || within(destination) {
        let what = format!("{} is inside a directory that is synchronised", file.display());
        return Err(Failure::usage(TRIED, &what, "put the --index file outside them"));
    }
    let places = IndexedTrees { source: name(source), destination: name(destination) };
    let index = Index::open(file, places, args.dry_run, Arc::new(SystemClock));
    index.map(Some).or_failure("keep an index of the directories")
}

/// A directory within the other would be carried into itself.
fn apart(from: &Path, to: &Path) -> Result<(), Failure> {
    let (Ok(from), Some(to)) = (from.canonicalize(), real(to)) else { return Ok(()) };
    match from.starts_with(&to) || to.starts_with(&from) {
        true => Err(Failure::usage(TRIED, "one of them is within the other", "")),
        false => Ok(()),
    }
}

fn options(args: &DsyncArgs) -> Result<Options, Failure> {
    let rate = |text: &String| {
        let (wrong, hint) = (format!("{text:?} is not a rate"), "for example 10MB/s or 800KiB/s");
        options::rate(text).ok_or_else(|| Failure::usage(TRIED, &wrong, hint))
    };
    let bandwidth = args.bandwidth.as_ref().map_or(Ok(0), rate)?;
    Ok(Options {
        delete: args.delete,
        checksum: args.checksum,
        dry_run: args.dry_run,
        owners: !args.no_owner,
        names: !args.numeric_ids,
        xattrs: !args.no_xattrs,
        devices: !args.no_devices,
        set_id: !args.no_set_id,
        pack: !args.no_compress,
        in_place: args.in_place,
        bandwidth,
        rules: Seq(all_rules(&args.rules.in_order())?),
    })
}

fn all_rules(given: &[&RuleArg]) -> Result<Vec<Rule>, Failure> {
    let mut all = Vec::new();
    for rule in given {
        match rule {
            RuleArg::Include(pattern) => all.push(rules::rule(true, pattern.as_bytes())),
            RuleArg::Exclude(pattern) => all.push(rules::rule(false, pattern.as_bytes())),
            RuleArg::ExcludeFrom(file) => {
                let text = std::fs::read(file)
                    .map_err(|e| Failure::usage(TRIED, &format!("{}: {e}", file.display()), ""))?;
                let lines = text.split(|b| *b == b'\n');
                let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
                let patterns =
                    lines.filter(|line| !matches!(line.first(), None | Some(b'#' | b';')));
                all.extend(patterns.map(|pattern| rules::rule(false, pattern)));
            }
        }
    }
    let wrong = |what: &str| Err(Failure::usage(TRIED, what, ""));
    if all.len() > DSYNC_RULES_MAX {
        return wrong(&format!("there are more than {DSYNC_RULES_MAX} rules"));
    }
    if all.iter().any(|rule| rule.pattern.0.len() > DSYNC_PATTERN_MAX) {
        return wrong(&format!("a pattern is longer than {DSYNC_PATTERN_MAX} bytes"));
    }
    rules::Rules::new(&all).map_err(|e| Failure::usage(TRIED, &e.to_string(), ""))?;
    Ok(all)
}

fn failure(why: &Why) -> Failure {
    Failure::of(TRIED, why.error()).hint(match why.error() {
        SyncError::Place { source, .. } if source.kind() == ErrorKind::NotFound => {
            "the source must exist; the destination is created if its parent exists"
        }
        SyncError::Unreached(_) => {
            "see the messages above; --remote-program sets the command that starts plimsoll on \
             the other machine"
        }
        SyncError::Gone | SyncError::Link(_) => "repeat the same command to resume",
        SyncError::Version { .. } => "install the same version of plimsoll on both machines",
        _ => "",
    })
}
