//! Cursors against what Filebench does with the same acts.

use super::*;
use crate::dist::{Dist, Form};
use crate::program::{Program, Thread};
use crate::tree::SetSpec;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

fn set(name: &str, entries: u64, prealloc: u8) -> SetSpec {
    let size = Form::Gamma { shape: 1.5, mean: 16384.0 }.into();
    SetSpec { prealloc, ..SetSpec::set(name, entries, Dist::fixed(20), size) }
}

fn act(name: &str, op: Op, set: Option<u32>, fd: u32, size: u64) -> Act {
    Act { set, fd, size: Dist::fixed(size), ..Act::new(name, op) }
}

/// The acts of varmail.
fn mail(instances: u64) -> Program {
    let (of, none) = (Some(0), None);
    let acts = vec![
        act("delete", Op::Remove, of, 0, 0),
        act("create", Op::Create, of, 1, 0),
        act("append2", Op::AppendRandom, none, 1, 16384),
        act("fsync2", Op::Sync, none, 1, 0),
        act("close2", Op::Close, none, 1, 0),
        act("open3", Op::Open, of, 1, 0),
        act("read3", Op::ReadFile, none, 1, 1 << 20),
        act("append3", Op::AppendRandom, none, 1, 16384),
        act("fsync3", Op::Sync, none, 1, 0),
        act("close3", Op::Close, none, 1, 0),
        act("open4", Op::Open, of, 1, 0),
        act("read4", Op::ReadFile, none, 1, 1 << 20),
        act("close4", Op::Close, none, 1, 0),
    ];
    program(vec![set("mail", 1000, 80)], acts, instances)
}

fn program(sets: Vec<SetSpec>, acts: Vec<Act>, instances: u64) -> Program {
    let steps = (0..acts.len() as u32).map(Step::Act).collect();
    let threads = vec![Thread { name: "t".into(), instances, steps }];
    Program { sets, acts, threads, ..Program::default() }
}

fn plan(program: Program) -> Arc<Plan> {
    Arc::new(Plan::new(program, 7, 0, 1).expect("plan"))
}

fn cursor(plan: &Arc<Plan>, instance: u64) -> Cursor {
    Cursor::new(plan, instance).expect("instance")
}

/// The next call, which is as good as done.
fn call(cursor: &mut Cursor) -> Call {
    match cursor.next_act() {
        Next::Call(call) => {
            let bytes = if call.op.is_transfer() { call.len } else { 0 };
            cursor.done(Done { bytes, size: None });
            call
        }
        other => panic!("{other:?}"),
    }
}

fn ended(cursor: &mut Cursor) -> End {
    for _ in 0..10_000 {
        match cursor.next_act() {
            Next::Ended { why, .. } => return why,
            Next::Call(_) => cursor.done(Done::default()),
            Next::Wait(_) => {}
        }
    }
    panic!("it does not end")
}

#[test]
fn each_act_of_a_mail_server_is_done_as_often() {
    let plan = plan(mail(16));
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for instance in 0..16 {
        let mut cursor = cursor(&plan, instance);
        for _ in 0..1300 {
            match cursor.next_act() {
                Next::Call(call) => {
                    *counts.entry(call.act).or_default() += 1;
                    cursor.done(Done::default());
                }
                Next::Wait(wait) => *counts.entry(wait.act).or_default() += 1,
                Next::Ended { why, .. } => panic!("{why}"),
            }
        }
    }
    assert_eq!(counts.len(), 13);
    assert!(counts.values().all(|count| *count == 1600), "{counts:?}");
}

#[test]
fn files_are_created_where_none_is_and_opened_where_one_is() {
    let plan = plan(mail(4));
    let mut cursor = cursor(&plan, 3);
    let tree = &plan.pools[0].tree;
    let mut exists: Vec<bool> = (0..1000).map(|file| tree.exists(file)).collect();
    for _ in 0..20_000 {
        let Next::Call(call) = cursor.next_act() else { continue };
        let there = &mut exists[call.entry as usize];
        assert_eq!(*there, call.op != Op::Create, "{call:?}");
        assert_eq!(call.entry % 4, 3, "another thread's file");
        match call.op {
            Op::Create => *there = true,
            Op::Remove => *there = false,
            _ => {}
        }
        cursor.done(Done::default());
    }
}

#[test]
fn the_calls_are_the_same_on_any_number_of_agents() {
    let of = |agents: u64| {
        let mut hashes: Vec<(u64, u64)> = Vec::new();
        for agent in 0..agents {
            let plan = Arc::new(Plan::new(mail(16), 99, agent, agents).expect("plan"));
            for instance in plan.instances() {
                let mut cursor = cursor(&plan, instance);
                let mut hash = DefaultHasher::new();
                for _ in 0..100_000 / 16 {
                    let next = cursor.next_act();
                    next.hash(&mut hash);
                    if matches!(next, Next::Call(_)) {
                        cursor.done(Done::default());
                    }
                }
                hashes.push((instance, hash.finish()));
            }
        }
        hashes.sort_unstable();
        hashes
    };
    let one = of(1);
    assert_eq!(one.len(), 16);
    for agents in [2, 3, 5, 16] {
        assert_eq!(of(agents), one, "{agents} agents");
    }
}

#[test]
fn a_read_in_sequence_starts_again_at_the_end() {
    let file = SetSpec { prealloc: 100, ..SetSpec::file("f", Dist::fixed(10_000)) };
    let acts = vec![act("read", Op::Read, Some(0), 0, 4096)];
    let plan = plan(program(vec![file], acts, 1));
    let mut cursor = cursor(&plan, 0);
    let first = call(&mut cursor);
    assert_eq!((first.op, first.hidden), (Op::Open, true), "opened because the read needs it");
    let ranges: Vec<_> = (0..4).map(|_| call(&mut cursor)).map(|c| (c.offset, c.len)).collect();
    assert_eq!(ranges, [(0, 4096), (4096, 4096), (8192, 1808), (0, 4096)]);
}

#[test]
fn random_offsets_are_whole_operations_within_the_working_set() {
    let file = SetSpec { prealloc: 100, ..SetSpec::file("f", Dist::fixed(1 << 20)) };
    let mut read = act("read", Op::Read, Some(0), 0, 8192);
    (read.random, read.working_set) = (true, 100_000);
    let plan = plan(program(vec![file], vec![read], 1));
    let mut cursor = cursor(&plan, 0);
    call(&mut cursor);
    let mut counts = [0u32; 13];
    for _ in 0..13_000 {
        let call = call(&mut cursor);
        assert!(call.offset + 8192 <= 100_000);
        counts[(call.offset / 8192) as usize] += 1;
    }
    assert!(counts[..12].iter().all(|n| (900..1300).contains(n)), "{counts:?}");
}

#[test]
fn a_file_that_is_smaller_than_one_operation_ends_the_thread() {
    let file = SetSpec { prealloc: 100, ..SetSpec::file("f", Dist::fixed(100)) };
    let mut read = act("read", Op::Read, Some(0), 0, 8192);
    read.random = true;
    let plan = plan(program(vec![file], vec![read], 1));
    assert_eq!(ended(&mut cursor(&plan, 0)), End::Small);
}

#[test]
fn a_rotating_act_opens_a_file_for_each_descriptor() {
    let mut read = act("read", Op::Read, Some(0), 0, 100);
    (read.rotate, read.random) = (true, true);
    let size = Dist::fixed(1000);
    let set = SetSpec { prealloc: 100, ..SetSpec::set("s", 500, Dist::fixed(20), size) };
    let plan = plan(program(vec![set], vec![read], 1));
    let mut cursor = cursor(&plan, 0);
    let mut opened = Vec::new();
    for _ in 0..1000 {
        let call = call(&mut cursor);
        if call.op == Op::Open {
            opened.push((call.fd, call.entry));
        }
    }
    assert_eq!(opened.len(), FDS_MAX);
    let entries: Vec<u64> = opened.iter().map(|(_, entry)| *entry).collect();
    assert_eq!(entries, (0..128).collect::<Vec<_>>(), "files in turn");
}

#[test]
fn a_copy_has_the_size_of_its_source() {
    let acts = vec![
        act("open", Op::Open, Some(0), 1, 0),
        act("create", Op::Create, Some(1), 2, 0),
        Act { source: 1, ..act("write", Op::WriteFile, None, 2, 4096) },
        act("append", Op::Append, None, 2, 10),
        act("append", Op::Append, None, 2, 10),
        act("close", Op::Close, None, 1, 0),
        act("close", Op::Close, None, 2, 0),
    ];
    let plan = plan(program(vec![set("from", 10, 100), set("to", 10, 0)], acts, 1));
    let mut cursor = cursor(&plan, 0);
    for _ in 0..10 {
        let open = call(&mut cursor);
        let size = plan.pools[0].tree.size(open.entry);
        call(&mut cursor);
        let write = call(&mut cursor);
        assert_eq!((write.set, write.len, write.piece), (1, size, 4096));
        assert_eq!((call(&mut cursor).offset, call(&mut cursor).offset), (size, size + 10));
        call(&mut cursor);
        call(&mut cursor);
    }
    assert_eq!(ended(&mut cursor), End::AllExist);
}

#[test]
fn a_file_is_removed_where_it_was_open() {
    let acts = vec![
        act("open", Op::Open, Some(0), 1, 0),
        act("close", Op::Close, None, 1, 0),
        act("remove", Op::Remove, None, 1, 0),
    ];
    let plan = plan(program(vec![set("s", 10, 100)], acts, 1));
    let mut cursor = cursor(&plan, 0);
    for _ in 0..10 {
        let open = call(&mut cursor);
        assert_eq!(call(&mut cursor).op, Op::Close);
        let remove = call(&mut cursor);
        assert_eq!((remove.op, remove.entry, remove.fd), (Op::Remove, open.entry, BY_PATH));
    }
    assert_eq!(ended(&mut cursor), End::NoneExists);
}

#[test]
fn repeats_nest() {
    let (a, b) = (act("a", Op::Stat, Some(0), 0, 0), act("b", Op::Stat, Some(0), 0, 0));
    let a = Act { repeat: Dist::fixed(2), ..a };
    let mut program = program(vec![set("s", 10, 100)], vec![a, b], 1);
    let begin = |times, end| Step::Begin { times: Dist::fixed(times), end };
    program.threads[0].steps = vec![
        begin(2, 5),
        Step::Act(0),
        begin(3, 4),
        Step::Act(1),
        Step::End { begin: 2 },
        Step::End { begin: 0 },
        begin(0, 8),
        Step::Act(1),
        Step::End { begin: 6 },
    ];
    let plan = plan(program);
    let mut cursor = cursor(&plan, 0);
    let acts: Vec<u32> = (0..12).map(|_| call(&mut cursor).act).collect();
    assert_eq!(acts, [0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0]);
}

#[test]
fn threads_that_share_a_set_never_get_the_same_file() {
    let mut program = program(
        vec![set("s", 100, 50)],
        vec![act("create", Op::Create, Some(0), 1, 0), act("remove", Op::Remove, Some(0), 0, 0)],
        1,
    );
    let thread =
        |name: &str, act| Thread { name: name.into(), instances: 2, steps: vec![Step::Act(act)] };
    program.threads = vec![thread("create", 0), thread("remove", 1)];
    let plan = plan(program);
    let mut removers = [cursor(&plan, 2), cursor(&plan, 3)];
    let [first, second] = removers.each_mut().map(|cursor| match cursor.next_act() {
        Next::Call(call) => call.entry,
        other => panic!("{other:?}"),
    });
    assert_ne!(first, second);
    // A call that fails gives its file back.
    removers[0].failed();
    removers[1].done(Done::default());
    let mut entries = Vec::new();
    while let Next::Call(call) = removers[1].next_act() {
        removers[1].done(Done::default());
        entries.push(call.entry);
    }
    assert!(entries.contains(&first) && !entries.contains(&second));
}

#[test]
fn after_a_failure_the_thread_starts_again() {
    let plan = plan(mail(1));
    let mut cursor = cursor(&plan, 0);
    call(&mut cursor);
    assert_eq!(call(&mut cursor).op, Op::Create);
    while !matches!(cursor.next_act(), Next::Call(_)) {}
    assert_eq!(cursor.failed(), [1], "the target is to close it");
    assert_eq!(call(&mut cursor).op, Op::Remove);
    assert_eq!(call(&mut cursor).op, Op::Create);
}

#[test]
fn all_open_files_of_a_set_are_flushed() {
    let acts = vec![
        act("open", Op::Open, Some(0), 1, 0),
        act("open", Op::Open, Some(0), 2, 0),
        act("flush", Op::SyncSet, Some(0), 0, 0),
        act("close", Op::Close, None, 1, 0),
        act("close", Op::Close, None, 2, 0),
    ];
    let plan = plan(program(vec![set("s", 10, 100)], acts, 1));
    let mut cursor = cursor(&plan, 0);
    let calls: Vec<_> = (0..6).map(|_| call(&mut cursor)).map(|c| (c.op, c.fd)).collect();
    use Op::{Close, Open, Sync};
    assert_eq!(calls, [(Open, 1), (Open, 2), (Sync, 1), (Sync, 2), (Close, 1), (Close, 2)]);
}

#[test]
fn a_thread_without_acts_ends() {
    let idle = Act { repeat: Dist::fixed(0), ..act("a", Op::Stat, Some(0), 0, 0) };
    let plan = plan(program(vec![set("s", 10, 100)], vec![idle], 1));
    assert_eq!(ended(&mut cursor(&plan, 0)), End::Nothing);
    let closed = plan_of(act("fsync", Op::Sync, None, 3, 0));
    assert_eq!(ended(&mut cursor(&closed, 0)), End::NotOpen);
    let large = plan_of(act("read", Op::Read, Some(0), 0, IO_MAX + 1));
    assert_eq!(ended(&mut cursor(&large, 0)), End::Large);
}

fn plan_of(act: Act) -> Arc<Plan> {
    plan(program(vec![set("s", 10, 100)], vec![act], 1))
}

#[test]
fn directories_are_listed_in_turn() {
    let plan =
        plan(program(vec![set("s", 1000, 0)], vec![act("list", Op::List, Some(0), 0, 0)], 2));
    let all = plan.pools[0].tree.directories();
    let mut cursor = cursor(&plan, 1);
    let mut listed: Vec<u64> = (0..all).map(|_| call(&mut cursor).entry).collect();
    listed.sort_unstable();
    assert_eq!(listed, (0..all).collect::<Vec<_>>());
}
