//! Random WRITE, WRITE SAME, UNMAP and copies on a file, against a model that is an array; GET LBA
//! STATUS against the holes of the file. `PLIMSOLL_TEST_LONG` makes it ten times as long.

use base::random::{Random, SeededRandom};
use vfs::lun::file::{FileMedium, Space};

use super::*;

/// Blocks of the unit: small, so that ranges meet.
const SIZE: u64 = 4096;

struct Model {
    bytes: Vec<u8>,
}

impl Model {
    fn part(&mut self, lba: u64, count: u64) -> &mut [u8] {
        let at = lba as usize * BLOCK;
        &mut self.bytes[at..at + count as usize * BLOCK]
    }
}

#[test]
fn random_changes_equal_a_model() {
    let steps = if std::env::var_os("PLIMSOLL_TEST_LONG").is_some() { 100_000 } else { 10_000 };
    let path = std::env::temp_dir().join(format!("plimsoll-lun-model-{}", std::process::id()));
    let file = FileMedium::create(&path, SIZE * BLOCK as u64, Space::Sparse).expect("a file");
    // The name is not needed any more, whatever happens.
    std::fs::remove_file(&path).expect("removed");
    let medium: Arc<dyn Medium> = Arc::new(file);
    let mut bench = Bench::new();
    let identity = Identity { name: "model".to_owned(), guid: [0x60; 16], block: BLOCK as u32 };
    let settings = UnitSettings { write_cache: true, read_only: false };
    bench.unit = Unit::new(identity, Arc::clone(&medium), settings, None);
    bench.target = Target::new("iqn.2026-01.test:model", SignIn::default());
    bench.target.add(None, Initiators::Everybody, Arc::clone(&bench.unit)).expect("room");
    let mut model = Model { bytes: vec![0; SIZE as usize * BLOCK] };
    let mut random = SeededRandom::new(25);
    for step in 0..steps {
        change(&bench, &mut model, &mut random);
        if step % 50 == 0 {
            let (lba, count) = range(&mut random, 256);
            let read = bench.good(Cdb::Read(io(lba, count as u32)), &[]);
            assert!(read == model.part(lba, count), "step {step}: {count} blocks from {lba}");
        }
        if step % 500 == 0 {
            compare_status(&bench, medium.as_ref(), random.below(SIZE));
        }
    }
    let all = bench.good(Cdb::Read(io(0, SIZE as u32)), &[]);
    assert!(all == model.bytes, "in the end");
}

fn range(random: &mut SeededRandom, most: u64) -> (u64, u64) {
    let count = 1 + random.below(most);
    (random.below(SIZE - count + 1), count)
}

fn change(bench: &Bench, model: &mut Model, random: &mut SeededRandom) {
    let (lba, count) = range(random, 64);
    let byte = random.next_u64() as u8;
    match random.below(6) {
        0 | 1 => {
            let data: Vec<u8> = (0..count as usize * BLOCK).map(|n| byte ^ n as u8).collect();
            bench.good(Cdb::Write(io(lba, count as u32)), &data);
            model.part(lba, count).copy_from_slice(&data);
        }
        2 => {
            let (unmap, no_data) = (random.below(2) == 0, random.below(2) == 0);
            let block = [byte; BLOCK];
            let same = WriteSame { blocks: blocks(lba, count as u32), unmap, no_data };
            bench.good(Cdb::WriteSame(same), if no_data { &[] } else { &block });
            model.part(lba, count).fill(if no_data { 0 } else { byte });
        }
        3 | 4 => {
            let (other, more) = range(random, 64);
            let mut list = Vec::new();
            let extents =
                [Extent { lba, count: count as u32 }, Extent { lba: other, count: more as u32 }];
            wire::scsi::unmap::put(&extents, &mut list);
            bench.good(Cdb::Unmap { group: 0, list_length: list.len() as u16 }, &list);
            model.part(lba, count).fill(0);
            model.part(other, more).fill(0);
        }
        _ => {
            let to = random.below(SIZE - count + 1);
            let (cdb, list) = copy_within((lba, to, count as u16));
            bench.good(cdb, &list);
            let data = model.part(lba, count).to_vec();
            model.part(to, count).copy_from_slice(&data);
        }
    }
}

/// What is reported as unmapped has no space allocated, and the other way round.
fn compare_status(bench: &Bench, medium: &dyn Medium, from: u64) {
    let status = bench.good(Cdb::GetLbaStatus { lba: from, allocation: 1 << 16 }, &[]);
    let status = lba_status(&status).expect("status");
    assert_eq!(status.first().map(|one| one.lba), Some(from));
    for one in status {
        let mut at = one.lba;
        while at < one.lba + u64::from(one.count) {
            let extent = medium.extent(at * BLOCK as u64).expect("extent");
            let whole_hole = !extent.is_mapped && extent.end >= (at + 1) * BLOCK as u64;
            assert_eq!(one.status == 1, whole_hole, "block {at}");
            at = (extent.end / BLOCK as u64).max(at + 1);
        }
    }
}
