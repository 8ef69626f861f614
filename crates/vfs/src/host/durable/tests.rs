//! A failed flush is reported to every caller that it concerns, whatever succeeds afterwards.

use std::sync::atomic::AtomicU64;

use base::limits::FLUSH_FAILURES_KEPT;

use super::*;
use crate::handle::Handle;
use crate::host::ids::Ident;

struct Bench {
    node: Arc<Node>,
    shared: Arc<FlushShared>,
    /// A descriptor that cannot be flushed (O_PATH), and one that can.
    bad: Arc<OwnedFd>,
    good: Arc<OwnedFd>,
}

impl Bench {
    fn new() -> Self {
        let open = |flags| {
            let path = std::ffi::CString::new(env!("CARGO_MANIFEST_DIR")).expect("a path");
            sys::open_path(&path, flags | libc::O_DIRECTORY).expect("our own directory")
        };
        let handle = Handle::new(&[1; 20]).expect("short");
        let ident = Ident::Inode { ino: 1, birth: 1 };
        let node = Node::new(open(libc::O_PATH), 1, FileType::Regular, handle, ident);
        let shared = FlushShared {
            mount: open(libc::O_RDONLY),
            failures: AtomicU64::new(0),
            dirty: AtomicU64::new(0),
        };
        let (bad, good) = (Arc::new(open(libc::O_PATH)), Arc::new(open(libc::O_RDONLY)));
        Self { node: Arc::new(node), shared: Arc::new(shared), bad, good }
    }
    fn target(&self, fd: &Arc<OwnedFd>, waiter: Waiter) -> NodeFlush {
        NodeFlush {
            node: Arc::clone(&self.node),
            fd: Some(Arc::clone(fd)),
            data_only: false,
            waiter,
            shared: Arc::clone(&self.shared),
        }
    }
    fn write(&self, fd: &Arc<OwnedFd>) -> NodeFlush {
        self.target(fd, Waiter::Change(self.node.flush.changed()))
    }
    fn run(target: &NodeFlush) -> Result<()> {
        target.covered(target.flush())
    }
}

#[test]
fn a_later_success_is_not_taken_for_an_earlier_writers() {
    let bench = Bench::new();
    // Both have written before the flush that fails; the second requests its flush only afterwards.
    let (first, second) = (bench.write(&bench.bad), bench.write(&bench.good));
    assert_eq!(Bench::run(&first), Err(Status::Io));
    assert_eq!(Bench::run(&second), Err(Status::Io), "its data was lost with the first's");
    assert_eq!(Bench::run(&bench.write(&bench.good)), Ok(()), "what came later is safe");
    assert_eq!(bench.shared.failures.load(Ordering::Relaxed), 1);
}

#[test]
fn each_user_that_commits_gets_the_error_once() {
    let bench = Bench::new();
    bench.node.flush.unstable(&bench.bad, &bench.shared);
    assert!(bench.node.flush.is_dirty());
    let waiter = |uid| bench.node.flush.commit(uid);
    let commit = |uid| Bench::run(&bench.target(&bench.good, waiter(uid)));
    assert_eq!(commit(1), Err(Status::Io), "the descriptor of the write is the one flushed");
    lock(&bench.node.flush.inner).fd = None;
    assert_eq!(commit(1), Ok(()), "told already");
    assert_eq!(commit(2), Err(Status::Io), "another writer has not been told");
    assert_eq!(commit(2), Ok(()));
    assert!(!bench.node.flush.is_dirty());
    assert_eq!(bench.shared.dirty.load(Ordering::Relaxed), 0);
}

#[test]
fn a_commit_in_progress_reports_an_error_its_user_already_got() {
    let bench = Bench::new();
    bench.node.flush.unstable(&bench.bad, &bench.shared);
    // Two clients of one user: both replies carry the verifier of before the failure.
    let [first, second] = [(); 2].map(|()| bench.target(&bench.good, bench.node.flush.commit(1)));
    assert_eq!(Bench::run(&first), Err(Status::Io));
    lock(&bench.node.flush.inner).fd = None;
    assert_eq!(Bench::run(&second), Err(Status::Io), "the flush after the failure is no answer");
    let third = bench.target(&bench.good, bench.node.flush.commit(1));
    assert_eq!(Bench::run(&third), Ok(()), "its reply carries the new verifier");
}

#[test]
fn flushes_of_one_file_share_a_key() {
    let (bench, other) = (Bench::new(), Bench::new());
    let (a, b) = (bench.write(&bench.good), bench.write(&bench.good));
    assert_eq!(a.key(), b.key());
    assert_ne!(a.key(), other.write(&other.good).key());
    let data = NodeFlush { data_only: true, ..bench.write(&bench.good) };
    assert_ne!(a.key(), data.key(), "fdatasync does not do for fsync");
}

#[test]
fn many_failures_are_merged_and_never_forgotten() {
    let bench = Bench::new();
    let held: Vec<_> = (0..FLUSH_FAILURES_KEPT * 3)
        .map(|_| {
            let (lost, held) = (bench.write(&bench.bad), bench.write(&bench.good));
            assert_eq!(Bench::run(&lost), Err(Status::Io));
            held
        })
        .collect();
    assert!(held.iter().all(|held| Bench::run(held) == Err(Status::Io)));
    assert!(lock(&bench.node.flush.inner).lost.len() <= FLUSH_FAILURES_KEPT);
}
