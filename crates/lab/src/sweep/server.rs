//! The server of a point: this program again, `plimsoll serve`, beyond the link, with files of its
//! own. It is started for each sample, as the link is, and ends with it.

use super::plan::{At, Plan};
use super::transport::{SweepError, tried};
use crate::bridge::device::{DeviceError, NetworkNamespace};
use crate::bridge::folder::Folder;
use crate::bridge::scene::{SECOND, Scene};
use crate::client::FileSet;
use crate::client::service::at::{Scheme, Secret, ServiceAt};
use crate::client::target::Target;
use crate::pattern::Content;
use base::limits::{LAB_SILENCE_MAX, LAB_STREAM_BUFFER, SWEEP_FLIGHT_MIN};
use base::random::{Random, SystemRandom};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

/// The share, and the folder that it is.
const SHARE: &str = "sweep";
/// The user of the server.
const USER: &str = "sweep";
/// Its only client is the laboratory: that network has no other host.
const SSH: &str = "ssh -F none -q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
                   -o PubkeyAuthentication=no -o NumberOfPasswordPrompts=1";
/// Settings of TCP, which each network namespace has for itself.
const SETTINGS: &str = "/proc/sys/net/ipv4";

/// A running server. Dropping it ends it and removes its files.
#[derive(Debug)]
pub struct Server {
    child: Child,
    said: Value,
    password: String,
    /// Ends the thread that has started the server, and so the server, whatever becomes of this
    /// program.
    keep: Option<SyncSender<()>>,
    keeper: Option<JoinHandle<()>>,
    folder: Folder,
}

impl Server {
    /// Sets TCP as the point wants it at both ends of the link, and starts a server at the second.
    ///
    /// # Errors
    /// The kernel refuses a setting, or the server's error if it is not ready.
    pub fn start(plan: &Plan, at: &At, link: &Scene) -> Result<Self, SweepError> {
        for place in [&link.first, &link.second] {
            set(place, plan, at)?;
        }
        let folder = Folder::new("sweep").map_err(tried("make a folder for temporary files"))?;
        let password = format!("{:016x}", SystemRandom.next_u64());
        let command = command(&folder, &password).map_err(tried("prepare a server"))?;
        let (keep, kept) = mpsc::sync_channel(0);
        let (say, hear) = mpsc::sync_channel(1);
        let place = link.second.clone();
        let keeper = std::thread::spawn(move || keep_running(&place, command, say, kept));
        let child = hear.recv().map_err(|_| SweepError::Nothing)??;
        let keeper = Some(keeper);
        let mut server =
            Self { child, said: Value::Null, password, keep: Some(keep), keeper, folder };
        server.said = server.ready()?;
        Ok(server)
    }

    /// The announcement that the server prints when it is ready.
    fn ready(&mut self) -> Result<Value, SweepError> {
        let out = self.child.stdout.take();
        let (say, hear) = mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let (mut out, mut line) = (BufReader::new(out?), String::new());
            let _end = out.read_line(&mut line);
            let _gone = say.send(line);
            // The pipe stays open for later output.
            io::copy(&mut out, &mut io::sink()).ok()
        });
        let line = hear.recv_timeout(LAB_SILENCE_MAX).unwrap_or_default();
        serde_json::from_str(&line).map_err(|_| SweepError::Server(self.why()))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its error messages, and its log of connections.
    pub fn why(&self) -> String {
        let text = fs::read_to_string(log(self.folder.path())).unwrap_or_default();
        match text.trim() {
            "" => "no message".to_owned(),
            text => text.lines().map(str::trim).collect::<Vec<_>>().join("; "),
        }
    }

    /// The files of a client, sparse, as [`crate::client::Client::prepare`] wants them.
    ///
    /// # Errors
    /// No room for them.
    pub fn make_files(&self, set: &FileSet) -> Result<(), SweepError> {
        let dir = share(self.folder.path()).join(set.dir_name());
        let make = || -> io::Result<()> {
            fs::create_dir(&dir)?;
            fs::set_permissions(&dir, Permissions::from_mode(0o777))?;
            for number in 0..set.files {
                let file = File::create_new(dir.join(set.file_name(number)))?;
                file.set_permissions(Permissions::from_mode(0o666))?;
                file.set_len(set.size)?;
            }
            Ok(())
        };
        make().map_err(tried("make files for the server"))
    }

    /// A run of dsync that brings a new file of `bytes` bytes to the share, on `streams` streams.
    ///
    /// # Errors
    /// It does not serve that, or there is no room for the file.
    pub fn dsync(
        &self,
        streams: u32,
        bytes: u64,
        content: &Content,
    ) -> Result<Command, SweepError> {
        let (folder, at) = (self.folder.path(), self.service(Scheme::Sftp)?);
        let (source, ask) = (folder.join("source"), folder.join("ask"));
        let make = || -> io::Result<(PathBuf, File)> {
            fs::create_dir(&source)?;
            fill(&File::create_new(source.join("file"))?, bytes, content)?;
            // ssh takes a password from a program alone.
            fs::write(&ask, format!("#!/bin/sh\ncat '{}'\n", secret(folder).display()))?;
            fs::set_permissions(&ask, Permissions::from_mode(0o700))?;
            Ok((std::env::current_exe()?, File::options().append(true).open(log(folder))?))
        };
        let (program, log) = make().map_err(tried("prepare a run of dsync"))?;
        let mut command = Command::new(program);
        command.args(["dsync", "--json", "--no-compress", "--no-owner"]);
        command.args(["--streams", &streams.to_string(), "--rsh", SSH]).arg(source);
        command.arg(format!("dsync://{USER}@{}:{}/{SHARE}/copy", at.host, at.port));
        command.env("SSH_ASKPASS", ask).env("SSH_ASKPASS_REQUIRE", "force").env("DISPLAY", ":0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        Ok(command)
    }

    /// Its share by NFSv3.
    ///
    /// # Errors
    /// It does not serve that.
    pub fn nfs(&self) -> Result<Target, SweepError> {
        Ok(Target::parse(self.way("nfs3")?)?)
    }

    /// Its share by a service.
    ///
    /// # Errors
    /// It does not serve that.
    pub fn service(&self, scheme: Scheme) -> Result<ServiceAt, SweepError> {
        let url = self.way(scheme.listener())?;
        let (_, rest) = url.split_once("://").unwrap_or_default();
        // It is the server that was started here that replies: that network has no other host.
        let query = if scheme.is_secure() { "?insecure" } else { "" };
        let target = Target::parse(&format!("{}://{USER}@{rest}{query}", scheme.name()))?;
        let Target::Service(mut at) = target else { return Err(SweepError::Nothing) };
        at.secret = Secret::Given(self.password.clone());
        Ok(at)
    }

    fn way(&self, protocol: &str) -> Result<&str, SweepError> {
        let none = || SweepError::Server(format!("it does not serve {protocol}: {}", self.why()));
        self.said["shares"][SHARE][protocol].as_str().ok_or_else(none)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing that it has is wanted any more.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        drop(self.keep.take());
        let _ended = self.keeper.take().map(JoinHandle::join);
    }
}

/// Starts the server in the network of `place`, and stays until `kept` ends: the kernel ends the
/// server together with the thread that has started it.
fn keep_running(
    place: &NetworkNamespace,
    mut command: Command,
    say: SyncSender<Result<Child, DeviceError>>,
    kept: Receiver<()>,
) {
    let to = say.clone();
    let run = move || -> Result<(), DeviceError> {
        let what = "start a server".to_owned();
        let child = command.spawn().map_err(|source| DeviceError::Refused { what, source })?;
        let _heard = to.send(Ok(child));
        let _ended = kept.recv();
        Ok(())
    };
    if let Err(error) = place.within(run) {
        let _heard = say.send(Err(error));
    }
}

fn share(folder: &Path) -> PathBuf {
    folder.join(SHARE)
}

fn log(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// The file with the password.
fn secret(folder: &Path) -> PathBuf {
    folder.join("password")
}

/// Writes a file with incompressible content.
fn fill(mut file: &File, bytes: u64, content: &Content) -> io::Result<()> {
    let (mut at, mut piece) = (0, vec![0; LAB_STREAM_BUFFER]);
    while at < bytes {
        content.fill(0, at, &mut piece);
        let part = piece.len().min(usize::try_from(bytes - at).unwrap_or(usize::MAX));
        file.write_all(&piece[..part])?;
        at += part as u64;
    }
    Ok(())
}

/// The command that serves the share of `folder`, which it makes.
fn command(folder: &Folder, password: &str) -> io::Result<Command> {
    let folder = folder.path();
    let (share, state, secret) = (share(folder), folder.join("state"), secret(folder));
    for dir in [&share, &state] {
        fs::create_dir(dir)?;
    }
    // For any user that the server impersonates: no other user gets into the folder above.
    fs::set_permissions(&share, Permissions::from_mode(0o777))?;
    fs::write(&secret, password)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").arg(share).arg("--state").arg(&state);
    command.args(["--address", &SECOND.to_string(), "--announce", "json", "--no-portmap"]);
    command.arg("--user").arg(format!("{USER}:@{}", secret.display()));
    // It is not to be found by other commands.
    command.env("XDG_RUNTIME_DIR", &state);
    let log = File::create(log(folder))?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    // SAFETY: one system call with two numbers, which may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    Ok(command)
}

/// Sets TCP in a network as the point wants it; sockets that are made there from now on have it.
fn set(place: &NetworkNamespace, plan: &Plan, at: &At) -> Result<(), SweepError> {
    let settings = settings(plan, at);
    let work = || -> Result<(), DeviceError> {
        for (name, value) in &settings {
            let what = || format!("set {name} of the network {place} to {value}");
            let path = Path::new(SETTINGS).join(name);
            let done = fs::write(&path, value);
            done.map_err(|source| DeviceError::Refused { what: what(), source })?;
        }
        Ok(())
    };
    Ok(place.within(work)?)
}

/// Settings of TCP for a point. Room for what is in flight; where blocks are waited for, from the
/// first on, since nothing of TCP shall limit those.
fn settings(plan: &Plan, at: &At) -> Vec<(&'static str, String)> {
    // Packets take more room than their payload, small ones several times as much.
    let most = plan.flight(at).saturating_mul(4);
    let first = if plan.carrier.waits() { most } else { most.min(SWEEP_FLIGHT_MIN / 2) };
    let room = format!("4096 {first} {most}");
    vec![
        ("tcp_congestion_control", at.congestion.clone()),
        ("tcp_rmem", room.clone()),
        ("tcp_wmem", room),
        // A window that was let lie while a block was waited for does not begin small again.
        ("tcp_slow_start_after_idle", "0".to_owned()),
    ]
}

#[cfg(test)]
mod tests;
