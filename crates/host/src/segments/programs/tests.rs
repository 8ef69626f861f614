//! What programs compute, without a kernel.

use super::super::asm::tests::run;
use super::*;

/// The bucket of a size as the program finds it.
fn bucket(size_bytes: u64) -> u64 {
    let mut p = Program::new();
    size(&mut p);
    p.exit();
    let mut registers = [0; 11];
    registers[8] = size_bytes;
    run(&p.assemble(), registers)
}

#[test]
fn sizes_fall_into_the_buckets_of_all_statistics() {
    let edges = (0..24).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
    for n in (0..5000).chain(edges).chain([1448, 65_160, 65_536, 524_280]) {
        assert_eq!(bucket(n), base::buckets::index(n) as u64, "{n}");
    }
}
