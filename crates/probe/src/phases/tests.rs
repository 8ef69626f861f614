//! The parts of a latency add up to it, and each is what went in to 0.03 % of the latency.

use base::random::{Random, SeededRandom};

use super::*;

#[test]
fn parts_of_random_latencies_are_what_went_in() {
    let mut random = SeededRandom::new(43);
    for _ in 0..100_000 {
        let most = 1 << (1 + random.below(45));
        let ns: [u64; KEPT] = std::array::from_fn(|_| random.below(most));
        let rest = random.below(most);
        let latency = rest + ns.iter().sum::<u64>();
        let parts = PhaseParts::of(latency, ns);
        assert_eq!(parts.parts().iter().sum::<u64>(), PARTS);
        let out = parts.ns(latency);
        assert_eq!(out.iter().sum::<u64>(), latency, "{ns:?}");
        let went_in = [rest].into_iter().chain(ns);
        for (phase, (ns, out)) in Phase::ALL.into_iter().zip(went_in.zip(out)) {
            // Two roundings of sums, and the precision of a float.
            let off = ns.abs_diff(out) as f64;
            assert!(off <= 1.01 * latency as f64 / PARTS as f64 + 2.0, "{phase:?}: {ns} is {out}");
        }
    }
}

#[test]
fn one_phase_can_have_all_of_it() {
    for phase in Phase::ALL {
        let mut ns = [0; KEPT];
        if let Some(n) = (phase as usize).checked_sub(1) {
            ns[n] = 5_000_000;
        }
        let parts = PhaseParts::of(5_000_000, ns);
        assert_eq!(parts, PhaseParts::all_in(phase));
        assert_eq!(parts.part(phase), PARTS);
        assert_eq!(parts.ns(5_000_000)[phase as usize], 5_000_000);
        assert_eq!(PhaseParts::from_bits(parts.bits()), parts);
    }
}

#[test]
fn what_is_more_than_the_latency_is_cut_off() {
    let parts = PhaseParts::of(100, [60, 60, 60, u64::MAX, u64::MAX]);
    let [queue, inline, wait, rest @ ..] = parts.ns(100);
    assert_eq!((queue, rest), (0, [0; 3]));
    assert!(inline.abs_diff(60) <= 1 && inline + wait == 100);
    assert_eq!(PhaseParts::of(0, [1; KEPT]).ns(0), [0; 6]);
}

#[test]
fn names_lead_back() {
    for phase in Phase::ALL {
        assert_eq!(Phase::from_id(phase.id()), Some(phase));
        assert_eq!(Phase::from_id(phase.label()), Some(phase));
        assert_eq!(Phase::ALL[phase as usize], phase);
    }
    assert_eq!(Phase::from_id("disk"), None);
}

#[test]
fn a_clock_puts_what_is_planted_into_its_phase() {
    const MS: u64 = 1_000_000;
    for planted in Phase::ALL {
        let mut now = 1_000 * MS;
        let mut tick = |phase| {
            now += if phase == planted { 5 * MS } else { MS };
            now
        };
        let mut clock = PhaseClock::new(1_000 * MS);
        clock.resume(tick(Phase::Queue));
        for phase in [Phase::Inline, Phase::PoolWait, Phase::Pool, Phase::Flush] {
            clock.spent(phase, tick(phase));
        }
        let done = tick(Phase::Send);
        let ns = clock.parts(10 * MS, done).ns(10 * MS);
        assert_eq!(ns.iter().sum::<u64>(), 10 * MS);
        for phase in Phase::ALL {
            let should = if phase == planted { 5 * MS } else { MS };
            assert!(ns[phase as usize].abs_diff(should) <= 10 * MS / PARTS, "{planted:?}: {ns:?}");
        }
    }
}

#[test]
fn parts_that_ran_elsewhere_are_neither_queued_nor_sent() {
    let mut part = PhaseClock::new(100);
    part.spent(Phase::PoolWait, 140);
    part.spent(Phase::Pool, 200);
    let mut clock = PhaseClock::new(0);
    clock.resume(1_000);
    clock.add(&part);
    clock.spent(Phase::Inline, 1_200);
    clock.add_while_sending(&part);
    let ns = clock.parts(2_000, 2_000).ns(2_000);
    let should = [1_000 - 100, 200, 80, 120, 0, 800 - 100];
    for (is, should) in ns.into_iter().zip(should) {
        assert!(is.abs_diff(should) <= 1, "{ns:?}");
    }
}
