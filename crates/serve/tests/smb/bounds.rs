//! What one request looks at has a limit; what a client that has gone has asked for is not done.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use base::limits::{SMB_SCAN_ENOUGH, TRANSFER_LIST_BATCH};
use base::log::{Level, LogQuery, lines, newest};
use e2e::api::wait_for;
use e2e::patience;
use e2e::smb::{Ask, Smb};
use vfs::fs::FileSystem;
use wire::smb::create::access;
use wire::smb::header::Command;
use wire::smb::status::NtStatus;

use crate::running::Running;
use crate::searches::{Maker, Search, open_dir};

const READ: u32 = access::READ;

fn open(smb: &mut Smb, path: &str) -> NtStatus {
    match smb.create(&Ask { access: READ, ..Ask::open(path) }).expect("an answer") {
        Ok(file) => smb.close(file).expect("an answer"),
        Err(status) => status,
    }
}

/// A link that goes through the directory `fold` 480 times, in another case each time.
fn chain(maker: &Maker) {
    let root = maker.0.root();
    let fold = maker.dir(&root, "fold");
    (0..3_000).for_each(|n| maker.file(&fold, &format!("f{n}")));
    maker.dir(&fold, "a");
    let links = maker.dir(&root, "links");
    for k in 0..4 {
        let rest = if k < 3 { format!("../links/c{}", k + 1) } else { "a".to_owned() };
        maker.link(&links, &format!("c{k}"), &format!("../fold/{}{rest}", "A/../".repeat(120)));
    }
}

#[test]
fn links_through_a_large_directory_look_at_it_once() {
    let mut running = Running::new();
    let maker = Maker(running.fs.clone());
    chain(&maker);
    let lists = |running: &Running| running.fs.lists.swap(0, SeqCst);
    lists(&running);
    assert_eq!(open(&mut running.alice, "links\\c0"), NtStatus::SUCCESS);
    assert_eq!(lists(&running), 1);
    // It is known then: other names, and none, in whatever case.
    assert_eq!(open(&mut running.alice, "links\\c0"), NtStatus::SUCCESS);
    assert_eq!(open(&mut running.alice, "fold\\F17"), NtStatus::SUCCESS);
    assert_eq!(open(&mut running.alice, "fold\\G17"), NtStatus::OBJECT_NAME_NOT_FOUND);
    assert_eq!(lists(&running), 0);
    // Until it is changed otherwise.
    let fold = |name: &str| open(&mut running.again(), &format!("fold\\{name}"));
    let (root, cred) = (running.fs.root(), vfs::cred::Cred::root());
    let cx = vfs::fs::Context { cred: &cred, may_block: true };
    let (dir, _) = running.fs.lookup(cx, &root, b"fold").expect("there");
    maker.file(&dir.handle, "new");
    assert_eq!(fold("NEW"), NtStatus::SUCCESS);
    assert_eq!(lists(&running), 1);
}

#[test]
fn a_listing_of_long_links_is_returned_in_parts() {
    let mut running = Running::new();
    let maker = Maker(running.fs.clone());
    chain(&maker);
    let many = maker.dir(&running.fs.root(), "many");
    (0..300).for_each(|n| maker.link(&many, &format!("l{n:03}"), "../links/c0"));
    let dir = open_dir(&mut running.alice, "many");
    let search = Search { output_max: 1 << 20, ..Search::of(dir) };
    running.alice.earn_credits(20).expect("answers");
    let (names, responses) = search.all(&mut running.alice);
    assert_eq!(names.len(), 302);
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "each once");
    assert!(responses > 3, "{responses} responses");
}

#[test]
fn a_pattern_finds_what_it_matches_however_sparse() {
    let mut running = Running::new();
    let maker = Maker(running.fs.clone());
    let many = maker.dir(&running.fs.root(), "many");
    let names = SMB_SCAN_ENOUGH + 3 * TRANSFER_LIST_BATCH;
    (0..names).for_each(|n| maker.file(&many, &format!("f{n}.txt")));
    let dir = open_dir(&mut running.alice, "many");
    for (pattern, matches) in [
        ("f17.txt", (|n| n == 17) as fn(usize) -> bool),
        ("F*000.TXT", |n| n >= 1_000 && n % 1_000 == 0),
        ("f1*9?.txt", |n| {
            let text = n.to_string();
            n >= 190 && text.starts_with('1') && text.as_bytes()[text.len() - 2] == b'9'
        }),
        ("nothing*", |_| false),
        ("f????.txt", |n| (1_000..10_000).contains(&n)),
    ] {
        running.fs.lists.store(0, SeqCst);
        let search = Search { pattern, flags: 0x10, ..Search::of(dir) };
        let mut found = search.next(&mut running.alice).unwrap_or_default();
        let rest = Search { flags: 0, ..search };
        if !found.is_empty() {
            found.extend(rest.all(&mut running.alice).0);
        }
        found.sort();
        let mut expected: Vec<_> =
            (0..names).filter(|n| matches(*n)).map(|n| format!("f{n}.txt")).collect();
        expected.sort();
        assert_eq!(found, expected, "{pattern}");
    }
}

#[test]
fn what_waits_of_a_client_that_has_gone_is_not_begun() {
    let running = Running::new();
    let maker = Maker(running.fs.clone());
    chain(&maker);
    maker.file(&running.fs.root(), "file");
    running.fs.lists.store(0, SeqCst);
    let held = running.fs.hold("list");
    let mut smb = running.from(7);
    let requests = 40;
    for n in 0..requests {
        let path = format!("fold\\MISSING{n}");
        let ask = Ask { access: READ, ..Ask::open(&path) };
        let request = smb.request(Command::CREATE, 0, &|out| ask.put(out));
        smb.send(&[request]).expect("sent");
    }
    let engine = &running.scene.files.engine;
    let queued = || (engine.pool.queued() > 0).then_some(());
    wait_for("requests in the queue", patience(60), queued);
    let most = engine.pool.limits().threads * 3 / 4;
    wait_for("its part of the threads", patience(60), || {
        (running.fs.lists.load(SeqCst) == most).then_some(())
    });
    assert_eq!(engine.pool.busy(), most);
    // Others are served by the threads that are left.
    running.fs.blocks.store(true, SeqCst);
    let mut other = running.from(8);
    let file = other.create(&Ask::open("file")).expect("an answer").expect("a file");
    assert_eq!(other.write(file, 0, b"data", 0).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(other.read(file, 0, 9).expect("an answer"), Ok(b"data".to_vec()));
    drop(smb);
    let two = || (running.server.sessions.rows_now().len() == 2).then_some(());
    wait_for("the end of its session", Duration::from_secs(60), two);
    drop(held);
    wait_for("an idle pool", patience(60), || {
        (engine.pool.queued() == 0 && engine.pool.busy() == 0).then_some(())
    });
    assert_eq!(running.fs.lists.load(SeqCst), most, "of {requests}");
}

#[test]
fn a_refused_share_is_one_line_of_the_log_for_each_client() {
    let running = Running::new();
    let before = newest();
    let ask = |smb: &mut Smb, n: u32| {
        let name = format!("{}\n\u{1b}[31m{n}", "x".repeat(15_000));
        let refused = smb.connect_tree(&name).expect("an answer");
        assert_eq!(refused.err(), Some(NtStatus::BAD_NETWORK_NAME));
    };
    for number in [5, 6] {
        let mut smb = running.from(number);
        (0..200).for_each(|n| ask(&mut smb, n));
    }
    let service = Some("smb");
    let lines = lines(&LogQuery { after: before, service, level: Level::Debug, limit: 1_000 });
    let refused: Vec<_> = lines.iter().filter(|line| line.text.contains("refused")).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused.iter().all(|line| line.text.len() < 300 && !line.text.contains('\u{1b}')));
}
