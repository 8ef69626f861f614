//! A process loses a core and gets it back, with what it has started meanwhile.

use super::*;
use base::clock::Deadline;
use std::time::Duration;

/// A shell that starts a process for each line that it reads. Dropping it ends it.
struct Shell(Child);

impl Shell {
    fn new() -> Self {
        let script = "while read line; do sleep 1000 & done";
        let child = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn();
        Self(child.expect("a shell"))
    }

    fn start_one(&mut self) {
        let before = descendants(&Root::default(), self.0.id()).len();
        self.0.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("written");
        let deadline = Deadline::after(Duration::from_secs(60));
        while descendants(&Root::default(), self.0.id()).len() == before {
            assert!(!deadline.passed(), "no process started");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn cores(&self) -> Vec<usize> {
        let family = descendants(&Root::default(), self.0.id());
        family.into_iter().map(|pid| Cores::of(pid).expect("a process").list().len()).collect()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for pid in descendants(&Root::default(), self.0.id()) {
            // SAFETY: a signal to a process that this test started.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        }
        let _reaped = self.0.wait();
    }
}

#[test]
fn threads_get_back_what_they_had() {
    let mut shell = Shell::new();
    let all = shell.cores()[0];
    if all < 2 {
        return println!("SKIP one-core-less: needs two cores");
    }
    let less = Less::take(shell.0.id()).expect("a core");
    assert_eq!(shell.cores(), [all - 1]);
    shell.start_one();
    assert_eq!(shell.cores(), [all - 1, all - 1]);
    less.give_back().expect("the core");
    assert_eq!(shell.cores(), [all, all]);
}

#[test]
fn what_another_program_has_changed_stays() {
    let shell = Shell::new();
    let before = Cores::of(shell.0.id()).expect("a process");
    if before.list().len() < 2 {
        return println!("SKIP one-core-less: needs two cores");
    }
    let less = Less::take(shell.0.id()).expect("a core");
    let other = before.without(before.list()[0]);
    other.set(shell.0.id()).expect("another core");
    less.give_back().expect("nothing to do");
    assert!(Cores::of(shell.0.id()).expect("a process") == other);
    // One that has one core has none to lose.
    if other.list().len() == 1 {
        assert!(Less::take(shell.0.id()).is_err());
    }
}

#[test]
fn a_server_that_has_ended_needs_nothing() {
    let shell = Shell::new();
    let pid = shell.0.id();
    let less = Less::take(pid);
    drop(shell);
    if let Ok(less) = less {
        less.give_back().expect("nothing to do");
    }
    assert!(Less::take(pid).is_err());
}
