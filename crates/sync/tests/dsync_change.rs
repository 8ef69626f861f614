//! A large file that was changed where it is: what is different is sent while the other side still
//! makes sums, and what has moved is not sent.

use std::fs;

use crate::common;
use crate::common::{Gardener, Scratch, assert_same, notes, plain, pushed};
use base::random::Random;
use sync::link::{read_frame, write_now};
use sync::run::pair;
use sync::source;
use sync::tree::host::HostTree;
use wire::dsync::{Basis, Bytes, Data, Message, Need, Outcome, SendMode, Sum, Sums, frame};
use wire::xdr::Seq;

const BLOCK: usize = 4096;
const BLOCKS: usize = 256;

/// The sums of a block, as docs/protocols/dsync.md has them.
fn sum(block: &[u8]) -> Sum {
    let (mut a, mut b) = (0u32, 0u32);
    for byte in block {
        a = a.wrapping_add(u32::from(*byte));
        b = b.wrapping_add(a);
    }
    let mut strong = [0; 16];
    strong.copy_from_slice(&blake3::hash(block).as_bytes()[..16]);
    Sum { weak: (a & 0xffff) | (b << 16), strong }
}

fn random_bytes() -> Vec<u8> {
    let mut bytes = vec![0; BLOCKS * BLOCK];
    Gardener::new(41).random.fill(&mut bytes);
    bytes
}

#[test]
fn what_was_written_over_is_sent_before_all_sums_are_there() {
    let scratch = Scratch::new("early");
    let from = scratch.join("from");
    fs::create_dir(&from).expect("a folder");
    let old = random_bytes();
    let mut new = old.clone();
    // A block, and one that ends where no sum has come.
    for changed in [10, BLOCKS / 2 - 1] {
        new[changed * BLOCK + 7] ^= 1;
    }
    fs::write(from.join("a"), &new).expect("a file");
    let (mut link, far) = pair().expect("sockets");
    let place = from.clone();
    let done =
        std::thread::spawn(move || source::run(HostTree::open(&place)?, &plain(), far, &notes().0));
    let basis = Some(Basis { block: BLOCK as u32, count: BLOCKS as u32 });
    let path = Bytes(b"a".to_vec());
    let need = Need { id: 1, path, wish: SendMode::SEND, hash: None, basis, kept: None };
    write_now(&mut link.write, &Message::Need(need)).expect("a question");
    let all: Vec<Sum> = old.chunks(BLOCK).map(sum).collect();
    let (first, rest) = all.split_at(BLOCKS / 2);
    let sums = |part: &[Sum]| Message::Sums(Sums { id: 1, sums: Seq(part.to_vec()) });
    write_now(&mut link.write, &sums(first)).expect("half of them");
    let (mut told_all, mut sent) = (false, Vec::new());
    loop {
        let body = read_frame(&mut link.read).expect("a frame").expect("one more");
        match frame::message(&body).expect("a message") {
            Message::Data(Data { offset, bytes, .. }) => {
                sent.push((offset as usize / BLOCK, bytes.len(), told_all));
                if !told_all {
                    write_now(&mut link.write, &sums(rest)).expect("the rest");
                    told_all = true;
                }
            }
            Message::End(end) => {
                assert_eq!(end.outcome, Outcome::WHOLE);
                break;
            }
            _ => {}
        }
    }
    assert_eq!(sent, [(10, BLOCK, false), (BLOCKS / 2 - 1, BLOCK, true)]);
    (link.close)();
    assert!(done.join().expect("no panic").is_err(), "the other side is gone");
}

#[test]
fn what_has_moved_is_not_sent_but_for_a_small_part_of_it() {
    let scratch = Scratch::new("swapped");
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    [&from, &to].iter().for_each(|dir| fs::create_dir(dir).expect("a folder"));
    let old = random_bytes();
    // Of each eight blocks two have changed places.
    let mut new = old.clone();
    for eight in new.chunks_mut(8 * BLOCK) {
        let (one, other) = eight.split_at_mut(4 * BLOCK);
        one[BLOCK..2 * BLOCK].swap_with_slice(&mut other[BLOCK..2 * BLOCK]);
    }
    fs::write(from.join("a"), &new).expect("a file");
    fs::write(to.join("a"), &old).expect("a file");
    common::set_time(&to.join("a"), 1_000, 0);
    let counts = pushed(&from, &to, &plain());
    assert_same(&from, &to, "swapped");
    let moved = (BLOCKS / 4 * BLOCK) as u64;
    let most = old.len() as u64 / 32 + 16 * 1024;
    assert!(counts.bytes_received < most, "{} of {moved}", counts.bytes_received);
}
