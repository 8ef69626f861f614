//! Handles of 10,000 files that are gone, on a file system with handles that are numbers of nodes,
//! which begin again in each mount: each number is that of another file now, as an address in the
//! memory of another mount may be. None of them opens that file.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use e2e::nfs3::{Client, Failure, Handle};
use e2e::{is_root, skip};
use sim::forget::available;
use wire::nfs3::Nfsstat3;

use super::{SOURCE, USER, World};

/// Files that are gone, and as many that are there.
const FILES: usize = 10_000;
/// Longest handle of a kernel (`MAX_HANDLE_SZ`).
const HANDLE_MAX: usize = 128;

/// What the kernel itself takes for a handle (`struct file_handle`).
#[repr(C)]
struct KernelHandle {
    bytes: u32,
    kind: i32,
    body: [u8; HANDLE_MAX],
}

fn kernel_handle(path: &Path) -> io::Result<KernelHandle> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    let mut handle = KernelHandle { bytes: HANDLE_MAX as u32, kind: 0, body: [0; HANDLE_MAX] };
    let (at, mut mount) = (libc::AT_FDCWD, 0);
    // SAFETY: a valid path, and room of the size that it states.
    let done = unsafe {
        libc::name_to_handle_at(at, path.as_ptr(), (&raw mut handle).cast(), &raw mut mount, 0)
    };
    if done == 0 { Ok(handle) } else { Err(io::Error::last_os_error()) }
}

/// Whether the kernel opens a file by this handle of its own.
fn opens(mount: &File, handle: &mut KernelHandle) -> bool {
    let handle = &raw mut *handle;
    // SAFETY: an open descriptor and a handle that the kernel has filled.
    let fd = unsafe { libc::open_by_handle_at(mount.as_raw_fd(), handle.cast(), libc::O_PATH) };
    // SAFETY: the kernel has just returned this descriptor, which nothing else has.
    let file = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
    file.is_some()
}

/// The file system within this process has each node open.
fn raise_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it is filled and read for the calls only.
    let done = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)
    };
    assert!(done == 0 && limit.rlim_max > FILES as u64 + 1_000, "{} files", limit.rlim_max);
}

fn names() -> impl Iterator<Item = String> {
    (0..FILES).map(|n| format!("file-{n}"))
}

/// Handles of all files that will be gone.
fn handles(client: &mut Client) -> Vec<Handle> {
    let root = client.mnt("/export/share").expect("the share");
    let gone = client.lookup(&root, "gone").expect("a directory").handle;
    names().map(|name| client.lookup(&gone, &name).expect("a file").handle).collect()
}

#[test]
fn ten_thousand_stale_handles_open_no_other_file() {
    if let Err(why) = available() {
        skip!("remounts-stale", "{why}");
    }
    if !is_root() {
        skip!("remounts-stale", "handles of the kernel need root");
    }
    raise_descriptors();
    let mut world = World::new("remounts-stale");
    let (data, state) = (world.data("data"), world.state("state"));
    for folder in ["gone", "there"].map(|name| data.join(name)) {
        fs::create_dir(&folder).expect("made");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("a mode");
        names().for_each(|name| fs::write(folder.join(name), "data").expect("written"));
    }
    let mount = world.mount(&data, "one", SOURCE);
    let mut server = world.serve(&mount, &state);
    let mut client = Client::connect(server.nfs(), USER, USER).expect("a connection");
    let known = handles(&mut client);
    let place = mount.path().join("gone");
    let of_kernel = names().map(|name| kernel_handle(&place.join(name)).expect("a handle"));
    let mut of_kernel: Vec<_> = of_kernel.collect();
    drop(client);
    assert!(server.stop().success());
    mount.unmount().expect("unmounted");
    names().for_each(|name| fs::remove_file(data.join("gone").join(name)).expect("removed"));

    let mount = world.mount(&data, "one", SOURCE);
    // Each gets a number that a file had which is gone.
    let place = mount.path().join("there");
    names().for_each(|name| assert!(place.join(&name).exists(), "{name}"));
    let top = File::open(mount.path()).expect("the mount");
    let others = of_kernel.iter_mut().map(|one| opens(&top, one)).filter(|opens| *opens).count();
    println!("{others} of {FILES} handles of the kernel open other files");
    assert!(others > FILES / 2, "without that nothing is shown: {others}");

    let server = world.serve(&mount, &state);
    let mut client = Client::connect(server.nfs(), USER, USER).expect("a connection");
    let root = client.mnt("/export/share").expect("the share");
    for (n, handle) in known.iter().enumerate() {
        let got = client.getattr(handle).map(|seen| seen.fileid);
        assert_eq!(got, Err(Failure::Status(Nfsstat3::STALE)), "handle {n}");
    }
    let there = client.lookup(&root, "there").expect("a directory").handle;
    let file = client.lookup(&there, "file-0").expect("a file").handle;
    assert_eq!(client.read_all(&file).expect("data"), b"data");
}
