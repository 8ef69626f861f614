//! Even runs name no client; one at half or a tenth of the rate is named with its address.

use super::*;
use crate::verdict::stats::uniform;
use base::random::SeededRandom;

/// Clients of an even run: each differs by up to 10 % from the mean, as on a busy machine.
fn even(seed: u64, clients: u32) -> Vec<ClientShare> {
    let mut random = SeededRandom::new(seed);
    let mut share = |number| ClientShare {
        number,
        done: (4_000.0 * (0.9 + 0.2 * uniform(&mut random))).round(),
        source: Some(format!("10.0.{}.{}", number % 2, number + 1)),
        interface: Some(format!("port{}", number % 2)),
    };
    (0..clients).map(&mut share).collect()
}

#[test]
fn twenty_even_runs_name_no_client() {
    for seed in 0..20 {
        for clients in [2, 3, 8, 18] {
            let found = judge(&even(seed, clients)).unwrap();
            assert_eq!(found.uneven, [], "seed {seed}, {clients} clients");
            assert!(found.jain > 0.99 && found.min_over_mean > 0.85, "{found:?}");
        }
    }
}

#[test]
fn a_slow_client_is_named_with_address_and_interface() {
    for (seed, factor) in (0..20).flat_map(|seed| [(seed, 0.5), (seed, 0.1)]) {
        for clients in [2, 3, 8, 18] {
            let mut run = even(seed, clients);
            run[1].done *= factor;
            let found = judge(&run).unwrap();
            let [one] = found.uneven.as_slice() else { panic!("{factor}, {clients}: {found:?}") };
            assert_eq!(one.client, 1);
            assert!(one.sentence.contains("client 1 from 10.0.1.2 over port1"), "{}", one.sentence);
            let percent = format!("{:.0} %", one.to_others * 100.0);
            assert!(one.sentence.contains(&percent), "{}", one.sentence);
        }
    }
}

#[test]
fn a_fast_client_is_named_where_none_is_slow() {
    let mut run = even(1, 8);
    run[5].done *= 2.0;
    let found = judge(&run).unwrap();
    assert_eq!(found.uneven.iter().map(|u| u.client).collect::<Vec<_>>(), [5]);
    // Half of them slow: the slow ones are named, not the others as fast.
    let mut run = even(1, 4);
    run[0].done *= 0.4;
    run[1].done *= 0.4;
    let found = judge(&run).unwrap();
    assert!(found.uneven.iter().all(|u| u.client < 2), "{found:?}");
}

#[test]
fn the_threshold_is_where_it_is_declared() {
    let run = |slow: f64| {
        let done = [1e4, 1e4, 1e4, 1e4 * slow];
        let client = |(n, d): (usize, &f64)| ClientShare {
            number: n as u32,
            done: *d,
            ..Default::default()
        };
        judge(&done.iter().enumerate().map(client).collect::<Vec<_>>()).unwrap()
    };
    assert_eq!(run(0.71).uneven, []);
    assert_eq!(run(0.69).uneven.len(), 1);
}

#[test]
fn jains_index_is_one_over_n_when_one_does_everything() {
    let done = [100.0, 0.0, 0.0, 0.0];
    let client = |d: &f64| ClientShare { done: *d, ..Default::default() };
    let found = judge(&done.iter().map(client).collect::<Vec<_>>()).unwrap();
    assert_eq!((found.jain, found.min_over_mean), (0.25, 0.0));
    assert_eq!(judge(&[client(&1.0)]), None);
    assert_eq!(judge(&[client(&0.0), client(&0.0)]), None);
}
