//! Encodings as the kernel's own tools print them, and a machine that runs what needs no kernel.

use super::*;
use Register::*;

fn bytes(build: impl FnOnce(&mut Program)) -> Vec<[u8; 8]> {
    let mut program = Program::new();
    build(&mut program);
    program.assemble()
}

/// From `bpftool prog dump xlated opcodes` of programs by clang.
#[test]
#[cfg(target_endian = "little")]
fn instructions_are_encoded_as_by_a_compiler() {
    let program = bytes(|p| {
        p.load(Width::B8, R6, R1, 8);
        p.load(Width::B4, R1, R6, 112);
        p.load(Width::B2, R2, R6, 178);
        p.load(Width::B1, R2, R6, 18);
        p.store(Width::B8, R10, -8, R9);
        p.store_value(Width::B4, R10, -28, 0);
        p.set(R2, -66);
        p.copy(R1, R10);
        p.alu(Alu::Right, R1, 10);
        p.alu_of(Alu::Mul, R8, R8);
        p.add_atomic(R0, 16, R8);
        p.host_order(R1, 16);
        p.call(113);
        p.exit();
    });
    let expected: [[u8; 8]; 15] = [
        [0x79, 0x16, 0x08, 0, 0, 0, 0, 0],
        [0x61, 0x61, 0x70, 0, 0, 0, 0, 0],
        [0x69, 0x62, 0xb2, 0, 0, 0, 0, 0],
        [0x71, 0x62, 0x12, 0, 0, 0, 0, 0],
        [0x7b, 0x9a, 0xf8, 0xff, 0, 0, 0, 0],
        [0x62, 0x0a, 0xe4, 0xff, 0, 0, 0, 0],
        [0xb7, 0x02, 0, 0, 0xbe, 0xff, 0xff, 0xff],
        [0xbf, 0xa1, 0, 0, 0, 0, 0, 0],
        [0x77, 0x01, 0, 0, 10, 0, 0, 0],
        [0x2f, 0x88, 0, 0, 0, 0, 0, 0],
        [0xdb, 0x80, 0x10, 0, 0, 0, 0, 0],
        [0xdc, 0x01, 0, 0, 16, 0, 0, 0],
        [0x85, 0x00, 0, 0, 113, 0, 0, 0],
        [0xb7, 0x00, 0, 0, 0, 0, 0, 0],
        [0x95, 0x00, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(program, expected);
}

#[test]
#[cfg(target_endian = "little")]
fn a_jump_counts_from_the_instruction_behind_it() {
    let program = bytes(|p| {
        let out = p.label();
        p.jump(Jump::Equal, R0, 0, out);
        p.map(R1, 7);
        p.jump_of(Jump::Differs, R1, R2, out);
        p.here(out).exit();
    });
    assert_eq!(program[0], [0x15, 0, 3, 0, 0, 0, 0, 0], "the map takes two instructions");
    assert_eq!(program[1], [0x18, 0x11, 0, 0, 7, 0, 0, 0]);
    assert_eq!(program[3], [0x5d, 0x21, 0, 0, 0, 0, 0, 0]);
}

/// Runs arithmetic and jumps from these registers until the program ends; the register `R9` then.
pub fn run(program: &[[u8; 8]], mut registers: [u64; 11]) -> u64 {
    let mut at = 0;
    loop {
        let [op, both, o0, o1, i0, i1, i2, i3] = program[at];
        let (to, from) = (usize::from(both & 15), usize::from(both >> 4));
        let offset = i16::from_ne_bytes([o0, o1]);
        let immediate = i64::from(i32::from_ne_bytes([i0, i1, i2, i3])) as u64;
        let right = if op & FROM_REGISTER == 0 { immediate } else { registers[from] };
        let left = registers[to];
        at += 1;
        let jumps = match op & !FROM_REGISTER {
            0x15 => left == right,
            0x25 => left > right,
            0x45 => left & right != 0,
            0x55 => left != right,
            0xa5 => left < right,
            0xd5 => left as i64 <= right as i64,
            0x05 => true,
            _ => false,
        };
        match op & !FROM_REGISTER {
            _ if jumps => at = (at as i64 + i64::from(offset)) as usize,
            0x07 => registers[to] = left.wrapping_add(right),
            0x17 => registers[to] = left.wrapping_sub(right),
            0x27 => registers[to] = left.wrapping_mul(right),
            0x47 => registers[to] = left | right,
            0x57 => registers[to] = left & right,
            0x67 => registers[to] = left << (right & 63),
            0x77 => registers[to] = left >> (right & 63),
            0xb7 => registers[to] = right,
            EXIT => return registers[9],
            _ if op & 7 == 5 => {}
            other => panic!("the machine of this test does not know {other:#x}"),
        }
    }
}
