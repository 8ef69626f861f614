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
    let file = File::options().write(true).open(&path).unwrap();
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

/// What another user can put into a directory with mode 1777 before a run begins.
#[test]
fn links_in_the_directory_are_not_followed() {
    let root = std::env::temp_dir().join(format!("plimsoll-path-links-{}", std::process::id()));
    let (set, checker) =
        (FileSet { client: 0, files: 1, size: 8192 }, || Checker::new(Content::new(1), 1));
    let victim = root.join("victim");
    let at = root.join(set.dir_name());
    let prepare = || {
        let mut client = PathClient::open(&root, checker()).unwrap();
        client.prepare(&set).map(|()| client)
    };
    std::fs::create_dir_all(root.join("elsewhere")).unwrap();
    std::fs::write(&victim, b"precious").unwrap();

    std::os::unix::fs::symlink("elsewhere", &at).unwrap();
    assert!(prepare().is_err());
    assert_eq!(std::fs::read_dir(root.join("elsewhere")).unwrap().count(), 0);
    std::fs::remove_file(&at).unwrap();

    std::fs::create_dir(&at).unwrap();
    let file = at.join(set.file_name(0));
    for plant in [
        |victim: &Path, file: &Path| std::os::unix::fs::symlink(victim, file).unwrap(),
        |victim: &Path, file: &Path| std::fs::hard_link(victim, file).unwrap(),
    ] {
        plant(&victim, &file);
        assert!(prepare().is_err());
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        std::fs::remove_file(&file).unwrap();
    }
    let mut client = prepare().unwrap();
    let (name, made) = (3, at.join(FileSet::made_name(3)));
    std::os::unix::fs::symlink(root.join("new"), &made).unwrap();
    let create = all(&mut client, &[Op::Create { name }])[0].outcome;
    assert_eq!(create, Err(Fault::Status(libc::EEXIST as u32)));
    assert!(!root.join("new").exists());
    std::fs::remove_dir_all(&root).unwrap();
}
