//! OpenSSH's sshd on another machine of a test's own: in a network namespace behind a cable, with
//! host key, accounts and configuration of its own. Nothing of this machine's is used or changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;

use crate::lab::lines;
use crate::link::{Link, SERVER};
use crate::scratch::Scratch;
use crate::{NOBODY, has, is_root, process};

/// How long it may take until it listens, on a busy machine.
const START: std::time::Duration = crate::patience(20);
/// Where the package is unpacked (`.ci/deps`): an installed one would start itself.
const UNPACKED: &str = "tools/openssh";
/// Runs sshd where its accounts and its folder are, and nowhere else.
const WITH_ACCOUNTS: &str = "mount --make-rprivate / && mount --bind \"$0/passwd\" /etc/passwd && \
    mount -t tmpfs -o mode=755 none /run && mkdir /run/sshd && exec \"$@\"";

/// The machine there, and the way to it. Dropping it ends sshd.
pub struct Sshd {
    /// Both networks.
    pub link: Link,
    child: Child,
    scratch: Scratch,
    _said: Receiver<String>,
}

impl Sshd {
    /// Starts it; root and `nobody` may log in with the same key. Needs root, `ip`, OpenSSH's
    /// client and server.
    ///
    /// # Errors
    /// What is missing, for a SKIP line.
    ///
    /// # Panics
    /// When it does not start though all is there.
    pub fn start() -> Result<Self, String> {
        let missing = ["ip", "unshare", "setpriv", "ssh", "ssh-keygen"].into_iter();
        match missing.into_iter().find(|program| !has(program)) {
            _ if !is_root() => return Err("needs root".to_owned()),
            Some(program) => return Err(format!("{program} is missing")),
            None => {}
        }
        let (program, libraries) = find().ok_or("sshd is missing (openssh-server)")?;
        let link = Link::new(None)?;
        let scratch = Scratch::new("sshd");
        let dir = scratch.path();
        for key in ["host-key", "key", "wrong-key"] {
            let mut make = Command::new("ssh-keygen");
            make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(dir.join(key));
            process::succeed(&mut make);
        }
        // ssh insists that a key is its user's; root may use that of another.
        for key in ["key", "wrong-key"] {
            chown(dir.join(key), Some(NOBODY), Some(NOBODY)).expect("giving it away");
        }
        fs::copy(dir.join("key.pub"), dir.join("authorized")).expect("a key");
        let host = fs::read_to_string(dir.join("host-key.pub")).expect("a key");
        let other = fs::read_to_string(dir.join("wrong-key.pub")).expect("a key");
        write(&dir.join("known"), &format!("{SERVER} {host}"));
        write(&dir.join("known-other"), &format!("{SERVER} {other}"));
        let home = scratch.folder("home", Some(NOBODY)).display().to_string();
        let accounts = format!(
            "root:x:0:0::{home}:/bin/sh\nnobody:x:{NOBODY}:{NOBODY}::{home}:/bin/sh\n\
             sshd:x:65533:{NOBODY}::/run/sshd:/usr/sbin/nologin\n"
        );
        write(&dir.join("passwd"), &accounts);
        write(&dir.join("sshd_config"), &configuration(dir));
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", WITH_ACCOUNTS]).arg(dir);
        command.arg(program).args(["-D", "-e", "-f"]).arg(dir.join("sshd_config"));
        if let Some(libraries) = libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        link.server.enter(&mut command);
        let mut child = command.spawn().expect("sshd");
        let said = lines(child.stderr.take().expect("a pipe"));
        let mut all = String::new();
        while !all.contains("Server listening") {
            let line = said.recv_timeout(START);
            all += &line.unwrap_or_else(|_| panic!("sshd does not listen: {all}"));
        }
        Ok(Self { link, child, scratch, _said: said })
    }

    /// ssh as a user, with the right key (`key`) or another, and with what is known of the host
    /// (`known`).
    pub fn ssh(&self, user: &str, key: &str, known: &str) -> String {
        let dir = self.scratch.path().display();
        format!(
            "ssh -F none -a -x -l {user} -i {dir}/{key} -o IdentitiesOnly=yes -o BatchMode=yes \
             -o UserKnownHostsFile={dir}/{known} -o GlobalKnownHostsFile=none \
             -o StrictHostKeyChecking=yes"
        )
    }

    /// A key file: `key`, `wrong-key`, `host-key`, or one of them with `.pub`.
    ///
    /// # Panics
    /// When there is none of this name.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.scratch.path().join(name)).expect("a key")
    }

    /// The processes of the sessions.
    pub fn sessions(&self) -> Vec<u32> {
        children(self.child.id())
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let sessions = self.sessions();
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        sessions.into_iter().for_each(|pid| process::signal(pid, libc::SIGKILL));
    }
}

/// The program, and the folder of its libraries if it was unpacked.
fn find() -> Option<(PathBuf, Option<PathBuf>)> {
    let target = std::env::current_exe().ok()?;
    // target/debug/deps/PROGRAM
    let root = target.ancestors().nth(3)?.join(UNPACKED);
    let unpacked = root.join("usr/sbin/sshd");
    let tuple = std::env::consts::ARCH.to_owned() + "-linux-gnu";
    let here = || Path::new("/usr/sbin/sshd").exists().then(|| PathBuf::from("/usr/sbin/sshd"));
    match unpacked.exists() {
        true => Some((unpacked, Some(root.join("usr/lib").join(tuple)))),
        false => here().map(|program| (program, None)),
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("its mode");
}

fn configuration(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "Port 22\nListenAddress {SERVER}\nHostKey {dir}/host-key\nPidFile none\n\
         AuthorizedKeysFile {dir}/authorized\nStrictModes no\nUsePAM no\nUseDNS no\n\
         PermitRootLogin prohibit-password\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nPrintMotd no\n"
    )
}

/// The processes that a process has started and that still are.
fn children(parent: u32) -> Vec<u32> {
    let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let of = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name, in parentheses, may have spaces; state and parent follow it.
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').nth(1).and_then(|parent| parent.parse().ok()) == Some(parent)
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    all.filter_map(|entry| number(&entry)).filter(of).collect()
}
