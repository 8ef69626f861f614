//! How sets are shared, and which instances an agent runs.

use super::*;

fn act(name: &str, op: Op, set: u32) -> Act {
    Act { set: Some(set), ..Act::new(name, op) }
}

fn thread(name: &str, instances: u64, acts: &[u32]) -> Thread {
    let steps = acts.iter().map(|act| Step::Act(*act)).collect();
    Thread { name: name.to_owned(), instances, steps }
}

fn set(entries: u64) -> SetSpec {
    let size = Dist::fixed(4096);
    SetSpec { prealloc: 100, ..SetSpec::set("s", entries, Dist::fixed(20), size) }
}

#[test]
fn sharing_follows_from_what_threads_change() {
    let acts = vec![
        act("stat", Op::Stat, 0),
        act("create", Op::Create, 1),
        act("remove", Op::Remove, 1),
        act("create", Op::Create, 2),
        act("remove", Op::Remove, 2),
        act("open", Op::Open, 3),
        Act::new("remove open", Op::Remove),
    ];
    let threads =
        vec![thread("a", 4, &[0, 1, 2, 3]), thread("b", 4, &[0, 4]), thread("c", 1, &[5, 6])];
    let sets = vec![set(10), set(10), set(10), set(10), set(3)];
    let program = Program { sets, acts, threads, ..Program::default() };
    let sharing: Vec<_> = (0..5).map(|set| program.sharing(set)).collect();
    use Sharing::{Common, Divided, Fixed};
    assert_eq!(sharing, [Fixed, Divided, Common, Divided, Fixed]);
    assert!(!program.is_repeatable());
    assert_eq!(program.instances(), 9);
    assert_eq!(program.instance(5), Some((1, 1)));
    assert_eq!(program.instance(9), None);
}

#[test]
fn more_threads_than_files_share_them() {
    let (acts, threads) = (vec![act("create", Op::Create, 0)], vec![thread("a", 11, &[0])]);
    let program = Program { sets: vec![set(10)], acts, threads, ..Program::default() };
    assert_eq!(program.sharing(0), Sharing::Common);
}

#[test]
fn agents_share_the_instances() {
    let (acts, threads) = (vec![act("stat", Op::Stat, 0)], vec![thread("a", 10, &[0])]);
    let program = Program { sets: vec![set(10)], acts, threads, ..Program::default() };
    let of = |agent| {
        Plan::new(program.clone(), 1, agent, 3).expect("plan").instances().collect::<Vec<_>>()
    };
    assert_eq!((of(0), of(1), of(2)), (vec![0, 3, 6, 9], vec![1, 4, 7], vec![2, 5, 8]));
}

#[test]
fn each_operation_has_a_name_and_one_kind() {
    for (op, name) in NAMES {
        assert_eq!(op.name(), *name);
        assert!(!op.is_transfer() || op.is_call(), "{name}");
    }
}

#[test]
fn files_open_at_once_are_those_of_all_threads_of_an_agent() {
    let next = Act { rotate: true, ..act("read", Op::Read, 0) };
    let numbered = |fd| Act { fd, ..act("read", Op::Read, 0) };
    let stat = act("stat", Op::Stat, 0);
    let acts = vec![next, numbered(4), Act { rotate: true, ..numbered(2) }, stat];
    let threads =
        vec![thread("next", 3, &[0, 1]), thread("numbered", 2, &[1, 2]), thread("stat", 1, &[3])];
    let program = Program { sets: vec![set(10)], acts, threads, ..Program::default() };
    let plan = |agent, agents| Plan::new(program.clone(), 1, agent, agents).expect("a plan");
    assert_eq!(plan(0, 1).open_files_max(), 3 * FDS_MAX as u64 + 2 * 5 + 1);
    let two = plan(0, 2).open_files_max() + plan(1, 2).open_files_max();
    assert_eq!(two, plan(0, 1).open_files_max());
}
