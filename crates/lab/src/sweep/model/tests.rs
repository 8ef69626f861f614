//! The model against the source's own figures, and at its edges.

use super::*;

const MIB: f64 = 1_048_576.0;

/// Within `percent` percent.
fn near(value: f64, expected: f64, percent: f64) {
    let off = deviation_percent(value, expected);
    assert!(off.abs() <= percent, "{value} is {off:.1} % off {expected}");
}

#[test]
fn the_three_numbers_of_the_source_come_out() {
    // 512 MB at 200 ms with one, two and four instances; its megabytes are of 10^6 bytes, and
    // whether its buffer's are is not stated: both fit.
    for block in [512e6, 512.0 * MIB] {
        let one = stop_and_wait(block, 0.2, SOURCE_RATE);
        near(one, 689e6, 1.5);
        // Two share the link, and lose some of it to each other.
        near(instances(2, one, SOURCE_LINK), 915e6, 7.2);
        near(instances(4, one, SOURCE_LINK), 981e6, 0.2);
    }
}

#[test]
fn the_table_of_one_instance_comes_out() {
    let table: [(f64, [f64; 3]); 5] = [
        (65_536.0, [0.328e6, 3.27e6, 31.7e6]),
        (MIB, [5.2e6, 50e6, 337e6]),
        (16.0 * MIB, [77e6, 443e6, 845e6]),
        (64.0 * MIB, [247e6, 734e6, 914e6]),
        (512.0 * MIB, [696e6, 908e6, 937e6]),
    ];
    for (block, row) in table {
        for (rtt_s, expected) in [0.2, 0.02, 0.002].into_iter().zip(row) {
            near(stop_and_wait(block, rtt_s, SOURCE_RATE), expected, 1.0);
        }
    }
}

#[test]
fn without_distance_the_rate_is_all() {
    assert_eq!(stop_and_wait(MIB, 0.0, 1e8), 1e8);
    assert_eq!(window(65_536.0, 0.0, 1e8), 1e8);
}

#[test]
fn a_window_carries_itself_once_in_a_round_trip() {
    assert_eq!(window(1e6, 0.1, 1e8), 1e7);
    assert_eq!(window(1e8, 0.1, 1e8), 1e8);
    assert_eq!(instances(4, window(1e6, 0.1, 1e8), 1e8), 4e7);
    assert_eq!(instances(16, window(1e6, 0.1, 1e8), 1e8), 1e8);
}

#[test]
fn what_is_scaled_keeps_its_share_of_the_link() {
    let share = stop_and_wait(512e6, 0.2, SOURCE_RATE) / SOURCE_RATE;
    let scale = 12e6 / SOURCE_RATE;
    near(stop_and_wait(512e6 * scale, 0.2, 12e6) / 12e6, share, 1e-9);
}
