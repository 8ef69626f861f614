//! The programs in this kernel, as root; without the rights they are skipped.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// What a child process of a test is to do.
const CHILD: &str = "PLIMSOLL_TEST_SEGMENTS_CHILD";

fn observer() -> Option<Observer> {
    match Observer::start(&Root::default()) {
        Ok(observer) => Some(observer),
        Err(why @ (Unavailable::Rights | Unavailable::Hidden(_))) => {
            println!("SKIP tcp-programs: {why}");
            None
        }
        Err(why) => panic!("{why}"),
    }
}

fn on_loopback(observer: &Observer) -> HashMap<Key, Count> {
    let all = observer.counts().expect("counts");
    let is = |key: &Key| bpf::interface_name(key.interface).as_deref() == Some("lo");
    all.into_iter().filter(|(key, _)| is(key)).collect()
}

/// Sends over loopback what no other test sends: pieces of this size, each acknowledged.
fn send(size: usize, pieces: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address");
    let reader = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        let mut room = vec![0; size];
        for _ in 0..pieces {
            peer.read_exact(&mut room).expect("a piece");
            peer.write_all(b"a").expect("an answer");
        }
    });
    let mut stream = TcpStream::connect(at).expect("a connection");
    stream.set_nodelay(true).expect("at once");
    for _ in 0..pieces {
        stream.write_all(&vec![7; size]).expect("a piece");
        stream.read_exact(&mut [0]).expect("an answer");
    }
    reader.join().expect("all read");
}

#[test]
fn segments_are_counted_with_their_sizes_and_contexts() {
    let Some(observer) = observer() else { return };
    let (size, pieces) = (23_456, 200);
    let before = on_loopback(&observer);
    send(size, pieces);
    let after = on_loopback(&observer);
    let bucket = base::buckets::index(size as u64) as u8;
    let mut sum = Count::default();
    for (key, count) in after {
        if key.bucket == bucket && key.context == Context::Sender {
            sum = sum.plus(count.since(before.get(&key).copied().unwrap_or_default()));
        }
    }
    // Other tests of this machine may send pieces of the same bucket; on a busy machine the kernel
    // leaves single calls of programs out (docs/howto/segments.md).
    let expected = pieces as u64 / 20 * 19;
    assert!(sum.segments >= expected, "{sum:?}");
    assert!(sum.bytes >= expected * size as u64, "{sum:?}");
    if sum.segments == pieces as u64 {
        assert_eq!(sum.mean(), Some(size as f64));
        assert_eq!(sum.mean_by_bytes(), Some(size as f64));
    }
    assert_eq!(observer.lost()[0], 0);
}

#[test]
fn what_is_received_is_looked_at_only_for_duplicates() {
    let Some(all) = observer() else { return };
    let sent = Observer::start_sent(&Root::default()).expect("the same rights");
    assert_eq!((all.programs().len(), sent.programs().len()), (4, 3));
    let before = on_loopback(&sent).values().map(|count| count.segments).sum::<u64>();
    send(1_000, 10);
    let after = on_loopback(&sent).values().map(|count| count.segments).sum::<u64>();
    assert!(after > before && sent.duplicates().expect("counts").is_empty());
}

/// The child of the test below: loads, names its programs, waits to be killed.
#[test]
fn child_that_observes() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let Some(observer) = observer() else { return };
    println!("programs: {:?}", observer.programs());
    // Until it is killed, or its parent has ended.
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn programs_go_with_the_process() {
    if observer().is_none() {
        return;
    }
    let own = std::env::current_exe().expect("this program");
    let mut child = Command::new(own)
        .args(["--exact", "segments::tests::child_that_observes", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut text = String::new();
    let mut out = child.stdout.take().expect("its output");
    let ids: Vec<u32> = loop {
        let mut room = [0; 512];
        let n = out.read(&mut room).expect("output");
        assert!(n > 0, "the child ended: {text}");
        text += &String::from_utf8_lossy(&room[..n]);
        let list = text.split_once("programs: [").and_then(|(_, rest)| rest.split_once(']'));
        if let Some((list, _)) = list {
            break list.split(", ").map(|id| id.parse().expect("a number")).collect();
        }
    };
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| bpf::is_loaded(*id) == Some(true)), "{ids:?}");
    child.kill().expect("SIGKILL");
    child.wait().expect("an end");
    let end = Instant::now() + Duration::from_secs(60);
    while ids.iter().any(|id| bpf::is_loaded(*id) != Some(false)) {
        assert!(Instant::now() < end, "programs are left: {ids:?}");
        std::thread::yield_now();
    }
}

/// A root with changed type information: links to the machine's own files otherwise.
struct Changed(PathBuf);

impl Changed {
    fn with(types: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!(
            "segments-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let file = path.join(TYPES.trim_start_matches('/'));
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        std::fs::write(file, types).expect("the file");
        std::os::unix::fs::symlink("/proc", path.join("proc")).expect("a link");
        Self(path)
    }

    fn root(&self) -> Root {
        Root::at(&self.0)
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The altered description places the fields outside of the structure, so the verifier
/// refuses the program.
#[test]
fn a_program_that_the_kernel_refuses_is_named_with_its_reason() {
    if observer().is_none() {
        return;
    }
    let mut bytes = std::fs::read(TYPES).expect("type information");
    let btf = Btf::parse(bytes.clone()).expect("parses");
    let place = btf.member_place("sk_buff", "len").expect("the field");
    bytes[place + 8..place + 12].copy_from_slice(&(30_000u32 * 8).to_ne_bytes());
    let changed = Changed::with(&bytes);
    let why = Observer::start(&changed.root()).expect_err("refused");
    let text = Tier::Counters(why).to_string();
    assert!(text.contains("refused the program plims_segment: access beyond struct"), "{text}");
}

#[test]
fn hidden_or_damaged_type_information_is_named() {
    if observer().is_none() {
        return;
    }
    let changed = Changed::with(b"\x9f\xeb");
    let why = Observer::start(&changed.root()).expect_err("damaged").to_string();
    assert!(why.starts_with("type information of the kernel cannot be used"), "{why}");
    std::fs::remove_file(changed.0.join(TYPES.trim_start_matches('/'))).expect("removed");
    let why = Observer::start(&changed.root()).expect_err("hidden").to_string();
    assert!(why.contains("/sys/kernel/btf/vmlinux) cannot be read: No such file"), "{why}");
}

#[test]
fn contexts_follow_the_numbers_of_soft_interrupts() {
    assert_eq!(Context::of(0), Context::Sender);
    assert_eq!(Context::of(4), Context::Acknowledgement);
    assert_eq!(Context::of(7), Context::SmallQueue);
    assert_eq!(Context::of(9), Context::Pacing);
    assert_eq!(Context::of(2), Context::Retransmission);
    assert_eq!(Context::of(3), Context::Queue);
    assert_eq!(Context::of(8), Context::Other);
}

#[test]
fn soft_interrupts_of_one_context_are_added() {
    let key = |vector: u64| (3u64 << 32 | vector << 8 | 20).to_ne_bytes();
    let value = |n: u64| [n, n * 10, n * 100].map(u64::to_ne_bytes).concat();
    let two_cpus = [value(1), value(2)].concat();
    let mut all = HashMap::new();
    super::add(&mut all, &key(1), &two_cpus);
    super::add(&mut all, &key(7), &two_cpus);
    let key = Key { interface: 3, context: Context::SmallQueue, bucket: 20 };
    let count = Count { segments: 6, bytes: 60, squares: 600 };
    assert_eq!(all, HashMap::from([(key, count)]));
}
