//! Packs are split where they are full, and use no more memory than declared.

use std::sync::Arc;

use base::limits::DICTIONARY_NAMES_MAX;

use super::super::codec::everything;
use super::super::segment::{self, Writer};
use super::*;
use crate::model::{Frame, Key, Name, Table};

const HEADER: Header = Header { sealed: false, span: 1, start: 7200 };

/// A second in which `wide` files come that never were, of this many bytes of path.
fn frame(time: u64, wide: u64, path: usize) -> Frame {
    let file = |n: u64| {
        let (key, label) = (format!("{:016x}", time * wide + n), format!("{n:0path$}"));
        (Key::Name(Arc::new(Name { key, label })), Key::Bucket(3), [n, 4096 * time])
    };
    let table = Table {
        stat: "nfs3.ops".into(),
        dimensions: ["file".into(), "latency".into()],
        total: [wide, 0],
        error: [0; 2],
        rows: (0..wide).map(file).collect(),
    };
    Frame { time, span: 1, covered: 1, dropped: 0, tables: vec![table] }
}

/// Writes `frames` to a live segment, packs it, and returns the kinds of the blocks of both.
fn pack(name: &str, frames: &[Frame]) -> [Vec<u8>; 2] {
    let name = format!("plimsoll-packing-{name}-{}", std::process::id());
    let live = std::env::temp_dir().join(name);
    let sealed = live.with_extension("seg");
    let mut writer = Writer::open(&live, HEADER).expect("a segment");
    let half = frames.len() / 2;
    frames[..half].iter().for_each(|frame| writer.append(frame).expect("appended"));
    // After a restart of the server it continues at the end of the file.
    let mut writer = Writer::open(&live, HEADER).expect("the same segment");
    frames[half..].iter().for_each(|frame| writer.append(frame).expect("appended"));
    let kinds = |path: &Path| {
        let mut blocks = Blocks::open(path).expect("a segment");
        let mut kinds = Vec::new();
        while let Step::Block(kind, _) = blocks.next(&|_, _| true).expect("a block") {
            kinds.push(kind);
        }
        kinds
    };
    let check = |path: &Path| {
        let (mut found, mut some) = (Vec::new(), Vec::new());
        segment::read(path, (0, u64::MAX), &everything, &mut |f| found.push(f)).expect("read");
        assert!(found == frames, "{} of {} frames", found.len(), frames.len());
        // Packs that are passed over have names for those that are not.
        let last = frames.last().map_or(0, |frame| frame.time);
        segment::read(path, (last, u64::MAX), &everything, &mut |f| some.push(f)).expect("read");
        assert_eq!(some.last(), frames.last());
        kinds(path)
    };
    let before = check(&live);
    seal(&live, &sealed, 600).expect("packed");
    let both = [before, check(&sealed)];
    std::fs::remove_file(&sealed).expect("removed");
    both
}

fn count(kinds: &[u8], kind: u8) -> usize {
    kinds.iter().filter(|k| **k == kind).count()
}

#[test]
fn names_that_come_and_go_are_renumbered_when_there_are_too_many() {
    let frames: Vec<_> = (7200..7900).map(|time| frame(time, 60, 20)).collect();
    let [live, sealed] = pack("restart", &frames);
    let restarts = count(&live, kind::RESTART);
    assert_eq!(restarts as u64, 700 * 60 / DICTIONARY_NAMES_MAX);
    assert_eq!(count(&sealed, kind::RESTART), restarts);
    assert_eq!(count(&sealed, kind::PACK), restarts + 1);
}

#[test]
fn a_pack_has_as_many_bytes_as_one_may() {
    // Long paths: the names are what fills it.
    let frames: Vec<_> = (7200..7300).map(|time| frame(time, 20, 2000)).collect();
    let [_, sealed] = pack("names", &frames);
    let least = 100 * 20 * 2000 / PACK_BYTES_MAX;
    assert!((least..2 * least + 4).contains(&count(&sealed, kind::PACK)), "{sealed:?}");
    // The same few names: one dictionary for all packs.
    let wide = frame(0, 3000, 10);
    let frames: Vec<_> = (7200..7400).map(|time| Frame { time, ..wide.clone() }).collect();
    let [_, sealed] = pack("bodies", &frames);
    assert!(count(&sealed, kind::PACK) > 1, "{sealed:?}");
    assert_eq!(count(&sealed, kind::DICTIONARY), 1);
}

#[test]
fn compressing_takes_the_documented_memory() {
    let path = std::env::temp_dir().join(format!("plimsoll-packer-{}", std::process::id()));
    let file = File::create(&path).expect("a file");
    let mut packer = Packer::new(file, HEADER, usize::MAX).expect("a packer");
    for time in 0..400 {
        let mut encoder = super::super::codec::Encoder::default();
        packer.add(&encoder.frame(&frame(time, 300, 20))).expect("added");
        let memory = packer.compressor.context_mut().sizeof();
        assert!(memory < 12 * PACK_BYTES_MAX, "{memory} bytes");
        assert!(packer.names.0.capacity().max(packer.bodies.0.capacity()) <= 2 * PACK_BYTES_MAX);
    }
    packer.finish().expect("written");
    std::fs::remove_file(path).expect("removed");
}
