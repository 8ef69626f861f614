//! The monitor on a machine of the fabric: this test program, started again.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Pass;
use crate::bed::{Bed, EVENT_MAX, wait_for};

/// Set in the process that is a machine of the fabric.
pub const CHILD: &str = "PLIMSOLL_FABRIC_MACHINE";

/// A fabric in a namespace of its own.
pub struct OwnBed {
    bed: Bed,
    /// A process that has the namespace.
    holder: Child,
}

impl OwnBed {
    /// See [`Bed::within`].
    pub fn start(test: &str, switches: usize, hosts: usize) -> Option<Self> {
        let holder = Command::new("unshare")
            .args(["-n", "sh", "-c", "ip link set lo up; exec sleep 100000"])
            .spawn();
        let mut holder = holder.inspect_err(|e| println!("SKIP {test}: unshare: {e}")).ok()?;
        let namespace = format!("/proc/{}/ns/net", holder.id());
        let own = fs::read_link("/proc/self/ns/net").expect("a namespace");
        let is_other = || fs::read_link(&namespace).is_ok_and(|one| one != own);
        // Without the right to make one it ends.
        let ended = |holder: &mut Child| holder.try_wait().is_ok_and(|status| status.is_some());
        wait_for("a namespace", || is_other() || ended(&mut holder));
        if ended(&mut holder) {
            println!("SKIP {test}: needs root");
            return None;
        }
        match Bed::within(holder.id(), test, switches, hosts) {
            Some(bed) => Some(Self { bed, holder }),
            None => {
                end(&mut holder);
                None
            }
        }
    }
}

impl Deref for OwnBed {
    type Target = Bed;

    fn deref(&self) -> &Bed {
        &self.bed
    }
}

impl Drop for OwnBed {
    fn drop(&mut self) {
        end(&mut self.holder);
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The monitor on a machine of the fabric.
pub struct Machine {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Machine {
    pub fn start(bed: &Bed, host: &str) -> Self {
        let mut command = bed.command(host);
        command.arg(format!("{CHILD}=1")).arg(std::env::current_exe().expect("this program"));
        command.args(["--exact", "machine", "--nocapture"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("this program");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output }
    }

    /// One pass.
    pub fn pass(&mut self) -> Pass {
        writeln!(self.input, "pass").expect("a pipe");
        let mut pass = Pass::default();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("a pipe");
            assert!(read > 0, "the monitor has ended");
            // What the harness prints has no mark.
            let Some((_, line)) = line.split_once("| ") else { continue };
            if !pass.enter(line.trim_end_matches('\n')) {
                return pass;
            }
        }
    }

    /// Passes until one is as expected.
    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&Pass) -> bool) -> Pass {
        let deadline = Instant::now() + EVENT_MAX;
        loop {
            let pass = self.pass();
            if is_so(&pass) {
                return pass;
            }
            assert!(Instant::now() < deadline, "in {EVENT_MAX:?} not: {what}: {pass:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
