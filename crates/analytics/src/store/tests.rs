//! What was written is read back, after a crash at any byte, after sealing, and by the minute.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::model::{Key, Name, Rows, Table};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("plimsoll-store-{}-{n}", std::process::id()));
        // Left by a test that was killed.
        drop(fs::remove_dir_all(&dir));
        fs::create_dir_all(&dir).expect("a folder");
        Self(dir)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Start of an hour that is the start of a day too.
const T: u64 = 86_400 * 20_000;

fn frame(time: u64) -> Frame {
    let mut rows = Rows::default();
    for client in 0..3 {
        let name = Name { key: format!("10.0.0.{client}"), label: format!("host {client}") };
        let key = Key::Name(std::sync::Arc::new(name));
        rows.add(key.clone(), Key::Bucket(40), [time % 7 + client, 4096]);
        rows.add(key, Key::Bucket(43), [1, 0]);
    }
    // A name that is new in each frame.
    rows.add(Key::Name(Name::plain(&format!("file {time}"))), Key::Other, [2, 0]);
    rows.add(Key::Other, Key::Other, [5, 7]);
    let dimensions = ["client".into(), "latency".into()];
    let table = Table::from_rows("nfs3.ops".into(), dimensions, rows, [time % 3, time % 2]);
    Frame { time, span: 1, covered: 1, dropped: time % 2, tables: vec![table] }
}

fn read(store: &Store, fidelity: Fidelity, range: (u64, u64)) -> Vec<Frame> {
    let mut frames = Vec::new();
    store.read(fidelity, range, &everything, &mut |f| frames.push(f)).expect("read");
    frames
}

fn fill(store: &Store, times: std::ops::Range<u64>) {
    for time in times {
        assert!(store.append(&frame(time)).expect("appended"));
    }
}

#[test]
fn seconds_are_read_back_live_and_sealed() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 3700);
    store.settle();
    assert!(folder.0.join(format!("second/{T:012}.seg")).exists());
    let frames = read(&store, Fidelity::Second, (T, T + 4000));
    assert_eq!(frames, (T..T + 3700).map(frame).collect::<Vec<_>>());
    let some = read(&store, Fidelity::Second, (T + 3590, T + 3610));
    assert_eq!(some, (T + 3590..T + 3610).map(frame).collect::<Vec<_>>());
    drop(store);
    let store = Store::open(&folder.0, Retention::default()).expect("open again");
    assert!(!store.append(&frame(T + 3698)).expect("refused"));
    fill(&store, T + 3700..T + 3710);
    assert_eq!(read(&store, Fidelity::Second, (T, T + 4000)).len(), 3710);
}

/// Makes writes to a live segment fail, as on a full disk; gives the file that can be written.
fn refuse_writes(store: &Store, fidelity: Fidelity) -> fs::File {
    let mut inner = store.inner();
    let folder = &mut inner.folders[fidelity as usize];
    let start = folder.writer.as_ref().expect("a live segment").header.start;
    let refuses = fs::File::open(folder.path(start, "live")).expect("opened");
    std::mem::replace(&mut folder.writer.as_mut().expect("a live segment").file, refuses)
}

fn accept_writes(store: &Store, fidelity: Fidelity, file: fs::File) {
    let mut inner = store.inner();
    let folder = &mut inner.folders[fidelity as usize];
    folder.writer.as_mut().expect("a live segment").file = file;
}

#[test]
fn a_write_that_failed_loses_nothing_but_its_frame() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 3);
    let file = refuse_writes(&store, Fidelity::Second);
    // What there was room for: kind, length and a part of the rest.
    let end = file.metadata().expect("a file").len();
    file.write_all_at(&[1, 200, 0, 0, 0, 1, 2, 3, 4, 5, 6], end).expect("written");
    for time in T + 3..T + 5 {
        store.append(&frame(time)).expect_err("it cannot be written");
    }
    accept_writes(&store, Fidelity::Second, file);
    fill(&store, T + 5..T + 8);
    let frames: Vec<_> = (T..T + 3).chain(T + 5..T + 8).map(frame).collect();
    assert_eq!(read(&store, Fidelity::Second, (T, T + 9)), frames);
    // A restart continues behind it, and it is packed as a whole.
    drop(store);
    let store = Store::open(&folder.0, Retention::default()).expect("open again");
    fill(&store, T + 8..T + 9);
    fill(&store, T + 3600..T + 3601);
    store.settle();
    assert!(folder.0.join(format!("second/{T:012}.seg")).exists());
    let frames: Vec<_> = frames.into_iter().chain([frame(T + 8)]).collect();
    assert_eq!(read(&store, Fidelity::Second, (T, T + 3600)), frames);
}

#[test]
fn a_minute_that_cannot_be_stored_is_in_its_hour() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 120);
    let file = refuse_writes(&store, Fidelity::Minute);
    store.append(&frame(T + 120)).expect_err("its minute cannot be written");
    accept_writes(&store, Fidelity::Minute, file);
    fill(&store, T + 121..T + 3661);
    let minutes = read(&store, Fidelity::Minute, (T, T + 240));
    let minutes: Vec<_> = minutes.iter().map(|minute| (minute.time - T, minute.covered)).collect();
    assert_eq!(minutes, [(0, 60), (120, 60), (180, 60)]);
    assert_eq!(read(&store, Fidelity::Hour, (T, T + 3600))[0].covered, 3600);
}

#[test]
fn retention_continues_while_nothing_can_be_stored() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 2);
    fill(&store, T + 7200..T + 7202);
    store.set_retention(Retention { keep: [3600, 86_400, 86_400], ..Retention::default() });
    drop(refuse_writes(&store, Fidelity::Second));
    store.append(&frame(T + 7202)).expect_err("it cannot be written");
    assert_eq!(store.oldest(Fidelity::Second), Some(T + 7200));
}

#[test]
fn minutes_and_hours_are_the_sums_of_their_seconds() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    // Without the seconds 30..40.
    fill(&store, T..T + 30);
    fill(&store, T + 40..T + 3700);
    let minutes = read(&store, Fidelity::Minute, (T, T + 4000));
    assert_eq!(minutes.len(), 61);
    assert_eq!((minutes[0].time, minutes[0].span, minutes[0].covered), (T, 60, 50));
    let sum = |frames: &[Frame]| frames.iter().map(|f| f.tables[0].total[0]).sum::<u64>();
    let seconds = read(&store, Fidelity::Second, (T, T + 60));
    assert_eq!(minutes[0].tables[0].total[0], sum(&seconds));
    let hours = read(&store, Fidelity::Hour, (T, T + 4000));
    assert_eq!((hours.len(), hours[0].covered), (1, 3590));
    assert_eq!(sum(&hours), sum(&minutes[..60]));
}

#[test]
fn nothing_is_lost_of_a_second_in_which_a_process_ends_and_the_next_one_begins() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 30);
    drop(store);
    let store = Store::open(&folder.0, Retention::default()).expect("open again");
    fill(&store, T + 29..T + 90);
    assert!(!store.append(&frame(T + 89)).expect("refused"), "its own second");
    let total = |frame: &Frame| frame.tables[0].total[0];
    let seconds = read(&store, Fidelity::Second, (T, T + 60));
    let times: Vec<_> = seconds.iter().map(|second| second.time).collect();
    assert_eq!(times, (T..T + 60).collect::<Vec<_>>());
    assert!(seconds.iter().all(|second| second.covered == 1));
    for second in &seconds {
        let rest = if second.time == T + 30 { total(&frame(T + 29)) } else { 0 };
        assert_eq!(total(second), total(&frame(second.time)) + rest, "{}", second.time - T);
    }
    let minute = read(&store, Fidelity::Minute, (T, T + 60));
    let sum: u64 = seconds.iter().map(total).sum();
    assert_eq!((minute[0].covered, total(&minute[0])), (60, sum));
}

#[test]
fn minutes_that_a_crash_has_prevented_are_made_up() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 130);
    drop(store);
    fs::remove_dir_all(folder.0.join("minute")).expect("removed");
    let store = Store::open(&folder.0, Retention::default()).expect("open again");
    fill(&store, T + 130..T + 190);
    let minutes = read(&store, Fidelity::Minute, (T, T + 200));
    assert_eq!(
        minutes.iter().map(|f| (f.time, f.covered)).collect::<Vec<_>>(),
        [(T, 60), (T + 60, 60), (T + 120, 60)]
    );
}

#[test]
fn a_crash_at_any_byte_of_the_last_frame_loses_only_that() {
    let folder = Folder::new();
    let path = folder.0.join(format!("second/{T:012}.live"));
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 5);
    let before = fs::metadata(&path).expect("a segment").len();
    fill(&store, T + 5..T + 6);
    drop(store);
    let whole = fs::read(&path).expect("a segment");
    for cut in before..whole.len() as u64 {
        fs::write(&path, &whole[..cut as usize]).expect("cut");
        let store = Store::open(&folder.0, Retention::default()).expect("open again");
        assert_eq!(
            read(&store, Fidelity::Second, (T, T + 9)),
            (T..T + 5).map(frame).collect::<Vec<_>>()
        );
        // What comes next finds the dictionary as it was before the lost frame.
        fill(&store, T + 6..T + 8);
        let times: Vec<u64> =
            read(&store, Fidelity::Second, (T, T + 9)).iter().map(|f| f.time).collect();
        assert_eq!(times, [T, T + 1, T + 2, T + 3, T + 4, T + 6, T + 7], "cut at {cut}");
        assert_eq!(read(&store, Fidelity::Second, (T + 6, T + 7)), [frame(T + 6)]);
    }
}

#[test]
fn a_damaged_byte_ends_a_segment_and_nothing_panics() {
    let folder = Folder::new();
    let path = folder.0.join(format!("second/{T:012}.live"));
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 4);
    drop(store);
    let whole = fs::read(&path).expect("a segment");
    for at in segment::HEADER_LEN..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&path, &bytes).expect("written");
        let mut frames = Vec::new();
        segment::read(&path, (0, u64::MAX), &everything, &mut |f| frames.push(f)).expect("read");
        assert!(frames.len() < 4);
        assert_eq!(frames, (T..T + frames.len() as u64).map(frame).collect::<Vec<_>>());
    }
    // In the header it is no segment.
    let mut bytes = whole;
    bytes[20] ^= 1;
    fs::write(&path, &bytes).expect("written");
    let read = segment::read(&path, (0, u64::MAX), &everything, &mut |_| {});
    assert!(matches!(read, Err(SegmentError::Foreign(_))));
}

#[test]
fn old_segments_go_by_age_and_by_size() {
    let folder = Folder::new();
    let keep = Retention { keep: [3600, 86_400, u64::MAX], bytes: u64::MAX };
    let store = Store::open(&folder.0, keep).expect("open");
    for hour in 0..5 {
        fill(&store, T + hour * 3600..T + hour * 3600 + 90);
    }
    assert_eq!(store.oldest(Fidelity::Second), Some(T + 3 * 3600));
    assert_eq!(store.oldest(Fidelity::Minute), Some(T));
    drop(store);
    let small = Retention { bytes: 1, ..keep };
    let store = Store::open(&folder.0, small).expect("open");
    fill(&store, T + 5 * 3600..T + 5 * 3600 + 61);
    assert_eq!(store.oldest(Fidelity::Second), Some(T + 5 * 3600));
    assert!(store.bytes() > 0);
}

#[test]
fn the_oldest_value_is_as_old_as_its_frame() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    let since = || Fidelity::ALL.map(|fidelity| store.since(fidelity));
    assert_eq!(since(), [None; 3]);
    // In the middle of an hour, and 20 days after the start of a segment of hours.
    let begin = T + 20 * 86_400 + 1234;
    fill(&store, begin..begin + 2);
    assert_eq!(since(), [Some(begin), None, None]);
    fill(&store, begin + 2..begin + 7200);
    let (minute, hour) = (begin - begin % 60, begin - begin % 3600);
    assert_eq!(since(), [Some(begin), Some(minute), Some(hour)]);
    store.settle();
    assert!(folder.0.join(format!("second/{hour:012}.seg")).exists());
    assert_eq!(since(), [Some(begin), Some(minute), Some(hour)]);
    // Of a segment without frames it is that of the next one.
    drop(store);
    let none = segment::Header { sealed: false, span: 1, start: T };
    fs::write(folder.0.join(format!("second/{T:012}.live")), none.encode()).expect("written");
    let store = Store::open(&folder.0, Retention::default()).expect("open again");
    assert_eq!(store.oldest(Fidelity::Second), Some(T));
    assert_eq!(store.since(Fidelity::Second), Some(begin));
}

#[test]
fn a_segment_can_be_read_as_text() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 2);
    let mut text = Vec::new();
    inspect(&folder.0.join(format!("second/{T:012}.live")), &mut text).expect("inspected");
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains(&format!("frame {T} span 1 covered 1 dropped 0\n")));
    assert!(text.contains("  nfs3.ops [client][latency] total"));
    assert!(text.contains("    10.0.0.1 (host 1) | 2048-2560 | "), "{text}");
    assert!(text.ends_with(&format!("segment live span 1 start {T}\n")));
}

#[test]
fn only_what_is_wanted_is_unpacked() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("open");
    fill(&store, T..T + 3700);
    let some = |want: PartSelector<'_>| {
        let mut frames = Vec::new();
        store.read(Fidelity::Second, (T, T + 3700), want, &mut |f| frames.push(f)).expect("read");
        frames
    };
    // While the first hour is being sealed, and once it is.
    for _ in 0..2 {
        let none = some(&|_, _| Part::Nothing);
        assert!(none.len() == 3700 && none.iter().all(|f| f.tables.is_empty()));
        let totals = some(&|stat, by| match (stat, by) {
            ("nfs3.ops", ["client", "latency"]) => Part::Total,
            _ => Part::Nothing,
        });
        for (found, whole) in totals.iter().zip((T..).map(frame)) {
            assert!(found.tables[0].rows.is_empty());
            assert_eq!(found.tables[0].total, whole.tables[0].total);
            assert_eq!(found.tables[0].error, whole.tables[0].error);
        }
        store.settle();
    }
}

/// Makes a segment one of another version; what it is then.
fn with_version(path: &Path, version: u8) -> Vec<u8> {
    let mut bytes = fs::read(path).expect("read");
    bytes[8] = version;
    let crc = codec::crc32(&[&bytes[..28]]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    fs::write(path, &bytes).expect("written");
    bytes
}

#[test]
fn a_segment_of_another_version_is_set_aside_and_the_seconds_continue() {
    for extension in ["live", "seg"] {
        let folder = Folder::new();
        let store = Store::open(&folder.0, Retention::default()).expect("opened");
        fill(&store, T..T + 5);
        drop(store);
        let live = folder.0.join(format!("second/{T:012}.live"));
        let old = live.with_extension(extension);
        fs::rename(&live, &old).expect("renamed");
        let bytes = with_version(&old, 1);

        let store = Store::open(&folder.0, Retention::default()).expect("opened again");
        let told = store.append(&frame(T + 5)).expect_err("what was set aside is told");
        assert!(told.to_string().contains("version"), "{told}");
        fill(&store, T + 6..T + 9);
        let times: Vec<u64> =
            read(&store, Fidelity::Second, (0, u64::MAX)).iter().map(|f| f.time).collect();
        assert_eq!(times, [T + 5, T + 6, T + 7, T + 8]);
        let aside = old.with_extension(format!("{extension}.bad"));
        assert_eq!(fs::read(aside).expect("it is still there"), bytes);
    }
}

#[test]
fn a_segment_that_cannot_be_packed_now_is_readable_and_packed_with_the_next_one() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("opened");
    // Nothing can be written where the packed one would be: as on a full disk.
    let taken = folder.0.join(format!("second/{T:012}.tmp"));
    fs::create_dir(&taken).expect("made");
    fill(&store, T..T + 3600);
    // The thread that packs may fail before the first of these is done.
    let begins = store.append(&frame(T + 3600));
    store.settle();
    let follows = store.append(&frame(T + 3601));
    let reported: Vec<_> = [begins, follows].into_iter().filter_map(Result::err).collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(read(&store, Fidelity::Second, (T, T + 3600)).len(), 3600);
    fs::remove_dir(&taken).expect("removed");
    fill(&store, T + 3602..T + 7201);
    store.settle();
    for start in [T, T + 3600] {
        assert!(folder.0.join(format!("second/{start:012}.seg")).exists());
        assert!(!folder.0.join(format!("second/{start:012}.live")).exists());
        assert_eq!(read(&store, Fidelity::Second, (start, start + 3600)).len(), 3600);
    }
}

#[test]
fn a_finished_segment_that_cannot_be_read_now_is_not_written_again() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("opened");
    let sealed = folder.0.join(format!("second/{T:012}.seg"));
    // It can be opened, and refuses to be read.
    fs::create_dir(&sealed).expect("made");
    store.append(&frame(T)).expect_err("it may be a good one");
    assert!(sealed.exists() && !sealed.with_extension("live").exists());
    fs::remove_dir(&sealed).expect("removed");
    fill(&store, T..T + 1);
}

#[test]
fn a_clock_that_was_set_back_does_not_rewrite_a_finished_segment() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("opened");
    fill(&store, T + 3590..T + 3610);
    store.settle();
    drop(store);
    let store = Store::open(&folder.0, Retention::default()).expect("opened again");
    assert!(!store.append(&frame(T + 3595)).expect("no error"), "it is finished");
    assert_eq!(read(&store, Fidelity::Second, (T, T + 3600)).len(), 10);
}

#[test]
fn segments_of_the_version_before_are_read_and_gone_on_with() {
    let folder = Folder::new();
    let store = Store::open(&folder.0, Retention::default()).expect("opened");
    fill(&store, T + 3590..T + 3605);
    store.settle();
    drop(store);
    let live = folder.0.join(format!("second/{:012}.live", T + 3600));
    let sealed = folder.0.join(format!("second/{T:012}.seg"));
    for path in [&live, &sealed] {
        with_version(path, 2);
    }
    let store = Store::open(&folder.0, Retention::default()).expect("opened again");
    fill(&store, T + 3605..T + 3610);
    let frames = read(&store, Fidelity::Second, (0, u64::MAX));
    assert_eq!(frames, (T + 3590..T + 3610).map(frame).collect::<Vec<_>>());
    // From here on it may have what that version had not.
    assert_eq!(fs::read(&live).expect("read")[8], 3);
}
