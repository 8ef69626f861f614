//! The process of a run: started, listened to, ended.

use super::run::Run;
use super::store::{JOB, Store, job_of};
use crate::archive::TEXT;
use crate::archive::request::{IozoneRequest, Kind, WmlRequest};
use crate::conduct::RunEvent;
use crate::suite::request::SuiteRequest;
use base::clock::Deadline;
use base::limits::{LAB_MESSAGE_MAX, LAB_STOP_MAX, LAB_WORDS_MAX};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{self, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// News that may wait to be taken: there are a few in a second at most.
const WAITING: usize = 64;

/// A run's process. It ends when its standard input does.
pub(super) struct Child {
    process: process::Child,
    input: Option<ChildStdin>,
    overdue: Option<Deadline>,
}

/// What comes from it.
pub(super) enum News {
    /// Progress.
    Progress(RunEvent),
    /// Anything else.
    Words(String),
    /// Nothing yet.
    Nothing,
}

/// Its news, in order.
pub(super) struct Feed(Receiver<News>);

impl Feed {
    /// The next piece; `None` when the process has closed its standard error output.
    pub(super) fn next(&self, wait: Duration) -> Option<News> {
        match self.0.recv_timeout(wait) {
            Ok(news) => Some(news),
            Err(RecvTimeoutError::Timeout) => Some(News::Nothing),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

impl Child {
    pub(super) fn start(
        program: &Path,
        socket: &Path,
        store: &Store,
        run: &Run,
    ) -> io::Result<(Self, Feed)> {
        let mut command = command(program, socket, &store.place(&run.id), run);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let input = process.stdin.take();
        let (sender, receiver) = sync_channel(WAITING);
        if let Some(said) = process.stderr.take() {
            std::thread::spawn(move || {
                let mut said = BufReader::new(said);
                while let Some(news) = line(&mut said) {
                    if sender.send(news).is_err() {
                        return;
                    }
                }
            });
        }
        Ok((Self { process, input, overdue: None }, Feed(receiver)))
    }

    /// Requests it to end.
    pub(super) fn stop(&mut self) {
        drop(self.input.take());
        self.overdue = Some(Deadline::after(LAB_STOP_MAX));
    }

    /// Kills it if it was requested to end and does not.
    pub(super) fn kill_overdue(&mut self) {
        if self.overdue.as_ref().is_some_and(|deadline| deadline.passed()) {
            // It may have ended just now.
            let _ = self.process.kill();
        }
    }

    /// Waits for the process to exit after [`Feed::next`] has returned `None`; its exit code.
    pub(super) fn end(mut self) -> Option<i32> {
        wait(&mut self.process, LAB_STOP_MAX)
    }
}

/// The command of a run. Its jobs are files in its folder, in which it works.
fn command(program: &Path, socket: &Path, place: &Path, run: &Run) -> Command {
    let mut command = Command::new(program);
    command.arg("lab");
    let jobs: Vec<String> = (0..run.jobs.max(1)).map(|n| format!("./{}", job_of(n))).collect();
    let jobs = jobs.join(",");
    match run.kind {
        Kind::Run => {
            command.arg("run").arg(place.join(JOB));
        }
        Kind::Limits => {
            // Folders of columns are removed after the last row.
            command.args(["limits", "--clean", "--rows", &jobs]);
            command.args(run.quick.then_some("--quick"));
            command.args(run.prove.then_some("--prove"));
        }
        Kind::Ab => {
            let to = format!("{}", run.rule.to * 100.0);
            command.args(["ab", &jobs, "--to", &to, "--rounds", &run.rule.rounds.to_string()]);
        }
        Kind::Program => program_words(&mut command, run.wml.as_ref()),
        Kind::Iozone => iozone_words(&mut command, run.iozone.as_ref()),
        Kind::Suite => {
            command.args(run.suite.iter().flat_map(SuiteRequest::words)).arg("--clean");
        }
        Kind::Net => {
            command.args(["net", &run.job, "--while-stdin", "--progress", "json", "--out"]);
            command.arg(place).current_dir(place);
            command.args(run.settings.iter().flat_map(|setting| ["--set", setting.as_str()]));
            return command;
        }
    }
    for target in run.all_targets() {
        command.args(["--target", &target.url]);
    }
    command.args(["--scratch", &run.scratch, "--while-stdin"]);
    command.args(["--progress", "json"]);
    if !matches!(run.kind, Kind::Program | Kind::Iozone) {
        command.args(["--clients", &run.clients.to_string()]);
    }
    if matches!(run.kind, Kind::Run | Kind::Limits) {
        // Other runs wait: one that was disturbed is marked, not repeated.
        command.args(["--retries", "0"]);
    }
    command.arg("--out").arg(place).current_dir(place);
    if run.own {
        command.arg("--server-socket").arg(socket);
    }
    command
}

/// A program, of which the text is in the folder of the run.
fn program_words(command: &mut Command, wml: Option<&WmlRequest>) {
    command.args(["run", TEXT]);
    let Some(wml) = wml else { return };
    for setting in &wml.settings {
        command.args(["--set", setting]);
    }
    if let Some(seconds) = wml.seconds {
        command.args(["--seconds", &seconds.to_string()]);
    }
    command.args(["--seed", &wml.seed.to_string()]);
}

/// Tests of IOzone.
fn iozone_words(command: &mut Command, iozone: Option<&IozoneRequest>) {
    command.arg("iozone");
    let Some(IozoneRequest { seed, settings, .. }) = iozone else { return };
    let kb = |bytes: u64| format!("{}k", bytes >> 10);
    command.args(["-t", &settings.threads.to_string(), "-s", &kb(settings.size)]);
    command.args(["-r", &kb(settings.record), "-j", &settings.stride.to_string()]);
    for test in &settings.tests {
        command.args(["-i", &test.to_string()]);
    }
    let flags = [
        (settings.no_retest, "-+n"),
        (settings.flush, "-e"),
        (settings.close, "-c"),
        (settings.sync, "-o"),
        (settings.no_stonewall, "-x"),
    ];
    command.args(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag));
    command.args(["--seed", &seed.to_string()]);
}

/// A process's exit code. One that does not end in time is killed.
fn wait(process: &mut process::Child, within: Duration) -> Option<i32> {
    let deadline = Deadline::after(within);
    loop {
        match process.try_wait() {
            Ok(Some(status)) => return status.code(),
            Ok(None) if !deadline.passed() => std::thread::sleep(Duration::from_millis(10)),
            _ => break,
        }
    }
    let _ = process.kill();
    process.wait().ok().and_then(|status| status.code())
}

fn line(said: &mut impl BufRead) -> Option<News> {
    let mut line = String::new();
    let read = said.take(LAB_MESSAGE_MAX as u64).read_line(&mut line).ok()?;
    (read > 0).then(|| match serde_json::from_str(&line) {
        Ok(event) => News::Progress(event),
        Err(_) => News::Words(line),
    })
}

/// Adds output, and drops what does not fit.
pub(super) fn keep_words(words: &mut String, said: &str) {
    let room = LAB_WORDS_MAX.saturating_sub(words.len());
    words.extend(said.chars().take(room / 4));
}

/// Removes what a run has left on its target.
///
/// # Errors
/// One sentence: why it may still be there.
pub(super) fn clean(
    program: &Path,
    target: &str,
    scratch: &str,
    within: Duration,
) -> Result<(), String> {
    let started = Command::new(program)
        .args(["lab", "clean", "--target", target, "--scratch", scratch])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = started.map_err(|e| format!("the program cannot be started: {e}"))?;
    let mut words = String::new();
    let said = process.stderr.take().map(|said| said.take(LAB_WORDS_MAX as u64));
    let code = wait(&mut process, within);
    if let Some(mut said) = said {
        // Its message is for users; without it the code must do.
        let _ = said.read_to_string(&mut words);
    }
    match (code, words.trim()) {
        (Some(0), _) => Ok(()),
        (_, "") => Err("it could not be removed in time".to_owned()),
        (_, words) => Err(words.trim_start_matches("plimsoll lab: ").to_owned()),
    }
}
