//! OpenSSH at the far end, and the connection of the near one: keys and files of this run only.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::clock::Deadline;
use lab::bridge::scene::SECOND;

use super::link::Networks;
use crate::group::Group;
use crate::programs::{Programs, made};

/// Port of sshd: the network is separate.
pub const PORT: u16 = 22;
/// Time limit until it listens.
const START_MAX: Duration = Duration::from_secs(20);
/// Interval of the checks.
const START_POLL: Duration = Duration::from_millis(20);
/// Runs sshd where its account and its folder exist, and nowhere else on the machine; `ip netns
/// exec` has made a namespace for mounts.
const WITH_ACCOUNT: &str = "mount --bind \"$0/passwd\" /etc/passwd && \
    mount -t tmpfs -o mode=755 none /run && mkdir /run/sshd && exec \"$@\"";

/// The far side.
pub struct Far {
    /// sshd and its child processes.
    pub group: Group,
    /// Its version.
    pub version: String,
    folder: PathBuf,
}

impl Far {
    /// Starts sshd in the far network.
    ///
    /// # Errors
    /// sshd is missing, or does not listen.
    pub fn start(base: &Path, networks: &Networks, programs: &Programs) -> io::Result<Self> {
        let missing = || io::Error::other("sshd is not installed (openssh-server)");
        let sshd = programs.find("sshd").ok_or_else(missing)?;
        let folder = base.join("ssh");
        fs::create_dir_all(&folder)?;
        let path = |name: &str| folder.join(name).display().to_string();
        for key in ["host-key", "key"] {
            made("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path(key)])?;
        }
        fs::copy(path("key.pub"), path("authorized"))?;
        let host = fs::read_to_string(path("host-key.pub"))?;
        fs::write(path("known"), format!("{SECOND} {host}"))?;
        let passwd = fs::read_to_string("/etc/passwd")?;
        let account = "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n";
        let own = if passwd.contains("\nsshd:") { "" } else { account };
        fs::write(path("passwd"), passwd + own)?;
        fs::write(path("sshd_config"), server(&folder))?;
        fs::write(path("config"), client(&folder))?;
        fs::write(path("rclone"), "")?;
        let mut words = Networks::within(&networks.far);
        words.extend(["sh", "-c", WITH_ACCOUNT].map(str::to_owned));
        words.push(folder.display().to_string());
        words.extend(sshd.command());
        words.extend(["-D", "-e", "-f"].map(str::to_owned));
        words.push(path("sshd_config"));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let log = folder.join("log");
        let mut far =
            Self { group: Group::start(&words, &log, None)?, version: sshd.version("-V"), folder };
        let end = Deadline::after(START_MAX);
        while !fs::read_to_string(&log).unwrap_or_default().contains("Server listening") {
            if far.group.is_gone() || end.passed() {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(io::Error::other(format!("sshd does not listen: {}", said.trim())));
            }
            std::thread::sleep(START_POLL);
        }
        Ok(far)
    }

    /// A file of the near side: `config` of ssh, `key`, `known`, `rclone` (empty).
    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// ssh with its options.
    pub fn ssh(&self) -> String {
        format!("ssh -F {}", self.file("config"))
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // Sessions of which the peer is gone would only notice later.
        self.group.kill();
    }
}

fn server(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "Port {PORT}\nListenAddress 0.0.0.0\nHostKey {folder}/host-key\nPidFile none\n\
         AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nUseDNS no\n\
         PermitRootLogin prohibit-password\nPasswordAuthentication no\nPrintMotd no\n\
         MaxStartups 100\nSubsystem sftp internal-sftp\n\
         ClientAliveInterval 10\nClientAliveCountMax 3\n"
    )
}

fn client(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "Host *\nUser root\nPort {PORT}\nIdentityFile {folder}/key\nIdentitiesOnly yes\n\
         UserKnownHostsFile {folder}/known\nGlobalKnownHostsFile none\n\
         StrictHostKeyChecking yes\nBatchMode yes\nLogLevel ERROR\n"
    )
}
