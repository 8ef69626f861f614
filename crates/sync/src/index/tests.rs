//! Any bytes are an index or an error, and the order of paths is that of a walk.

use std::path::PathBuf;
use std::sync::Arc;

use base::clock::ManualClock;
use base::random::{Random, SeededRandom};
use wire::dsync::{FileId, Kind, Role, Time};

use super::file::{Draft, SavedIndex, write};
use super::record::order;
use super::sums::is_still;
use super::{IndexedTrees, Part, Record, State, Unfit, inspect, is_index, scan};

fn places() -> IndexedTrees {
    IndexedTrees { source: b"/a".to_vec(), destination: b"/b".to_vec() }
}

fn place(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("plimsoll-index-{name}-{}", std::process::id()));
    let _none = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder.join("index")
}

fn record(path: &[u8], number: u64) -> Record {
    let state = State {
        kind: Kind::FILE,
        size: number,
        mtime: Time { seconds: -5, nanoseconds: 7 },
        ctime_ns: i128::from(number) - 3,
        file: FileId { device: 1, inode: number },
    };
    let sum = number.is_multiple_of(2).then_some([number as u8; 32]);
    Record { path: path.to_vec(), state, sum }
}

/// An index with `count` entries at each side, and its records in their order.
fn written(name: &str, count: u64) -> (PathBuf, Vec<Record>) {
    let path = place(name);
    let mut random = SeededRandom::new(count);
    let mut records: Vec<Record> = (0..count)
        .map(|number| {
            let path = match random.below(3) {
                0 => format!("{number}"),
                1 => format!("{}d/{number}", random.below(5)),
                _ => format!("{}d/{}d/{number}", random.below(5), random.below(5)),
            };
            record(path.as_bytes(), number)
        })
        .collect();
    records.sort_by(|a, b| order(&a.path, &b.path));
    let drafts = [(), ()].map(|()| {
        let mut draft = Draft::new(&path).expect("a draft");
        records.iter().for_each(|record| draft.add(record).expect("room"));
        Some(draft)
    });
    write(&path, &places(), drafts).expect("an index");
    (path, records)
}

fn end(path: &std::path::Path) {
    std::fs::remove_dir_all(path.parent().expect("its folder")).expect("a folder");
}

#[test]
fn paths_are_in_the_order_of_a_walk() {
    let walk: [&[u8]; 8] = [b"a", b"a.b", b"b", b"a/a", b"a/z", b"a/a/c", b"a.b/a", b"b/x"];
    for (at, one) in walk.iter().enumerate() {
        for (other_at, other) in walk.iter().enumerate() {
            assert_eq!(order(one, other), at.cmp(&other_at), "{one:?} {other:?}");
        }
    }
}

#[test]
fn what_was_written_is_found_one_by_one_and_in_a_row() {
    for count in [0, 1, 2, 150, 5_000] {
        let (path, records) = written("found", count);
        let kept = SavedIndex::open(&path, &places()).expect("an index").expect("it is there");
        for role in [Role::SOURCE, Role::DESTINATION] {
            let mut row = kept.records(role);
            for record in &records {
                assert_eq!(kept.find(role, &record.path).as_ref(), Some(record));
                assert_eq!(row.find(&record.path).as_ref(), Some(record));
            }
            for none in [&b"!"[..], b"0d/none", b"zz", b"3d/3d/3d/3"] {
                assert_eq!(kept.find(role, none), None);
            }
        }
        // No temporary file is left in its directory.
        let folder = path.parent().expect("its folder");
        assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 1);
        end(&path);
    }
}

#[test]
fn what_is_damaged_anywhere_is_not_believed() {
    let (path, _) = written("damaged", 40);
    let whole = std::fs::read(&path).expect("the index");
    let open = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("the index");
        SavedIndex::open(&path, &places())
    };
    assert!(matches!(open(&whole), Ok(Some(_))));
    for end in 0..whole.len() {
        let cut = scan(&whole[..end], |_| {});
        assert!(matches!(cut, Err(Unfit::Damaged(_))), "{end}: {cut:?}");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            let read = scan(flipped.as_slice(), |_| {});
            match at {
                0..8 => assert!(matches!(read, Err(Unfit::Foreign)), "{at}: {read:?}"),
                8..12 => assert!(matches!(read, Err(Unfit::Version(_))), "{at}: {read:?}"),
                _ => assert!(matches!(read, Err(Unfit::Damaged(_))), "{at}: {read:?}"),
            }
        }
    }
    assert!(matches!(open(&[&whole[..], b"x"].concat()), Err(Unfit::Damaged(_))));
    assert!(matches!(open(b"something that somebody wrote"), Err(Unfit::Foreign)));
    open(&whole).map(drop).expect("an index");
    let others = IndexedTrees { destination: b"/c".to_vec(), ..places() };
    assert!(matches!(SavedIndex::open(&path, &others), Err(Unfit::Directories)));
    let folder = path.parent().expect("its folder");
    assert!(matches!(SavedIndex::open(folder, &places()), Err(Unfit::Foreign)));
    assert!(matches!(SavedIndex::open(&folder.join("none"), &places()), Ok(None)));
    end(&path);
}

#[test]
fn it_is_shown_whole_or_not() {
    let (path, records) = written("shown", 3);
    assert!(is_index(&path));
    let mut out = Vec::new();
    inspect(&path, &mut out).expect("an index");
    let text = String::from_utf8(out).expect("text");
    let head = "index of dsync, version 1\n  source       /a\n  destination  /b\n";
    assert!(text.starts_with(head), "{text}");
    assert_eq!(text.lines().count(), 3 + 2 * records.len(), "{text}");
    let summed = format!(" file 2 B, 1969-12-31 23:59:55, inode 2, BLAKE3 {}\n", "02".repeat(32));
    assert_eq!(text.matches(&summed).count(), 2, "{text}");
    let mut torn = std::fs::read(&path).expect("the index");
    torn.pop();
    std::fs::write(&path, torn).expect("the index");
    let mut out = Vec::new();
    assert!(matches!(inspect(&path, &mut out), Err(Unfit::Damaged(_))));
    assert!(out.is_empty());
    end(&path);
}

#[test]
fn entries_out_of_order_are_no_index() {
    let path = place("order");
    let mut draft = Draft::new(&path).expect("a draft");
    for name in [b"b", b"a"] {
        draft.add(&record(name, 1)).expect("room");
    }
    write(&path, &places(), [Some(draft), None]).expect("a file");
    assert!(matches!(SavedIndex::open(&path, &places()), Err(Unfit::Damaged(_))));
    end(&path);
}

/// Random bytes, and an index that was changed in some places with a hash that fits: any bytes are
/// an index or an error.
#[test]
fn any_bytes_are_an_index_or_an_error() {
    let (path, _) = written("any", 30);
    let whole = std::fs::read(&path).expect("the index");
    let (mut random, mut taken) = (SeededRandom::new(1), 0);
    for _ in 0..20_000 {
        let mut bytes = whole[..whole.len() - 32].to_vec();
        for _ in 0..=random.below(4) {
            let at = 12 + random.below(bytes.len() as u64 - 12) as usize;
            match random.below(3) {
                0 => bytes[at] = random.next_u64() as u8,
                1 => drop(bytes.drain(at..(at + random.below(90) as usize).min(bytes.len()))),
                _ => bytes.insert(at, random.next_u64() as u8),
            }
            if bytes.len() < 14 {
                break;
            }
        }
        bytes.extend(*blake3::hash(&bytes).as_bytes());
        let mut records = 0;
        let read = scan(bytes.as_slice(), |part| {
            records += usize::from(matches!(part, Part::Record(..)));
        });
        taken += usize::from(read.is_ok());
        assert!(records <= bytes.len() / super::record::BODY);
    }
    // Numbers can be anything.
    assert!(taken > 100, "{taken}");
    end(&path);
}

#[test]
fn what_was_changed_in_this_tick_is_not_still() {
    let s = 1_000_000_000;
    assert!(!is_still(5 * s, i128::from(5 * s - 1)));
    assert!(!is_still(5 * s, i128::from(5 * s + 1)), "a clock that is behind");
    assert!(!is_still(5 * s, i128::from(5 * s - 19_999_999)));
    assert!(is_still(5 * s, i128::from(5 * s - 20_000_001)));
    assert!(!is_still(5 * s, i128::from(3 * s)), "a time of whole seconds");
    assert!(is_still(6 * s, i128::from(3 * s)));
}

/// A peer that requests arbitrary entries does not fill the disk with them.
#[test]
fn only_queries_in_order_have_space() {
    let path = place("room");
    let clock = Arc::new(ManualClock::at(0));
    let index = super::Index::open(&path, places(), false, clock).expect("an index");
    let side = index.side(Role::SOURCE);
    assert!(side.enter(b"b").is_some());
    assert!(side.enter(b"b").is_none());
    assert!(side.enter(b"a").is_none());
    assert!(side.enter(b"a/x").is_some());
    assert!(side.enter(b"c").is_none());
    end(&path);
}
