//! A local directory as target: prepared, read, damaged, written, cleaned.

use super::*;
use crate::pattern::Content;

fn all(client: &mut PathClient, ops: &[Op]) -> Vec<Completion> {
    let mut done = Vec::new();
    for (slot, op) in ops.iter().enumerate() {
        client.submit(slot as u32, *op).unwrap();
    }
    client.flush().unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while done.len() < ops.len() && std::time::Instant::now() < deadline {
        client.wait(Duration::from_millis(100), &mut done).unwrap();
    }
    done.sort_by_key(|c| c.slot);
    done
}

#[test]
fn life_of_a_file_set() {
    let root = std::env::temp_dir().join(format!("plimsoll-path-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    let checker = Checker::new(Content::new(1), 1);
    let mut client = PathClient::open(&root, checker).unwrap();
    let set = FileSet { client: 2, files: 2, size: 300_000 };
    client.prepare(&set).unwrap();
    let read = Op::Read { file: 1, offset: 4096, len: 8192 };
    let name = 7;
    let done = all(&mut client, &[read, Op::Getattr { file: 0 }, Op::Create { name }, Op::Null]);
    let found = all(&mut client, &[Op::Lookup { file: 1 }])[0].outcome;
    assert_eq!(found, Ok(0));
    assert!(done.iter().all(|c| c.outcome.is_ok()), "{done:?}");
    assert_eq!(done[0].outcome, Ok(8192));

    let path = root.join(set.dir_name()).join(set.file_name(1));
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"damage", 5000).unwrap();
    assert_eq!(all(&mut client, &[read])[0].outcome, Err(Fault::Corrupt));
    let mend = Op::Write { file: 1, offset: 4096, len: 8192, stable: true };
    assert_eq!(all(&mut client, &[mend])[0].outcome, Ok(8192));
    assert_eq!(all(&mut client, &[read])[0].outcome, Ok(8192));
    let past = Op::Read { file: 1, offset: 299_999, len: 10 };
    assert_eq!(all(&mut client, &[past])[0].outcome, Err(Fault::Short));
    let twice = all(&mut client, &[Op::Create { name }])[0].outcome;
    assert_eq!(twice, Err(Fault::Status(libc::EEXIST as u32)));

    client.clean(&set).unwrap();
    assert!(!path.exists());
    std::fs::remove_dir_all(&root).unwrap();
}
