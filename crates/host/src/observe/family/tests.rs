//! Families that fork, wait for their children or not, and leave children behind.

use super::*;
use crate::observe::tests::Machine;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

const TICK: u64 = TICK_NS;

fn member(pid: u32, parent: u32, own: u64, ended: u64) -> Member {
    Member {
        pid,
        parent,
        started: 1,
        zombie: false,
        own_ns: own * TICK,
        ended_ns: ended * TICK,
        resident: 1,
    }
}

fn family() -> Family {
    Family { roots: vec![(10, 1)], ..Default::default() }
}

#[test]
fn a_line_of_proc_stat() {
    let text = "11 (a) R (b) Z 7 1 1 0 -1 0 0 0 0 0 3 4 5 6 20 0 1 0 99 1000 10 0";
    let found = Member::parse(11, text).unwrap();
    assert_eq!((found.parent, found.started, found.zombie, found.resident), (7, 99, true, 10));
    assert_eq!((found.own_ns, found.ended_ns), (7 * TICK, 11 * TICK));
    assert_eq!(Member::parse(11, "11 (a) R 7"), None);
}

#[test]
fn an_observer_that_the_server_has_started_is_not_of_it() {
    let all = [member(10, 1, 100, 0), member(11, 10, 50, 0), member(12, 11, 30, 0)];
    let with = |observer| {
        let mut f = Family { observer, ..family() };
        assert!(f.advance(&all));
        f.cpu_ns() / TICK
    };
    assert_eq!((with(None), with(Some(11)), with(Some(12))), (180, 100, 150));
    // An observer that observes itself is part of the request.
    assert_eq!(with(Some(10)), 180);
}

#[test]
fn children_that_end_are_counted_once() {
    let mut f = family();
    assert!(f.advance(&[member(10, 1, 100, 0), member(11, 10, 50, 0), member(99, 1, 7, 7)]));
    assert_eq!(f.cpu_ns(), 150 * TICK);
    // 12 came, and 13 came and went between two samples.
    assert!(f.advance(&[member(10, 1, 110, 9), member(11, 10, 60, 0), member(12, 10, 20, 0)]));
    assert_eq!(f.cpu_ns(), 199 * TICK);
    // 11 ended at 65, and its parent waited for it.
    assert!(f.advance(&[member(10, 1, 110, 74), member(12, 10, 20, 0)]));
    assert_eq!(f.cpu_ns(), 204 * TICK);
}

#[test]
fn children_that_no_parent_waits_for_are_counted_as_last_seen() {
    let mut f = family();
    f.advance(&[member(10, 1, 100, 0), member(11, 10, 50, 0), member(12, 11, 30, 5)]);
    // Both are gone, SIGCHLD is ignored.
    f.advance(&[member(10, 1, 100, 0)]);
    assert_eq!(f.cpu_ns(), 185 * TICK);
    f.advance(&[member(10, 1, 100, 0)]);
    assert_eq!(f.cpu_ns(), 185 * TICK, "once");
    // What is only rounded is not missing.
    let mut f = family();
    f.advance(&[member(10, 1, 100, 0), member(11, 10, 50, 0)]);
    f.advance(&[member(10, 1, 100, 48)]);
    assert_eq!(f.cpu_ns(), 148 * TICK);
}

#[test]
fn a_child_left_by_its_parent_belongs_to_the_family_still() {
    let mut f = family();
    f.advance(&[member(10, 1, 100, 0), member(11, 10, 50, 0), member(12, 11, 30, 0)]);
    f.advance(&[member(10, 1, 100, 50), member(12, 1, 40, 0), member(13, 12, 5, 0)]);
    assert_eq!(f.cpu_ns(), 195 * TICK);
    // A number that is used again is another process.
    let mut again = member(12, 1, 1000, 0);
    again.started = 2;
    f.advance(&[member(10, 1, 100, 50), again]);
    assert_eq!(f.cpu_ns(), 195 * TICK);
    assert!(!f.advance(&[member(99, 1, 0, 0)]), "no process is left that it began with");
}

#[test]
fn those_that_started_the_others() {
    let machine = Machine::new();
    for (pid, parent) in [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1)] {
        machine.process(pid, parent, 0, 0);
    }
    let eldest = |pids: &[u32]| eldest(&machine.root, pids);
    assert_eq!(eldest(&[12, 10]), [10]);
    assert_eq!(eldest(&[11, 12, 20]), [11, 20]);
    // A service manager holds the socket as well.
    assert_eq!(eldest(&[1, 12]), [12]);
    assert_eq!(eldest(&[1]), [1]);
}

/// A machine with a server, 10, that has started 11, in a control group.
fn grouped(unified: bool) -> Machine {
    let machine = Machine::new();
    machine.process(10, 1, 100, 0);
    machine.process(11, 10, 50, 0);
    let (line, dir, file, text) = match unified {
        true => ("0::/s", "sys/fs/cgroup/s", "cpu.stat", "usage_usec 2000000\nuser_usec 1\n"),
        false => ("3:cpuacct:/s", "sys/fs/cgroup/cpuacct/s", "cpuacct.usage", "2000000000\n"),
    };
    machine.file("proc/10/cgroup", &format!("9:pids:/\n{line}\n"));
    machine.file(&format!("{dir}/{file}"), text);
    machine.file(&format!("{dir}/cgroup.procs"), "10\n");
    machine.file(&format!("{dir}/below/cgroup.procs"), "11\n");
    machine
}

#[test]
fn a_control_group_of_its_own_counts() {
    for unified in [true, false] {
        let machine = grouped(unified);
        let mut family = Family::new(&machine.root, &[10]).unwrap();
        let sample = family.sample(&machine.root).unwrap();
        assert_eq!(sample.processes, [10, 11]);
        assert_eq!(sample.cpu_ns, 150 * TICK);
        assert_eq!(sample.group_ns, Some(2_000_000_000));
        let dir = if unified { "sys/fs/cgroup/s" } else { "sys/fs/cgroup/cpuacct/s" };
        // Another process is in it, one of the family is not, it is the root group.
        machine.process(99, 1, 0, 0);
        machine.file(&format!("{dir}/cgroup.procs"), "10\n99\n");
        assert_eq!(family.sample(&machine.root).unwrap().group_ns, None);
        machine.file(&format!("{dir}/cgroup.procs"), "10\n");
        machine.file(&format!("{dir}/below/cgroup.procs"), "");
        assert_eq!(family.sample(&machine.root).unwrap().group_ns, None);
        machine.file("proc/10/cgroup", "0::/\n3:cpuacct:/\n");
        assert_eq!(family.sample(&machine.root).unwrap().group_ns, None);
    }
}

#[test]
fn differences_are_of_the_same_counter() {
    let sample = |cpu_ns, group_ns| FamilySample { cpu_ns, group_ns, ..Default::default() };
    assert_eq!(sample(90, Some(500)).cpu_since(&sample(50, Some(450))), 50);
    assert_eq!(sample(90, Some(500)).cpu_since(&sample(50, None)), 40);
    assert_eq!(sample(90, None).cpu_since(&sample(50, Some(1))), 40);
}

/// A shell that starts a child for each line of its input, which works and ends; against what the
/// kernel counted for all of them.
#[test]
#[allow(clippy::zombie_processes, reason = "wait4 waits for it")]
fn a_real_family_that_forks() {
    // What a child does takes well over a tick on any machine.
    let work = "while read -r line; do ( i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done ); \
                echo done; done; echo end";
    let mut shell = Command::new("sh");
    shell.args(["-c", work]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let root = Root::default();
    let mut family = Family::new(&root, &[child.id()]).unwrap();
    let first = family.sample(&root).unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for _ in 0..3 {
        to.write_all(b"x\n").unwrap();
        let mut line = [0; 5];
        from.read_exact(&mut line).unwrap();
    }
    let last = family.sample(&root).unwrap();
    assert_eq!(last.processes, [child.id()], "the children have ended");
    let seen = last.cpu_since(&first);
    drop(to);
    // SAFETY: numbers alone, of which all zeros are some.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    let pid = child.id() as libc::pid_t;
    // SAFETY: waits for a child of this process; both values are local.
    assert_eq!(unsafe { libc::wait4(pid, &mut status, 0, &mut usage) }, pid);
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    let all = ns(usage.ru_utime) + ns(usage.ru_stime);
    assert!(seen <= all && all - seen <= 6 * TICK, "{seen} of {all}");
    assert!(seen >= 3 * TICK, "{seen}");
}
