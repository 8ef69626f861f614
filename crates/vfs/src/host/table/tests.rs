//! The table of handles: what is gone leaves it, in memory and on disk, and what comes and goes
//! leaves nothing.

use std::path::PathBuf;

use super::*;

fn dir(ino: u64) -> Ident {
    Ident::Inode { ino, birth: 7 }
}

/// A table in a file of its own.
fn table(name: &str) -> (PathBuf, Arc<Table>) {
    let path = std::env::temp_dir().join(format!("plimsoll-{}-{name}.redb", std::process::id()));
    // Of an earlier run, if it is there.
    let _ = std::fs::remove_file(&path);
    (path.clone(), Table::open(Some(&path), false).expect("a table"))
}

/// Rows that `path` holds.
fn rows(path: &Path) -> usize {
    let content = inspect::read(&std::fs::read(path).expect("readable"), false).expect("a table");
    content.dirs.len() + content.moved.len()
}

#[test]
fn the_oldest_entry_is_evicted_and_a_reinserted_one_is_new() {
    let mut aged = FifoMap::new(3);
    assert!((0..3).all(|n| aged.insert(n, 'a').is_none()));
    assert!(aged.remove(&0) && !aged.remove(&0));
    assert_eq!(aged.insert(0, 'b'), None, "room was made");
    assert_eq!(aged.insert(1, 'c'), None, "it is there");
    assert_eq!(aged.insert(4, 'd'), Some(1), "a new value makes nobody younger");
    assert_eq!((aged.get(&0), aged.get(&1), aged.len()), (Some(&'b'), None, 3));
}

#[test]
fn what_is_removed_leaves_the_table_and_its_file() {
    let (path, table) = table("removed");
    for ino in 2..6 {
        table.note_dir(&dir(ino), dir(1), b"name");
    }
    table.note_moved(&dir(10), dir(2), &[dir(3)]);
    table.write_out().expect("written");
    assert_eq!(table.len(), 5);
    table.forget_dir(&dir(2));
    table.forget_moved(&dir(10));
    // Another directory has its number by now.
    table.forget_dir(&Ident::Inode { ino: 3, birth: 8 });
    assert_eq!((table.len(), table.dir(2), table.hint(&dir(10))), (3, None, None));
    table.close();
    assert_eq!(rows(&path), 3);
    std::fs::remove_file(path).expect("ours to remove");
}

#[test]
fn what_comes_and_goes_waits_for_nothing() {
    let (path, table) = table("churn");
    // The writer is waited for: nothing else writes from now on.
    lock(&table.state).closing = true;
    table.wake.notify_all();
    lock(&table.writer).take().expect("a writer").join().expect("no panic");
    for ino in 2..1_000 {
        table.note_dir(&dir(ino), dir(1), b"name");
        table.note_moved(&dir(ino), dir(1), &[dir(2)]);
        table.forget_dir(&dir(ino));
        table.forget_moved(&dir(ino));
    }
    let state = lock(&table.state);
    assert!(state.pending.dirs.is_empty() && state.pending.moved.is_empty());
    drop(state);
    table.close();
    std::fs::remove_file(path).expect("ours to remove");
}

#[test]
fn what_could_not_be_written_comes_before_what_came_meanwhile() {
    let put = |bytes: &[u8]| Some(bytes.to_vec());
    let mut earlier = Waiting::default();
    for key in 1..=4 {
        earlier.put(key, b"old".to_vec(), key != 2);
    }
    earlier.remove(5);
    let mut waiting = Waiting::default();
    // 1 never was on disk: nothing is left of it. 2 was: its row has to go.
    waiting.remove(1);
    waiting.remove(2);
    waiting.put(3, b"newer".to_vec(), false);
    waiting.put(5, b"again".to_vec(), true);
    waiting.put_back(earlier);
    let mut rows: Vec<_> =
        waiting.iter().map(|(key, row)| (*key, row.map(<[u8]>::to_vec))).collect();
    rows.sort();
    assert_eq!(rows, [(2, None), (3, put(b"newer")), (4, put(b"old")), (5, put(b"again"))]);
    // 3 is still known to be new, 5 to be on disk.
    waiting.remove(3);
    waiting.remove(5);
    assert_eq!(waiting.iter().count(), 3);
}
