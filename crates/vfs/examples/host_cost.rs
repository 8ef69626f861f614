//! What the back end costs above the system calls it makes: `cargo run --release -p vfs --example
//! host_cost [DIR [PART OF A NAME]]`. Each figure is the median of 15 rounds, in nanoseconds of
//! processor time per operation, one thread, everything cached.

use std::os::fd::AsFd;
use std::path::PathBuf;

use vfs::attr::SetAttr;
use vfs::conformance::user;
use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow, FileSystem, Stable, access};
use vfs::handle::Handle;
use vfs::host::{HostFs, HostOptions, sys};

const ROUNDS: usize = 15;
const OPS: u32 = 20_000;

/// Processor time of this thread so far, in nanoseconds (the first number of schedstat).
fn spent() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let first = text.split(' ').next().expect("three numbers");
    first.parse().expect("a number")
}

fn measure(what: &str, mut op: impl FnMut()) {
    let wanted = std::env::args().nth(2).unwrap_or_default();
    if !what.contains(&wanted) {
        return;
    }
    let mut figures: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let start = spent();
            (0..OPS).for_each(|_| op());
            (spent() - start) / f64::from(OPS)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    println!("{what:44} {:8.0} ns", figures[ROUNDS / 2]);
}

fn on_pool(fs: &HostFs, (root, other): (&Cred, &Cred), (top, file): (&Handle, &Handle)) {
    let how = CreateHow::Guarded(SetAttr { mode: Some(0o666), ..SetAttr::default() });
    vfs::host::dedicate_thread();
    for (who, cred) in [("root", root), ("uid 1000", other)] {
        let pool = Context { cred, may_block: true };
        measure(&format!("CREATE + REMOVE unflushed, pool, {who}"), || {
            fs.create(pool, top, b"new", how).expect("ok");
            fs.remove(pool, top, b"new").expect("ok");
        });
        measure(&format!("LOOKUP + CREATE + REMOVE, pool, {who}"), || {
            assert!(fs.lookup(pool, top, b"new").is_err());
            fs.create(pool, top, b"new", how).expect("ok");
            fs.remove(pool, top, b"new").expect("ok");
        });
        measure(&format!("WRITE 4 KiB unstable, pool, {who}"), || {
            fs.write(pool, file, 4096, &[7; 4096], Stable::Unstable).expect("ok");
        });
    }
}

fn main() {
    let dir = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let dir = dir.join(format!("plimsoll-cost-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a fresh directory");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&dir, open).expect("ours to change");
    let fs = HostFs::open(&dir, HostOptions::new(1, [1; 32])).expect("can be served");
    let root = Cred::root();
    let pool = Context { cred: &root, may_block: true };
    let how = CreateHow::Guarded(SetAttr { mode: Some(0o666), ..SetAttr::default() });
    let top = fs.root();
    let file = fs.create(pool, &top, b"file", how).expect("made").value.handle;
    fs.write(pool, &file, 0, &[7; 65_536], Stable::Unstable).expect("written");
    let other = user(1000, 1000);
    let mut buf = [0; 4096];
    let raw = std::fs::File::open(dir.join("file")).expect("there");
    let raw_dir = std::fs::File::open(&dir).expect("there");

    measure("bare fstat", || drop(sys::stat(raw.as_fd())));
    measure("bare preadv2 4 KiB + fstat", || {
        sys::read_at(raw.as_fd(), &mut buf, 0, false).expect("cached");
        sys::stat(raw.as_fd()).expect("there");
    });
    measure("bare fstat + statx of a name", || {
        sys::stat(raw_dir.as_fd()).expect("there");
        sys::statx_at(raw_dir.as_fd(), c"file").expect("there");
    });
    for (who, cred) in [("root", &root), ("uid 1000", &other)] {
        let warm = Context { cred, may_block: true };
        fs.read(warm, &file, 0, &mut buf).expect("readable");
        fs.access(warm, &file, access::READ).expect("asked");
        fs.lookup(warm, &top, b"file").expect("there");
        let cx = Context { cred, may_block: false };
        measure(&format!("GETATTR inline, {who}"), || {
            fs.getattr(cx, &file).expect("ok");
        });
        measure(&format!("ACCESS inline, {who}"), || {
            fs.access(cx, &file, access::READ).expect("ok");
        });
        measure(&format!("LOOKUP inline, {who}"), || {
            fs.lookup(cx, &top, b"file").expect("ok");
        });
        measure(&format!("READ 4 KiB inline, {who}"), || {
            fs.read(cx, &file, 4096, &mut buf).expect("ok");
        });
    }
    measure("bare create + close + unlink", || {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
        drop(sys::open_at(raw_dir.as_fd(), c"bare", flags, 0o644).expect("ok"));
        sys::unlink_at(raw_dir.as_fd(), c"bare", false).expect("ok");
    });
    // As the server's pool does it; the identity of that thread ends with it.
    std::thread::scope(|scope| {
        scope.spawn(|| on_pool(&fs, (&root, &other), (&top, &file)));
    });
    drop(fs);
    std::fs::remove_dir_all(&dir).expect("ours to remove");
}
