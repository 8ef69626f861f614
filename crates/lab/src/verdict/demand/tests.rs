//! Planted demands come back, with the limiter and the next one; what was not seen limits nothing.

use super::*;
use crate::verdict::stats::uniform;
use base::random::SeededRandom;

/// Throughput of steps that level at 50 K.
const STEPS: [f64; 7] = [8e3, 16e3, 30e3, 42e3, 48e3, 49.5e3, 50e3];

/// A resource with `us` microseconds per operation, `idle` load, and 1 % of noise.
fn resource(name: &str, capacity: f64, us: f64, idle: f64) -> Resource {
    seeded(name, capacity, us, idle, name.len() as u64)
}

fn seeded(name: &str, capacity: f64, us: f64, idle: f64, seed: u64) -> Resource {
    let mut random = SeededRandom::new(seed);
    let mut busy = |x: &f64| (idle + us * 1e-6 * x) * (0.99 + 0.02 * uniform(&mut random));
    Resource {
        name: name.into(),
        capacity,
        busy: STEPS.iter().map(&mut busy).collect(),
        users: Vec::new(),
        observe: format!("observe {name}"),
    }
}

#[test]
fn the_limiter_and_the_next_limit_have_their_factor() {
    // 2 cores ÷ 40 µs = 50 K; 1 ÷ 10 µs = 100 K; 1 ÷ 4 µs = 250 K.
    let cpu = resource("CPU of the server", 2.0, 40.0, 0.0);
    let disk = resource("disk vda", 1.0, 10.0, 0.0);
    let link = resource("link eth0", 1.0, 4.0, 0.0);
    let found = judge(&STEPS, &[link, disk, cpu]);
    assert_eq!(found.binding, Binding::Resource("CPU of the server".into()));
    let next = found.next.clone().unwrap();
    assert_eq!(next.name, "disk vda");
    assert!((next.factor / 2.0 - 1.0).abs() < 0.05, "{next:?}");
    assert!(next.low < next.factor && next.factor < next.high, "{next:?}");
    let sentences = found.sentences().join("\n");
    assert!(sentences.contains("next limit: disk vda, at 2.0 times"), "{sentences}");
    assert!((found.demands[0].seconds * 1e6 - 40.0).abs() < 1.0, "{sentences}");
}

/// Of 100 systems, with idle load and without, the interval of the factor holds it in 90 at least.
#[test]
fn the_interval_of_the_factor_holds_it() {
    for idle in [0.0, 0.5] {
        let holds = (0..100).filter(|seed| {
            let cpu = seeded("cpu", 2.0 + idle, 40.0, idle, *seed);
            let disk = seeded("disk", 1.0, 10.0, 0.0, seed + 1000);
            let next = judge(&STEPS, &[cpu, disk]).next.unwrap();
            (next.low..=next.high).contains(&2.0)
        });
        let holds = holds.count();
        assert!(holds >= 90, "{holds} of 100");
    }
}

#[test]
fn load_of_others_is_not_demand() {
    // Of 4 cores others use 1.5: 2.5 ÷ 50 µs.
    let cpu = resource("CPU of the server", 4.0, 50.0, 1.5);
    let found = judge(&STEPS, &[cpu]);
    let [demand] = found.demands.as_slice() else { panic!("{found:?}") };
    assert!((demand.seconds * 1e6 - 50.0).abs() < 3.0, "{demand:?}");
    assert!((demand.idle - 1.5).abs() < 0.1, "{demand:?}");
    assert!((demand.bound / 50e3 - 1.0).abs() < 0.02, "{demand:?}");
    assert_eq!(found.binding, Binding::Resource("CPU of the server".into()));
}

#[test]
fn what_was_not_seen_is_never_the_limiter() {
    let mut cpu = resource("CPU of the server", 8.0, 40.0, 0.0);
    let link = resource("link eth0", 1.0, 4.0, 0.0);
    let found = judge(&STEPS, &[cpu.clone(), link.clone()]);
    assert_eq!(found.binding, Binding::Nothing);
    cpu.busy.clear();
    let found = judge(&STEPS, &[cpu, link]);
    assert_eq!(found.binding, Binding::Unknown);
    assert_eq!(found.next.as_ref().unwrap().name, "link eth0");
    let sentences = found.sentences().join("\n");
    let expected = "not observed: CPU of the server; `observe CPU of the server` shows it";
    assert!(sentences.contains(expected), "{sentences}");
}

#[test]
fn resources_that_end_together_are_not_separable() {
    let server = resource("CPU of the server", 2.0, 40.0, 0.0);
    let thread = resource("thread core-0", 1.0, 20.2, 0.0);
    let link = resource("link eth0", 1.0, 4.0, 0.0);
    let found = judge(&STEPS, &[server, thread, link]);
    let Binding::NotSeparable(names) = &found.binding else { panic!("{found:?}") };
    assert_eq!(names.len(), 2);
    assert_eq!(found.next.as_ref().unwrap().name, "link eth0");
    let sentences = found.sentences().join("\n");
    assert!(sentences.contains("not separable: "), "{sentences}");
}

#[test]
fn a_resource_that_allows_less_than_was_measured_is_named() {
    // 1 ÷ 40 µs = 25 K, and 50 K were measured.
    let cpu = Resource {
        busy: STEPS.iter().map(|x| 40e-6 * x).collect(),
        ..resource("disk vdb", 1.0, 40.0, 0.0)
    };
    let found = judge(&STEPS, &[cpu]);
    assert!(found.demands.is_empty() && found.binding == Binding::Unknown, "{found:?}");
    let [sentence] = found.inconsistent.as_slice() else { panic!("{found:?}") };
    assert!(sentence.contains("disk vdb") && sentence.contains("50 K"), "{sentence}");
}

#[test]
fn users_of_one_capacity_have_their_parts() {
    let mut cpu = resource("CPU of the host", 2.0, 40.0, 0.0);
    let part = |us: f64| STEPS.iter().map(|x| us * 1e-6 * x).collect::<Vec<_>>();
    cpu.users = vec![("server".into(), part(28.0)), ("generator".into(), part(12.0))];
    let found = judge(&STEPS, &[cpu]);
    let users = &found.demands[0].users;
    assert!((users[0].1 - 28e-6).abs() < 1e-9 && (users[1].1 - 12e-6).abs() < 1e-9, "{users:?}");
    assert!(found.demands[0].sentence.contains("(server 28"), "{}", found.demands[0].sentence);
}

#[test]
fn what_does_not_grow_with_throughput_has_no_demand() {
    let mut random = SeededRandom::new(3);
    let busy = STEPS.iter().map(|_| 0.30 + 0.02 * uniform(&mut random)).collect();
    let other = Resource { busy, ..resource("disk vdb", 1.0, 0.0, 0.0) };
    let found = judge(&STEPS, &[other]);
    assert!(found.demands.is_empty() && found.next.is_none(), "{found:?}");
    assert!(found.without[0].contains("does not grow"), "{found:?}");
    let two = judge(&STEPS[..2], &[Resource { busy: vec![0.1, 0.2], ..Default::default() }]);
    assert!(two.without[0].contains("fewer than three"), "{two:?}");
}

#[test]
fn a_demand_that_changes_is_marked() {
    // A cache warms up: the first operations read the disk, the last ones hardly do.
    let per_op = [60e-6, 55e-6, 30e-6, 8e-6, 2e-6, 2e-6, 2e-6];
    let busy: Vec<f64> = STEPS.iter().zip(per_op).map(|(x, d)| x * d).collect();
    let found = judge(&STEPS, &[Resource { busy, ..resource("disk vda", 1.0, 0.0, 0.0) }]);
    let [demand] = found.demands.as_slice() else { panic!("{found:?}") };
    assert!(!demand.constant && (demand.seconds - 2e-6).abs() < 1e-9, "{demand:?}");
    assert!(demand.sentence.contains("did not take the same"), "{}", demand.sentence);
}

/// A resource that reaches its end at `bound` operations per second, without noise.
fn exact(name: &str, bound: f64) -> Resource {
    let busy = STEPS.iter().map(|x| x / bound).collect();
    Resource { name: name.into(), capacity: 1.0, busy, ..Resource::default() }
}

#[test]
fn thresholds_of_bounds() {
    let binding = |bounds: &[f64]| {
        let resources = bounds.iter().map(|bound| exact("x", 50e3 * bound));
        judge(&STEPS, &resources.collect::<Vec<_>>()).binding
    };
    // REACHED: from 90 % of the bound on.
    assert_eq!(binding(&[1.12]), Binding::Nothing);
    assert_eq!(binding(&[1.11]), Binding::Resource("x".into()));
    // CLOSE: 5 % apart.
    assert!(matches!(binding(&[1.0, 1.04]), Binding::NotSeparable(_)));
    assert_eq!(binding(&[1.0, 1.06]), Binding::Resource("x".into()));
    // ABOVE: 5 % more than the bound was measured.
    assert_eq!(binding(&[0.96]), Binding::Resource("x".into()));
    assert_eq!(binding(&[0.94]), Binding::Unknown);
}

/// Overlapping intervals alone are not enough: bounds must be within 25 % as well.
#[test]
fn bounds_are_inseparable_when_near_and_uncertain() {
    let inseparable = |bound: f64, error: f64| {
        let demand = |bound: f64| Demand {
            name: String::new(),
            seconds: 1.0 / bound,
            seconds_error: 0.0,
            idle: 0.0,
            users: Vec::new(),
            bound,
            bound_low: bound - error,
            bound_high: bound + error,
            constant: true,
            sentence: String::new(),
        };
        super::inseparable(&[demand(100.0), demand(bound)]) == 2
    };
    assert!(inseparable(124.0, 20.0) && !inseparable(126.0, 20.0), "NEAR");
    assert!(!inseparable(124.0, 10.0), "apart");
}
