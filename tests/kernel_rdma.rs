//! A Linux client over RDMA: client and server in the same guest of User Mode Linux, over siw or
//! rxe, devices in software. The kernel is what `tests/uml/build-kernel` makes; `make rdma` does
//! both.
//!
//! It shows that they understand each other, that bytes go by chunks, and what becomes of state and
//! data when the server or the device goes. It shows nothing of the order in which an adapter does
//! things, and no speed: all of them share one processor.
//!
//! Guest side: `uml/rdma.sh`.

use std::path::Path;
use std::time::Duration;

use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::uml::{self, Guest};
use e2e::{has, skip};

#[path = "kernel_rdma/data.rs"]
mod data;
#[path = "kernel_rdma/faults.rs"]
mod faults;
#[path = "kernel_rdma/lab.rs"]
mod lab;
#[path = "kernel_rdma/state.rs"]
mod state;

/// Memory of a guest that holds the server, its data and the client's cache.
const MEMORY: &str = "mem=1500M";
/// How long a script may take: client, server and their devices share one processor.
const ANSWER: Duration = e2e::patience(240);
/// The guest's address.
const SERVER: &str = "10.0.2.15";

/// Why it cannot run here.
fn unavailable() -> Option<String> {
    if let Some(why) = uml::unavailable() {
        return Some(why);
    }
    if uml::built_kernel().is_none() {
        return Some("its kernel is made by `make rdma`".to_owned());
    }
    let tools =
        ["rdma", "ss", "setpriv", "setfacl", "nfs4_getfacl", "nfs4_setfacl", "make", "curl"];
    if let Some(tool) = tools.into_iter().find(|tool| !has(tool)) {
        return Some(format!("not installed: {tool}"));
    }
    let driver = Path::new("/etc/libibverbs.d/siw.driver");
    (!driver.exists()).then(|| "not installed: ibverbs-providers".to_owned())
}

/// A guest with its device and its server.
struct Stage {
    guest: Guest,
    _namespace: Namespace,
    _scratch: Scratch,
}

impl Stage {
    /// A guest without a device or a server.
    fn bare(name: &str) -> Result<Self, String> {
        if let Some(why) = unavailable() {
            return Err(why);
        }
        let kernel = uml::built_kernel().ok_or("no kernel")?;
        let namespace = uml::namespace(1)?;
        let scratch = Scratch::new(name);
        let mut guest = Guest::boot_with(kernel.as_os_str(), MEMORY, &namespace, 0, scratch.path());
        guest.answers_within(ANSWER);
        let share = guest.share();
        std::fs::copy(e2e::server::binary(), share.join("plimsoll")).expect("the server");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml/rdma.sh");
        std::fs::copy(script, share.join("rdma.sh")).expect("the script");
        Ok(Self { guest, _namespace: namespace, _scratch: scratch })
    }

    /// With a device of this kind, and a server that listens on it.
    fn over(kind: &str, name: &str) -> Result<Self, String> {
        let mut stage = Self::bare(name)?;
        stage.run(&format!("rdma link add {kind}0 type {kind} netdev vec0"));
        stage.run("begin_server; until_listening");
        Ok(stage)
    }

    /// Runs a script with the commands of `uml/rdma.sh`; its output.
    fn run(&mut self, script: &str) -> String {
        self.guest.run(&with_words(script))
    }

    /// Starts a script, which runs in parallel with others.
    fn begin(&mut self, script: &str) -> uml::Task {
        self.guest.begin(&with_words(script))
    }

    /// A number that a script prints.
    fn number(&mut self, script: &str) -> u64 {
        let said = self.run(script);
        said.trim().parse().unwrap_or_else(|_| panic!("{script}: {said}"))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let log = self.guest.share().join("server.log");
        let log = std::fs::read_to_string(log).unwrap_or_default();
        if std::thread::panicking() {
            eprintln!("server:\n{log}");
        } else {
            assert!(!log.contains("panicked"), "{log}");
        }
    }
}

fn with_words(script: &str) -> String {
    format!("SERVER={SERVER}\n. /mnt/host/rdma.sh\n{script}")
}
