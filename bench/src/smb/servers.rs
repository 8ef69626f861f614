//! Plimsoll and smbd on one directory: each as fast as its manual permits, with the same user, and
//! without logs and printers.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Cli;
use crate::group::Group;
use crate::ours::{self, SMB_PASSWORD, SMB_PORT, SMB_UID, SMB_USER, smb_url};
use crate::programs::{Program, Programs};
use crate::servers::await_that;

/// Name of the server under test, in tables.
pub const OURS: &str = "plimsoll";
/// The same directory over NFSv4.1.
pub const NFS4: &str = "plimsoll v4.1";
/// First ports, outside of the usual ranges.
const OFFSET: u16 = 26_200;
const SMBD_PORT: u16 = 29_445;
/// Runs a server where the account exists, and nowhere else on the machine.
const WITH_ACCOUNT: &str = "mount --bind \"$0/passwd\" /etc/passwd && \
    mount --bind \"$0/group\" /etc/group && exec \"$@\"";

/// A running server.
pub struct Server {
    /// Name in the tables.
    pub name: &'static str,
    /// Its version, as it prints it.
    pub version: String,
    /// Its share as a target, without options.
    pub url: String,
    /// The same over NFSv4.1, if it has that.
    pub url4: Option<String>,
    /// Its port.
    pub port: u16,
    /// Name of the share.
    pub share: String,
    /// Its processes.
    pub group: Group,
}

/// Starts both; smbd only if it is installed.
///
/// # Errors
/// Our server does not start or refuses its settings; smbd does not start.
pub fn start(cli: &Cli, base: &Path) -> io::Result<Vec<Server>> {
    let share = share(base)?;
    let mut all = vec![our_server(&cli.binary, base, &share)?];
    let programs = Programs::new(None);
    match (programs.find("smbd"), programs.find("smbpasswd")) {
        (Some(daemon), Some(passwords)) => all.push(smbd(&daemon, &passwords, base, &share)?),
        _ => eprintln!("bench: smbd is not there; no ratios to it (apt-get install samba)"),
    }
    Ok(all)
}

/// Makes the directory of the share.
///
/// # Errors
/// It cannot be made.
pub fn share(base: &Path) -> io::Result<PathBuf> {
    let share = base.join("share");
    fs::create_dir_all(&share)?;
    chown(&share, Some(SMB_UID), Some(SMB_UID))?;
    Ok(share)
}

/// Starts Plimsoll, and configures it.
///
/// # Errors
/// It does not start, or refuses its settings.
pub fn our_server(binary: &Path, base: &Path, share: &Path) -> io::Result<Server> {
    let state = base.join("state");
    let named = state.display().to_string();
    let (group, said) = ours::start(binary, share, (&named, &base.join("log")), OFFSET)?;
    let shares = said["shares"].as_object();
    let (name, ways) = shares
        .and_then(|all| all.iter().next())
        .ok_or_else(|| io::Error::other(format!("no share in {said}")))?;
    let nfs3 = ways["nfs3"].as_str().unwrap_or_default();
    let port = SMB_PORT + OFFSET;
    ours::enable_smb(binary, &state, port)?;
    Ok(Server {
        name: OURS,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        url: smb_url(port, name),
        url4: Some(nfs3.replacen("nfs3://", "nfs4://", 1)),
        port,
        share: name.clone(),
        group,
    })
}

/// smbd with sendfile, and without services other than files.
fn configuration(own: &str, share: &str) -> String {
    format!(
        "[global]\nserver role = standalone server\nmap to guest = never\n\
         smb ports = {SMBD_PORT}\ninterfaces = 127.0.0.1\nbind interfaces only = yes\n\
         disable netbios = yes\ndisable spoolss = yes\nload printers = no\n\
         printcap name = /dev/null\nserver min protocol = SMB2_10\n\
         passdb backend = tdbsam:{own}/passdb.tdb\nprivate dir = {own}\nlock directory = {own}\n\
         state directory = {own}\ncache directory = {own}\npid directory = {own}\n\
         ncalrpc dir = {own}/ncalrpc\nlog file = {own}/log\nlog level = 0\n\
         use sendfile = yes\n\
         [box]\npath = {share}\nread only = no\n"
    )
}

/// At its end smbd ends its process group, which would be that of the calling program; with a
/// separate session it still ends when this program is killed.
const OWN_SESSION: [&str; 3] = ["setpriv", "--pdeathsig=TERM", "setsid"];

fn smbd(daemon: &Program, passwords: &Program, base: &Path, share: &Path) -> io::Result<Server> {
    let own = base.join("smbd");
    fs::create_dir_all(own.join("ncalrpc"))?;
    for (file, line) in [
        ("passwd", format!("{SMB_USER}:x:{SMB_UID}:{SMB_UID}::/:/bin/sh\n")),
        ("group", format!("{SMB_USER}:x:{SMB_UID}:\n")),
    ] {
        let there = fs::read_to_string(Path::new("/etc").join(file)).unwrap_or_default();
        let path = own.join(file);
        fs::write(&path, format!("{there}{line}"))?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    }
    let (folder, root) = (own.display().to_string(), share.display().to_string());
    let conf = own.join("smb.conf").display().to_string();
    fs::write(&conf, configuration(&folder, &root))?;
    let within = |program: &Program, arguments: &[&str]| -> Vec<String> {
        let with = ["unshare", "--mount", "sh", "-c", WITH_ACCOUNT, &folder];
        let with = OWN_SESSION.iter().chain(&with).map(|word| (*word).to_owned());
        with.chain(program.command()).chain(arguments.iter().map(|w| (*w).to_owned())).collect()
    };
    password(&within(passwords, &["-c", &conf, "-s", "-a", SMB_USER]))?;
    let words = within(daemon, &["-s", &conf, "--foreground", "--no-process-group"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let group = Group::start(&words, &own.join("said"), None)?;
    await_that("smbd's port", || TcpStream::connect(("127.0.0.1", SMBD_PORT)).is_ok())?;
    Ok(Server {
        name: "smbd",
        version: daemon.version("--version"),
        url: smb_url(SMBD_PORT, "box"),
        url4: None,
        port: SMBD_PORT,
        share: "box".to_owned(),
        group,
    })
}

/// Passes the password to smbpasswd.
fn password(words: &[String]) -> io::Result<()> {
    use std::io::Write;
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        write!(input, "{SMB_PASSWORD}\n{SMB_PASSWORD}\n")?;
    }
    let done = child.wait_with_output()?;
    match done.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            Err(io::Error::other(format!("smbpasswd: {why}")))
        }
    }
}
