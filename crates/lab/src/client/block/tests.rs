//! A file that stands for a disk.

use super::*;
use crate::pattern::Content;

#[test]
fn what_was_prepared_is_read_and_a_flipped_bit_is_found() {
    let path = std::env::temp_dir().join(format!("plimsoll-block-{}", std::process::id()));
    let file = File::create(&path).expect("a file");
    file.set_len(1 << 20).expect("a size");
    let mut client = BlockClient::open(&path, Checker::new(Content::new(1), 1)).expect("the file");
    let set = FileSet { client: 1, files: 2, size: 100_000 };
    client.prepare(&set).expect("room");
    let read = |client: &mut BlockClient| {
        let mut done = Vec::new();
        client.submit(3, Op::Read { file: 1, offset: 8192, len: 4096 }).expect("a slot");
        client.flush().expect("sent");
        while done.is_empty() {
            client.wait(Duration::from_secs(5), &mut done).expect("an answer");
        }
        done.remove(0).outcome
    };
    assert_eq!(read(&mut client), Ok(4096));
    let layout = Layout::new(&set, 1 << 20).expect("room");
    file.write_all_at(b"other", layout.at(1) + 8192).expect("written");
    assert_eq!(read(&mut client), Err(Fault::Corrupt));
    let large = FileSet { client: 9, ..set };
    assert!(client.prepare(&large).is_err(), "beyond the end");
    std::fs::remove_file(&path).expect("removed");
    assert!(BlockClient::open(&std::env::temp_dir(), Checker::new(Content::new(1), 1)).is_err());
}

#[test]
fn the_file_of_a_logical_unit_that_is_online_is_refused() {
    let path = std::env::temp_dir().join(format!("plimsoll-block-lun-{}", std::process::id()));
    File::create(&path).and_then(|file| file.set_len(1 << 20)).expect("a file");
    let open = || BlockClient::open(&path, Checker::new(Content::new(1), 1));
    let mark = base::claim::Mark::set(&path).expect("a mark");
    assert!(open().is_err_and(|e| e.to_string().contains("logical unit")));
    drop(mark);
    assert!(open().is_ok());
    std::fs::remove_file(&path).expect("removed");
}
