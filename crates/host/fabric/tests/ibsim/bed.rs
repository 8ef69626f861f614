//! ibsim and OpenSM in a network namespace of their own, and machines of the fabric.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// How long an event may take on a busy machine.
pub const EVENT_MAX: Duration = Duration::from_secs(120);
/// The preloaded library, as Debian has it.
const LIBRARY: &str = "umad2sim/libumad2sim.so";

pub struct Bed {
    folder: PathBuf,
    /// A process that has the namespace.
    holder: u32,
    simulator: Child,
    console: RefCell<ChildStdin>,
    manager: RefCell<Child>,
}

fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    folders.map(|folder| folder.path().join(LIBRARY)).find(|path| path.exists())
}

fn has(program: &str) -> bool {
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists())
}

pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + EVENT_MAX;
    while !is_so() {
        assert!(Instant::now() < deadline, "in {EVENT_MAX:?} not: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Bed {
    /// A fabric of switches in a row with adapters, `host1` with the subnet manager, in the
    /// namespace of a process. `None`: a tool is missing, which is printed.
    pub fn within(holder: u32, test: &str, switches: usize, hosts: usize) -> Option<Self> {
        let tools = ["ibsim", "opensm", "ibnetdiscover", "smpquery", "nsenter"];
        let missing: Vec<&str> = tools.into_iter().filter(|tool| !has(tool)).collect();
        if !missing.is_empty() || library().is_none() {
            println!("SKIP {test}: needs ibsim-utils, infiniband-diags, opensm: {missing:?}");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("fabric-{}-{}", std::process::id(), test));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("net"), topology(switches, hosts)).expect("a file");
        fs::write(folder.join("partitions.conf"), "Default=0x7fff, ipoib : ALL=full;\n")
            .expect("a file");
        let log = folder.join("ibsim.log");
        let output = File::create(&log).expect("a file");
        let mut command = Command::new("nsenter");
        command.args(["-t", &holder.to_string(), "-n", "ibsim", "-s"]).arg(folder.join("net"));
        // To a file: what it prints is not read.
        command.stdin(Stdio::piped()).stdout(output.try_clone().expect("a file")).stderr(output);
        let mut simulator = command.spawn().expect("ibsim");
        let console = RefCell::new(simulator.stdin.take().expect("a pipe"));
        wait_for("ibsim is ready", || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("simulator ready"))
        });
        let manager = RefCell::new(manager(&folder, holder));
        let bed = Self { folder, holder, simulator, console, manager };
        wait_for("the fabric is up", || bed.on("host1", &["ibstat"]).contains("State: Active"));
        let last = format!("host{hosts}");
        wait_for("the last port is up", || bed.on(&last, &["ibstat"]).contains("State: Active"));
        Some(bed)
    }

    /// A command as a machine of the fabric.
    pub fn command(&self, host: &str) -> Command {
        command(&self.folder, self.holder, host)
    }

    /// What a tool prints as a machine of the fabric.
    pub fn on(&self, host: &str, words: &[&str]) -> String {
        let output = self.command(host).args(words).output().expect("a tool");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A line at the console of ibsim, done when this returns.
    pub fn console(&self, line: &str) {
        let log = self.folder.join("ibsim.log");
        let prompts = || fs::read_to_string(&log).map_or(0, |text| text.matches("sim>").count());
        let before = prompts();
        writeln!(self.console.borrow_mut(), "{line}").expect("a pipe");
        wait_for("ibsim has done a line", || prompts() > before);
    }

    /// Other partitions for the subnet manager.
    pub fn partitions(&self, text: &str) {
        fs::write(self.folder.join("partitions.conf"), text).expect("a file");
        let pid = self.manager.borrow().id().to_string();
        let done = Command::new("kill").args(["-HUP", &pid]).status().expect("kill");
        assert!(done.success());
    }

    /// Ends the subnet manager.
    pub fn stop_manager(&self) {
        self.manager.borrow_mut().kill().expect("a process");
        self.manager.borrow_mut().wait().expect("a process");
    }
}

/// What makes a process a machine of the fabric.
pub fn environment(host: &str) -> [(&'static str, String); 2] {
    let preload = library().expect("checked before").display().to_string();
    [("LD_PRELOAD", preload), ("SIM_HOST", host.to_owned())]
}

fn command(folder: &Path, holder: u32, host: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["-t", &holder.to_string(), "-n", "env"]);
    command.args(environment(host).map(|(name, value)| format!("{name}={value}")));
    command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn manager(folder: &Path, holder: u32) -> Child {
    let mut command = command(folder, holder, "host1");
    command.arg(format!("OSM_TMP_DIR={}", folder.display()));
    command.arg(format!("OSM_CACHE_DIR={}", folder.display()));
    command.args(["opensm", "-s", "2", "-f"]).arg(folder.join("opensm.log"));
    command.arg("-P").arg(folder.join("partitions.conf"));
    command.stdout(File::create(folder.join("opensm.out")).expect("a file"));
    command.spawn().expect("opensm")
}

impl Drop for Bed {
    fn drop(&mut self) {
        for child in [self.manager.get_mut(), &mut self.simulator] {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn topology(switches: usize, hosts: usize) -> String {
    let each = hosts.div_ceil(switches);
    let mut text = "Hca\t2 \"host1\"\n[1]\t\"sw1\"[1]\n\n".to_owned();
    for s in 1..=switches {
        let _ = writeln!(text, "Switch\t36 \"sw{s}\"");
        for p in 1..=each.min(hosts - (s - 1) * each) {
            let _ = writeln!(text, "[{p}]\t\"host{}\"[1]", (s - 1) * each + p);
        }
        if s < switches {
            let _ = writeln!(text, "[33]\t\"sw{0}\"[35]\n[34]\t\"sw{0}\"[36]", s + 1);
        }
        if s > 1 {
            let _ = writeln!(text, "[35]\t\"sw{0}\"[33]\n[36]\t\"sw{0}\"[34]", s - 1);
        }
        text.push('\n');
    }
    for h in 2..=hosts {
        let (switch, port) = ((h - 1) / each + 1, (h - 1) % each + 1);
        let _ = writeln!(text, "Hca\t2 \"host{h}\"\n[1]\t\"sw{switch}\"[{port}]\n");
    }
    text
}
