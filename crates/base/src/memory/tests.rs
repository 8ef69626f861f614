//! What was freed below something in use is resident until it is given back.

use super::*;

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
    kib.expect("a number") << 10
}

#[test]
fn freed_memory_goes_back_to_the_system() {
    const BYTES: u64 = 128 << 20;
    let mut pieces: Vec<Vec<u8>> = (0..BYTES >> 12).map(|_| vec![1; 4000]).collect();
    let last = pieces.pop();
    drop(pieces);
    let before = resident();
    give_back();
    let after = resident();
    assert!(before.saturating_sub(after) > BYTES / 2, "{before} bytes have become {after}");
    assert_eq!(last.map(|piece| piece.len()), Some(4000));
}

#[test]
fn memory_is_given_back_once_for_each_fall() {
    let mut trim = Trim::default();
    let seen: Vec<bool> =
        [10, 100, 90, 60, 60, 30, 70, 40].map(|mib| trim.observe(mib << 20)).to_vec();
    assert_eq!(seen, [false, false, false, true, false, false, false, false]);
    assert!(trim.observe(30 << 20), "40 MiB less than the most since");
}
