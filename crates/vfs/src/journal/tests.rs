//! Records outlive the journal, torn ends do not, and old ones make no file grow for ever.

use super::*;

const MAGIC: [u8; 8] = *b"PLMtest1";
const LIMITS: Limits = Limits { record_max: 100, file_max: 1 << 20, compact: 200 };

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("journal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("folder");
        Self(path)
    }
    fn file(&self) -> PathBuf {
        self.0.join("records")
    }
    fn open(&self) -> Journal {
        Journal::open(&self.file(), MAGIC, LIMITS).expect("journal").0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shown(journal: &Journal) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    journal.records().into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn records_outlive_the_journal() {
    let folder = Folder::new("outlive");
    let journal = folder.open();
    journal.put(b"a", b"1").expect("put");
    journal.put(b"b", b"2").expect("put");
    journal.put(b"a", b"3").expect("put");
    journal.remove(&[b"b", b"x"]).expect("remove");
    journal.put(b"c", b"").expect("put");
    let expected = [pair("a", "3"), pair("c", "")];
    assert_eq!(shown(&journal), expected);
    drop(journal);
    assert_eq!(shown(&folder.open()), expected);
    assert!(matches!(folder.open().put(b"k", &[0; 100]), Err(JournalError::TooLong)));
}

#[test]
fn a_torn_end_was_never_there() {
    let folder = Folder::new("torn");
    let journal = folder.open();
    journal.put(b"a", b"1").expect("put");
    let before = std::fs::read(folder.file()).expect("file").len();
    journal.put(b"b", b"2").expect("put");
    drop(journal);
    let whole = std::fs::read(folder.file()).expect("file");
    for cut in before..whole.len() {
        std::fs::write(folder.file(), &whole[..cut]).expect("file");
        assert_eq!(shown(&folder.open()), [pair("a", "1")], "cut at {cut}");
    }
    let mut damaged = whole.clone();
    damaged[before + 8] ^= 1;
    std::fs::write(folder.file(), &damaged).expect("file");
    assert_eq!(shown(&folder.open()), [pair("a", "1")]);
}

#[test]
fn something_else_is_not_overwritten() {
    let folder = Folder::new("else");
    std::fs::write(folder.file(), b"something else").expect("file");
    let opened = Journal::open(&folder.file(), MAGIC, LIMITS);
    assert!(matches!(opened, Err(JournalError::Read { .. })));
    assert_eq!(std::fs::read(folder.file()).expect("file"), b"something else");
}

#[test]
fn another_version_and_what_is_too_long_are_refused_and_stay_as_they_are() {
    let folder = Folder::new("version");
    drop(folder.open());
    let newer = [b"PLMtest2".as_slice(), b"whatever it has"].concat();
    let long = [MAGIC.to_vec(), vec![0; LIMITS.file_max as usize]].concat();
    for there in [newer, long] {
        std::fs::write(folder.file(), &there).expect("file");
        let opened = Journal::open(&folder.file(), MAGIC, LIMITS);
        let Err(error @ JournalError::Read { .. }) = opened else { panic!("it was taken") };
        assert!(error.to_string().contains("records"), "it names the file: {error}");
        assert!(std::fs::read(folder.file()).expect("file") == there);
    }
}

#[test]
fn a_file_that_would_become_too_long_is_rewritten_first() {
    let folder = Folder::new("long");
    // Not rewritten on account of old records.
    let limits = Limits { record_max: 100, file_max: 500, compact: u64::MAX };
    let journal = Journal::open(&folder.file(), MAGIC, limits).expect("journal").0;
    for round in 0..100 {
        journal.put(b"a", format!("{round}").as_bytes()).expect("put");
        let length = std::fs::metadata(folder.file()).expect("file").len();
        assert!(length <= limits.file_max, "{length} bytes");
    }
    drop(journal);
    let again = Journal::open(&folder.file(), MAGIC, limits).expect("journal").0;
    assert_eq!(shown(&again), [pair("a", "99")]);
}

#[test]
fn the_file_stays_short() {
    let folder = Folder::new("short");
    let journal = folder.open();
    for round in 0..100 {
        journal.put(b"a", format!("{round}").as_bytes()).expect("put");
        journal.put(b"b", b"x").expect("put");
        journal.remove(&[b"b"]).expect("remove");
    }
    let length = std::fs::metadata(folder.file()).expect("file").len();
    assert!(length < 2 * LIMITS.compact, "{length} bytes");
    drop(journal);
    assert_eq!(shown(&folder.open()), [pair("a", "99")]);
}

#[test]
fn records_are_there_while_nothing_can_be_written() {
    let folder = Folder::new("full");
    folder.open().put(b"a", b"1").expect("written");
    // The file that is written aside cannot be made: a directory is in its place.
    let aside = folder.file().with_extension("new");
    std::fs::create_dir(&aside).expect("a directory");
    let (journal, unwritten) = Journal::open(&folder.file(), MAGIC, LIMITS).expect("journal");
    assert!(matches!(unwritten, Some(JournalError::Write { .. })), "it is told");
    assert_eq!(shown(&journal), [pair("a", "1")]);
    assert!(journal.put(b"b", b"2").is_err());
    assert!(journal.remove(&[b"a"]).is_err());
    assert_eq!(shown(&journal), [pair("a", "1")]);
    std::fs::remove_dir(&aside).expect("there is room again");
    journal.put(b"b", b"2").expect("written");
    assert_eq!(shown(&folder.open()), [pair("a", "1"), pair("b", "2")]);
}

#[test]
fn changes_together_are_made_in_their_order_or_not_at_all() {
    let folder = Folder::new("together");
    let journal = folder.open();
    journal.put(b"a", b"1").expect("put");
    let changes: [(&[u8], Option<&[u8]>); 5] =
        [(b"a", None), (b"b", Some(b"2")), (b"b", Some(b"3")), (b"c", Some(b"4")), (b"c", None)];
    journal.change(&changes).expect("changes");
    assert_eq!(shown(&journal), [pair("b", "3")]);
    let long = [0; 100];
    let changes: [(&[u8], Option<&[u8]>); 2] = [(b"d", Some(b"5")), (b"e", Some(&long))];
    assert!(matches!(journal.change(&changes), Err(JournalError::TooLong)));
    assert_eq!(shown(&journal), [pair("b", "3")]);
    drop(journal);
    assert_eq!(shown(&folder.open()), [pair("b", "3")]);
    let journal = folder.open();
    for _ in 0..100 {
        journal.change(&[(b"b", Some(b"3")), (b"f", None)]).expect("changes");
    }
    let length = std::fs::read(folder.file()).expect("file").len() as u64;
    assert!(length <= LIMITS.compact + 50, "{length}");
}
