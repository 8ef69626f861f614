//! What commands of SCSI and text cost: the most expensive that a seeded search finds.

use base::random::{Random, SeededRandom};
use wire::scsi::Cdb;
use wire::scsi::copy::{Copy, Segment};

use super::client::{Client, Got, How};
use super::search::worst;
use super::{BLOCK, Bench, SignIn};
use crate::scsi::tests::copy_target;

/// Blocks of a unit.
const BLOCKS: u64 = (32 << 20) / BLOCK as u64;

/// A number up to `most`, small ones as likely as large ones.
fn up_to(random: &mut SeededRandom, most: u64) -> u64 {
    let bits = u64::from(u64::BITS - most.leading_zeros());
    let shift = random.below(bits + 1);
    (random.next_u64() & most) >> shift.min(63)
}

/// A command of 16 bytes with a block and a count, and its second byte.
fn sixteen(operation: u8, options: u8, (lba, count): (u64, u32)) -> Vec<u8> {
    let mut cdb = vec![operation, options];
    cdb.extend(lba.to_be_bytes());
    cdb.extend(count.to_be_bytes());
    cdb.extend([0, 0]);
    cdb
}

/// UNMAP of many ranges, which may overlap.
fn unmap(random: &mut SeededRandom) -> (Vec<u8>, Vec<u8>) {
    let count = up_to(random, 300) as usize;
    let mut list = Vec::new();
    list.extend((6 + 16 * count as u16).to_be_bytes());
    list.extend((16 * count as u16).to_be_bytes());
    list.extend([0; 4]);
    for _ in 0..count {
        list.extend(random.below(BLOCKS).to_be_bytes());
        list.extend((up_to(random, 300) as u32).to_be_bytes());
        list.extend([0; 4]);
    }
    let mut cdb = vec![0x42, 0, 0, 0, 0, 0, 0];
    cdb.extend((list.len() as u16).to_be_bytes());
    cdb.push(0);
    (cdb, list)
}

fn copy(random: &mut SeededRandom) -> (Vec<u8>, Vec<u8>) {
    let most = up_to(random, 0xffff);
    let segment = |random: &mut SeededRandom| Segment {
        counts_destination: random.below(2) == 0,
        concatenate: false,
        source: random.below(2) as u16,
        destination: random.below(2) as u16,
        count: up_to(random, most) as u16,
        source_lba: up_to(random, BLOCKS),
        destination_lba: up_to(random, BLOCKS),
    };
    let segments = (0..up_to(random, 70)).map(|_| segment(random)).collect();
    let mut list = Vec::new();
    Copy { targets: vec![copy_target(0), copy_target(1)], segments, ..Copy::default() }
        .put(&mut list);
    let cdb = Cdb::ExtendedCopy { list_length: list.len() as u32 }.encode().expect("a CDB");
    (cdb.bytes().to_vec(), list)
}

/// A command, what is sent with it, and how much it may answer.
fn command(random: &mut SeededRandom) -> (Vec<u8>, Vec<u8>, u32) {
    let lba = up_to(random, BLOCKS);
    let range = (lba, up_to(random, BLOCKS - lba) as u32);
    // One in some moves much.
    let small = (lba, (range.1).min(if random.below(16) == 0 { 16_384 } else { 64 }));
    match random.below(13) {
        0 => (sixteen(0x88, 0, small), Vec::new(), small.1 * BLOCK as u32),
        1 => (sixteen(0x8f, 0, range), Vec::new(), 0),
        // WRITE SAME without data, of which some take space away.
        2 => (sixteen(0x93, 1 | if random.below(2) == 0 { 8 } else { 0 }, range), Vec::new(), 0),
        3 => (sixteen(0x93, 0, range), vec![7; BLOCK], 0),
        4 => {
            let (cdb, list) = unmap(random);
            (cdb, list, 0)
        }
        5 => {
            let (cdb, list) = copy(random);
            (cdb, list, 0)
        }
        // GET LBA STATUS, and REPORT SUPPORTED OPERATION CODES.
        6 => (sixteen(0x9e, 0x12, (lba, 1 << 16)), Vec::new(), 1 << 16),
        7 => (vec![0xa3, 0x0c, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0], Vec::new(), 1 << 16),
        // PERSISTENT RESERVE IN, with everything.
        8 => (vec![0x5e, 3, 0, 0, 0, 0, 0, 255, 255, 0], Vec::new(), 1 << 16),
        // VERIFY that compares, and COMPARE AND WRITE.
        9 => {
            let count = small.1.min(2_048);
            (sixteen(0x8f, 2, (lba, count)), vec![0; count as usize * BLOCK], 0)
        }
        10 => {
            let count = small.1.min(255);
            let mut cdb = sixteen(0x89, 0, (lba, count));
            cdb[10..13].fill(0);
            (cdb, vec![0; 2 * count as usize * BLOCK], 0)
        }
        11 => (vec![0x12, 1, up_to(random, 0xff) as u8, 255, 255, 0], Vec::new(), 1 << 16),
        _ => (vec![0x5a, 8, 0x3f, 0xff, 0, 0, 0, 255, 255, 0], Vec::new(), 1 << 16),
    }
}

/// Unknown keys, each once, and perhaps one that is known.
fn text(client: &mut Client, random: &mut SeededRandom) -> String {
    let length = [4, 55][random.below(2) as usize];
    let count = up_to(random, 8_000 / (length + 8));
    let mut pairs: String =
        (0..count).map(|n| format!("X-{}{n:04}=b\0", "a".repeat(length as usize))).collect();
    if random.below(3) == 0 {
        pairs.push_str("MaxRecvDataSegmentLength=65536\0");
    }
    let answer = client.text(pairs.as_bytes());
    client.text_tag = wire::iscsi::RESERVED_TAG;
    let Some(Got::Text(answer)) = answer else { return format!("{count} keys: {answer:?}") };
    format!("{count} keys: {} bytes", answer.len())
}

#[test]
fn the_most_expensive_command_is_bounded() {
    let bench = Bench::new(2, SignIn::default());
    let mut client = Client::new(&bench, &How::default());
    (0..2).for_each(|lun| client.settle(lun));
    worst("iscsi", |random: &mut SeededRandom| {
        if random.below(8) == 0 {
            return text(&mut client, random);
        }
        let (cdb, data, takes) = command(random);
        let (write, length) = (!data.is_empty(), takes.max(data.len() as u32));
        let itt = client.start_bytes(0, &cdb, write, length, &[]);
        let answer = client.finish(itt, &data);
        format!("{cdb:02x?} with {} bytes: {:?}", data.len(), answer.status)
    });
}
