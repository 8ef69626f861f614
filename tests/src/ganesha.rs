//! nfs-ganesha with one export, for NFSv3 and NFSv4, if it is installed. It registers with a port
//! mapper with any configuration: one of its own, in a network namespace that nothing
//! reaches, by a socket below a `/run` of its own.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::scratch::Scratch;
use crate::{has, patience, ports, process};

/// How long it may take to listen.
const START: Duration = patience(60);
/// Starts the port mapper, then the server.
const BEGIN: &str = "mount -t tmpfs none /run && mkdir /run/rpcbind || exit 1
unshare -n rpcbind -f & echo $! >\"$1/rpcbind.pid\"
while [ ! -S /run/rpcbind.sock ]; do kill -0 $! || exit 1; sleep 0.02; done
exec ganesha.nfsd -F -N NIV_EVENT -L \"$1/log\" -p \"$1/pid\" -f \"$1/ganesha.conf\"";

/// A running server. Dropping it ends it.
pub struct Ganesha {
    child: Child,
    scratch: Scratch,
    /// The target of a column named `ganesha`.
    pub url: String,
}

/// Why there is none here, if so.
pub fn missing() -> Option<&'static str> {
    let programs = ["ganesha.nfsd", "rpcbind", "unshare"];
    let hint = "nfs-ganesha-vfs or rpcbind is not installed";
    programs.iter().any(|program| !has(program)).then_some(hint)
}

impl Ganesha {
    /// Starts it on a directory of its own.
    ///
    /// # Panics
    /// When it does not listen in time.
    pub fn start() -> Self {
        let scratch = Scratch::new("ganesha");
        let data = scratch.folder("data", None);
        let [nfs, mount] = [0; 2].map(|_| ports::free_offset("127.0.0.1") + 2049);
        let child = command(scratch.path(), &data, [nfs, mount]).spawn().expect("unshare");
        let url = format!("ganesha=nfs3://127.0.0.1:{nfs}{}?mountport={mount}", data.display());
        let mut server = Self { child, scratch, url };
        server.listens(&[nfs, mount]);
        server
    }

    fn listens(&mut self, ports: &[u16]) {
        let deadline = Instant::now() + START;
        for port in ports {
            while TcpStream::connect(("127.0.0.1", *port)).is_err() {
                let log =
                    || fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default();
                assert!(self.child.try_wait().expect("a child").is_none(), "it ended: {}", log());
                assert!(Instant::now() < deadline, "{port} does not listen: {}", log());
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Drop for Ganesha {
    fn drop(&mut self) {
        end_mapper(self.scratch.path());
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The command of one that serves `data`, with NFS and MOUNT at these ports and its state in `at`.
///
/// # Panics
/// When its configuration cannot be written.
pub fn command(at: &Path, data: &Path, ports: [u16; 2]) -> Command {
    fs::create_dir(at.join("recovery")).expect("a folder");
    with(at, &config(at, data, ports))
}

/// The command of one with this configuration, and its other files in `at`.
///
/// # Panics
/// When the configuration cannot be written.
pub fn with(at: &Path, config: &str) -> Command {
    fs::write(at.join("ganesha.conf"), config).expect("a file");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", BEGIN, "sh"]).arg(at);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Ends the port mapper that a command has started.
pub fn end_mapper(at: &Path) {
    let pid = fs::read_to_string(at.join("rpcbind.pid"));
    if let Some(pid) = pid.ok().and_then(|pid| pid.trim().parse().ok()) {
        process::signal(pid, libc::SIGKILL);
    }
}

/// The folder of plugins is Debian's, or the one in GANESHA_PLUGINS.
fn config(scratch: &Path, data: &Path, [nfs, mount]: [u16; 2]) -> String {
    let plugins = std::env::var("GANESHA_PLUGINS").map(|dir| format!("Plugins_Dir = \"{dir}\";"));
    format!(
        "NFS_CORE_PARAM {{ NFS_Port = {nfs}; MNT_Port = {mount}; Protocols = 3, 4; \
         Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; {} }}\n\
         NFSV4 {{ Graceless = true; RecoveryBackend = fs; RecoveryRoot = \"{}\"; }}\n\
         EXPORT {{ Export_Id = 1; Path = {}; Pseudo = /x; Access_Type = RW; \
         Squash = No_Root_Squash; Protocols = 3, 4; Transports = TCP; SecType = sys; \
         FSAL {{ Name = VFS; }} }}\n",
        plugins.unwrap_or_default(),
        scratch.join("recovery").display(),
        data.display(),
    )
}
