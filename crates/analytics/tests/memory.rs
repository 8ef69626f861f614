//! Memory of recording and queries, counted byte by byte: an hour of many clients and of files that
//! come and go, packed, and queried by its widest breakdown.
//!
//! One test, because what is counted is the whole process. Compressing is counted where it is done
//! (`store::packing`): its memory is not Rust's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use analytics::collect::Assembler;
use analytics::model::{Frame, Key, Name, Table};
use analytics::names::{HubResolver, Names};
use analytics::query::{Data, Engine, Query};
use analytics::store::{Fidelity, Retention, Store};
use base::limits::{ANSWER_BYTES_MAX, ANSWER_VALUES_MAX};
use probe::hub::{Hub, HubOptions};
use probe::sample::Sample;

/// The system's, with a count of what is held, and of the most that ever was.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let held = HELD.fetch_add(bytes, SeqCst) + bytes;
    MOST.fetch_max(held, SeqCst);
}

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `run` holds at its end, and what it held at most, in bytes more than before.
fn counted<T>(run: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = HELD.load(SeqCst);
    MOST.store(before, SeqCst);
    let done = run();
    let more = |now: usize| now.saturating_sub(before);
    (done, more(HELD.load(SeqCst)), more(MOST.load(SeqCst)))
}

/// Start of a day.
const T: u64 = 86_400 * 20_000;
const HOUR: u64 = 3600;
/// With this length an answer can hold less than half of the files.
const SECONDS: u64 = HOUR + 1200;
/// Files that are new in each second.
const FILES: u64 = 50;
const CLIENTS: u64 = 60;

fn named(key: String, label: String) -> Key {
    Key::Name(Arc::new(Name { key, label }))
}

/// A wide second: clients by operation and by latency, files by operation.
fn frame(time: u64) -> Frame {
    let ops: Vec<Key> = ["read", "write"].map(|op| Key::Name(Name::plain(op))).to_vec();
    let clients = (0..CLIENTS).map(|n| named(format!("10.0.1.{n:03}"), format!("host{n}")));
    let clients: Vec<Key> = clients.collect();
    let file = |n: u64| {
        let path = format!("/export/tank/project/data/run-{time}/part-{n:04}.dat");
        named(format!("{:016x}", time * FILES + n), path)
    };
    let files: Vec<Key> = (0..FILES).map(file).collect();
    let latencies: Vec<Key> = (40..60).map(Key::Bucket).collect();
    let table = |[a, b]: [&str; 2], firsts: &[Key], seconds: &[Key]| {
        let row = |(n, a): (usize, &Key)| {
            let busy = 1 + (n as u64 * 7 + time) % 90;
            seconds.iter().map(|b| (a.clone(), b.clone(), [busy, 4096 * busy])).collect::<Vec<_>>()
        };
        let rows: Vec<_> = firsts.iter().enumerate().flat_map(row).collect();
        let sum = |column: usize| rows.iter().map(|row| row.2[column]).sum();
        let (total, dimensions) = ([sum(0), sum(1)], [a.into(), b.into()]);
        Table { stat: "nfs3.ops".into(), dimensions, total, error: [0; 2], rows }
    };
    let tables = vec![
        table(["client", "op"], &clients, &ops),
        table(["client", "latency"], &clients[..10], &latencies),
        table(["file", "op"], &files, &ops),
    ];
    Frame { time, span: 1, covered: 1, dropped: 0, tables }
}

fn ask(engine: &Engine, id: &str, seconds: u64, top: usize) -> Data {
    let (from, to) = (Some(T as i64), Some((T + seconds) as i64));
    let query = Query { from, to, step: 1, top, ..Query::default() };
    engine.data(&id.parse().expect("an id"), &query).expect("an answer")
}

const MIB: usize = 1 << 20;

/// Seconds without operations hold little more than their figures: what they name is the same.
fn seconds_share_their_names() {
    const MINUTE: usize = 60;
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
    let names = Arc::new(Names::new(hub.clone(), Arc::new(HubResolver(hub.clone()))));
    let mut assembler = Assembler::new(hub, names);
    let row = |n: usize| (format!("disk {n}"), "read".to_owned(), 1.0);
    let sample = |stat| {
        let (dimensions, rows) = (["disk", "op"], (0..40).map(row).collect());
        Sample { stat, dimensions, total: 40.0, rows }
    };
    let samples = [sample("disk.ops"), sample("disk.kilobytes")];
    drop(assembler.frame(T, &[], &samples));
    let (frames, held, _) = counted(|| {
        let frame = |n| assembler.frame(T + n as u64, &[], &samples);
        (1..=MINUTE).map(frame).collect::<Vec<Frame>>()
    });
    let rows = |frame: &Frame| frame.tables.iter().map(|table| table.rows.len()).sum::<usize>();
    let of_table = |frame: &Frame| frame.tables.len() * size_of::<Table>();
    let of_rows = |frame: &Frame| rows(frame) * size_of::<(Key, Key, [u64; 2])>();
    let figures: usize = frames.iter().map(|frame| of_table(frame) + of_rows(frame)).sum();
    println!("a minute without operations holds {held}, {figures} of it figures");
    assert!(held < figures + figures / 8 + 16 * 1024, "{held} bytes for {figures}");
}

#[test]
fn keeping_packing_and_asking_have_bounds() {
    seconds_share_their_names();
    let dir: PathBuf = std::env::temp_dir().join(format!("plimsoll-memory-{}", std::process::id()));
    // Left by a test that was killed.
    drop(std::fs::remove_dir_all(&dir));
    let store = Store::open(&dir, Retention::default()).expect("a store");
    let append = |times: std::ops::Range<u64>| {
        times.for_each(|time| assert!(store.append(&frame(time)).expect("appended")));
    };
    // 180 000 files have come and gone.
    let ((), held, most) = counted(|| append(T..T + HOUR));
    println!("an hour, {} MiB on disk, holds {held}, at most {most}", store.bytes() as usize / MIB);
    assert!(held < 6 * MIB && most < 12 * MIB, "an hour holds {held}, at most {most}");
    let ((), held, most) = counted(|| {
        append(T + HOUR..T + HOUR + 2);
        store.settle();
    });
    println!("packing it holds {held}, at most {most}");
    assert!(store.bytes_of(Fidelity::Second) < 24 << 20);
    assert!(held < MIB && most < 8 * MIB, "packing it holds {held}, at most {most}");

    append(T + HOUR + 2..T + SECONDS);
    store.settle();
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
    let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub)), Some(store));
    // More than twice as many files as an answer has room for.
    let (files, held, most) = counted(|| ask(&engine, "nfs3.ops[file]", SECONDS, 1000));
    println!("by file: holds {held}, at most {most}");
    let room = ANSWER_BYTES_MAX + 16 * ANSWER_VALUES_MAX + 24 * MIB;
    assert!(most < room, "asking by file takes {most}");
    let note = files.note.as_deref().unwrap_or_default();
    assert!(note.contains("more elements than can be counted separately"), "{note:?}");
    assert!(note.contains("use longer steps"), "{note:?}");
    // Some times the least busy half has gone, of each second what a file had at most.
    assert!(!files.exact && files.error_bound <= 8.0 * 90.0 * 2.0, "{}", files.error_bound);
    drop(files);
    let (heat, _, most) =
        counted(|| ask(&engine, "nfs3.ops[client=10.0.1.001][latency]", SECONDS, 0));
    println!("by latency: at most {most}");
    assert!(heat.exact && heat.note.is_none() && most < room);
    drop(engine);
    std::fs::remove_dir_all(&dir).expect("removed");
}
