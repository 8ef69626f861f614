//! A change that is interrupted after any of its steps and taken back ends in the old state, and
//! one that is not interrupted in the new one; never in between. On the kernel in memory, with
//! seeded pairs of configurations on a machine that also has links, addresses and routes of others.

mod configurations;

use std::collections::{BTreeMap, BTreeSet};

use base::random::{Random, SeededRandom};
use host_network::backend::{Backend, reach};
use host_network::check::{Machine, check};
use host_network::compile::{Record, compile};
use host_network::configuration::Configuration;
use host_network::fake::Kernel;
use host_network::plan::plan;
use host_network::state::State;
use host_network::step::Step;

use configurations::{generate, machine};

/// Pairs of configurations.
const PAIRS: u64 = 200;
/// Configurations, one after the other.
const CHANGES: u64 = 100;

/// A machine in its first configuration, and the way to its second one.
struct Change {
    kernel: Kernel,
    old: State,
    new: State,
    adopted: BTreeSet<String>,
    steps: Vec<Step>,
}

fn observe(kernel: &mut Kernel) -> State {
    kernel.observe().unwrap_or_else(|e| panic!("{e}"))
}

fn sound(configuration: &Configuration, observed: &State, record: &Record) {
    let machine = Machine { observed, record, administration: &[], successor: None };
    assert_eq!(check(configuration, machine), [], "{configuration:#?}");
}

impl Change {
    fn new(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let mut kernel = Kernel::new(machine());
        let none = Record::default();
        let first = generate(&mut random);
        let bare = observe(&mut kernel);
        sound(&first, &bare, &none);
        let (target, record) = compile(&first, &bare, &none);
        reach(&mut kernel, &target, &record.adopted(&none))
            .unwrap_or_else(|e| panic!("{seed}: {e}"));
        configurations::others_add(&mut kernel, &mut random);
        let old = observe(&mut kernel);
        let second = generate(&mut random);
        sound(&second, &old, &record);
        let (new, next) = compile(&second, &old, &record);
        let adopted = next.adopted(&record);
        let steps = plan(&old, &new, &adopted);
        Self { kernel, old, new, adopted, steps }
    }

    /// The kernel after this many steps.
    fn interrupted(&self, steps: usize) -> Kernel {
        let mut kernel = self.kernel.clone();
        for step in &self.steps[..steps] {
            kernel.take(step).unwrap_or_else(|e| panic!("{e}\n{:#?}", self.steps));
        }
        kernel
    }

    /// What the guard does, as from a process of its own that knows the old state only.
    fn take_back(&self, kernel: &mut Kernel) -> Vec<Step> {
        plan(&observe(kernel), &self.old, &self.adopted)
    }
}

#[test]
fn what_is_interrupted_ends_in_the_old_or_the_new_state() {
    let mut cuts = 0;
    for seed in 0..PAIRS {
        let change = Change::new(seed);
        for cut in 0..=change.steps.len() {
            let mut kernel = change.interrupted(cut);
            for step in change.take_back(&mut kernel) {
                kernel.take(&step).unwrap_or_else(|e| panic!("pair {seed}, cut {cut}: {e}"));
            }
            assert_eq!(observe(&mut kernel), change.old, "pair {seed}, cut {cut}");
            cuts += 1;
        }
        let mut kernel = change.interrupted(change.steps.len());
        let now = observe(&mut kernel);
        assert_eq!(plan(&now, &change.new, &change.adopted), [], "pair {seed}: confirmed");
        assert_eq!(configurations::made(&now), configurations::made(&change.new), "pair {seed}");
    }
    println!("{PAIRS} pairs, {cuts} cuts");
    assert!(cuts > 20 * PAIRS, "{cuts} cuts: the pairs differ in little");
}

#[test]
fn a_guard_that_is_interrupted_is_continued_by_another_one() {
    for seed in 0..PAIRS / 4 {
        let change = Change::new(seed);
        let mut random = SeededRandom::new(seed);
        let cut = random.below(change.steps.len() as u64 + 1) as usize;
        let first = change.interrupted(cut);
        let way_back = change.take_back(&mut first.clone());
        for done in 0..=way_back.len() {
            let mut kernel = first.clone();
            for step in &way_back[..done] {
                kernel.take(step).unwrap_or_else(|e| panic!("pair {seed}, cut {cut}: {e}"));
            }
            reach(&mut kernel, &change.old, &change.adopted)
                .unwrap_or_else(|e| panic!("pair {seed}, cut {cut}, guard {done}: {e}"));
            assert_eq!(observe(&mut kernel), change.old, "pair {seed}, cut {cut}, guard {done}");
        }
    }
}

/// One configuration after the other: a link of another program and what is on it stay as they are,
/// and without a configuration everything is as before the first one.
#[test]
fn a_hundred_changes_leave_links_of_others_alone() {
    let mut random = SeededRandom::new(7);
    let mut kernel = Kernel::new(machine());
    let bare = observe(&mut kernel);
    let of_others = |state: &State| {
        let routes = state.routes.iter().filter(|route| route.link == "wan").cloned();
        (state.links["wan"].clone(), state.addresses("wan").to_vec(), routes.collect::<Vec<_>>())
    };
    let mut record = Record::default();
    for change in 0..=CHANGES {
        let configuration = match change {
            CHANGES => Configuration::default(),
            _ => generate(&mut random),
        };
        let now = observe(&mut kernel);
        sound(&configuration, &now, &record);
        let (target, next) = compile(&configuration, &now, &record);
        let adopted = next.adopted(&record);
        assert!(!adopted.contains("wan"));
        reach(&mut kernel, &target, &adopted).unwrap_or_else(|e| panic!("{change}: {e}"));
        let now = observe(&mut kernel);
        assert_eq!(of_others(&now), of_others(&bare), "change {change}");
        record = next;
    }
    assert_eq!(record, Record::default());
    assert_eq!(observe(&mut kernel), bare);
}

/// A step of the way back that is left out is seen: of each kind at least once, and with most
/// steps that are no repetition. What is counted is a state that is not the old one, or a later
/// step that is refused.
#[test]
fn a_step_that_is_left_out_is_seen() {
    let mut seen: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for seed in 0..PAIRS / 4 {
        let change = Change::new(seed);
        let last = change.interrupted(change.steps.len());
        let way_back = change.take_back(&mut last.clone());
        for left_out in 0..way_back.len() {
            let mut kernel = last.clone();
            let rest = way_back.iter().enumerate().filter(|(at, _)| *at != left_out);
            let refused = rest.map(|(_, step)| kernel.take(step)).any(|done| done.is_err());
            let is_seen = refused || observe(&mut kernel) != change.old;
            let kind = format!("{:?}", way_back[left_out]);
            let kind = kind.split([' ', '(']).next().unwrap_or_default().to_owned();
            let count = seen.entry(kind).or_default();
            count.0 += usize::from(is_seen);
            count.1 += 1;
        }
    }
    println!("{seen:#?}");
    for (kind, (red, all)) in &seen {
        assert!(*red > 0, "{kind}: none of {all} is missed");
    }
    for kind in ["SetRoute", "SetAddress", "CreateLink", "DeleteLink", "Attach", "Detach"] {
        assert!(seen.contains_key(kind), "{kind} is not on any way back: {seen:?}");
    }
}
