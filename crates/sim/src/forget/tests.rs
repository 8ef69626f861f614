//! What a crash discards and what it retains, through a real mount (skipped where mounting is not
//! possible) and on the model alone.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Instant;

use super::model::{New, ROOT};
use super::*;

/// A mount in a folder of its own; `None`, with a SKIP line, where mounting is impossible.
struct MountFolder {
    mounted: Option<Mounted>,
    path: PathBuf,
}

impl MountFolder {
    fn new(name: &str) -> Option<Self> {
        if let Err(why) = available() {
            println!("SKIP forget-{name}: {why}");
            return None;
        }
        let name = format!("plimsoll-test-forget-{name}-{}-0", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Some(Self { mounted: Some(ForgetFs::mount(&path).unwrap()), path })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn crash(&self) {
        self.mounted.as_ref().unwrap().crash();
    }

    fn mounted(&self) -> &Mounted {
        self.mounted.as_ref().unwrap()
    }

    fn sync_dir(&self, name: &str) {
        File::open(self.at(name)).unwrap().sync_all().unwrap();
    }
}

impl Drop for MountFolder {
    fn drop(&mut self) {
        drop(self.mounted.take());
        let _left = fs::remove_dir(&self.path);
    }
}

#[test]
fn flushed_data_stays_and_the_rest_goes() {
    let Some(folder) = MountFolder::new("data") else { return };
    let file = File::create(folder.at("a")).unwrap();
    file.write_all_at(b"kept", 0).unwrap();
    file.sync_all().unwrap();
    folder.sync_dir("");
    file.write_all_at(b"lost", 10_000).unwrap();
    file.write_all_at(b"LOST", 0).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 10_004);
    drop(file);
    folder.crash();
    assert_eq!(fs::read(folder.at("a")).unwrap(), b"kept");
}

#[test]
fn a_write_that_is_synchronous_stays_and_those_around_it_go() {
    let Some(folder) = MountFolder::new("dsync") else { return };
    let file = File::create(folder.at("a")).unwrap();
    file.write_all_at(&[1; 12_288], 0).unwrap();
    file.sync_all().unwrap();
    folder.sync_dir("");
    file.write_all_at(&[2; 4096], 0).unwrap();
    let mut options = OpenOptions::new();
    let synchronous = options.write(true).custom_flags(libc::O_DSYNC).open(folder.at("a")).unwrap();
    synchronous.write_all_at(&[3; 4096], 4096).unwrap();
    synchronous.write_all_at(b"more", 12_288).unwrap();
    file.write_all_at(b"lost", 20_000).unwrap();
    drop((file, synchronous));
    folder.crash();
    let left = [[1; 4096], [3; 4096], [1; 4096]].concat();
    assert!(fs::read(folder.at("a")).unwrap() == [&left[..], b"more"].concat());
}

#[test]
fn a_name_needs_its_directory_flushed() {
    let Some(folder) = MountFolder::new("name") else { return };
    let file = File::create(folder.at("unnamed")).unwrap();
    file.write_all_at(b"data", 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    folder.crash();
    assert!(!folder.at("unnamed").exists());
}

#[test]
fn a_name_alone_leads_to_an_empty_file() {
    let Some(folder) = MountFolder::new("empty") else { return };
    fs::write(folder.at("hollow"), b"data").unwrap();
    folder.sync_dir("");
    folder.crash();
    let found = fs::metadata(folder.at("hollow")).unwrap();
    assert_eq!((found.len(), found.permissions().mode() & 0o777, found.uid()), (0, 0o600, 0));
}

#[test]
fn datasync_leaves_attributes_behind() {
    let Some(folder) = MountFolder::new("datasync") else { return };
    let file = File::create(folder.at("a")).unwrap();
    file.sync_all().unwrap();
    folder.sync_dir("");
    file.set_permissions(fs::Permissions::from_mode(0o611)).unwrap();
    file.write_all_at(b"data", 0).unwrap();
    file.sync_data().unwrap();
    drop(file);
    folder.crash();
    assert_eq!(fs::read(folder.at("a")).unwrap(), b"data");
    assert_ne!(fs::metadata(folder.at("a")).unwrap().permissions().mode() & 0o777, 0o611);
}

#[test]
fn the_first_datasync_brings_the_attributes_of_birth() {
    let Some(folder) = MountFolder::new("birth") else { return };
    let path = folder.at("a");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o604).open(path).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o611)).unwrap();
    file.sync_data().unwrap();
    folder.sync_dir("");
    drop(file);
    folder.crash();
    assert_eq!(fs::metadata(folder.at("a")).unwrap().permissions().mode() & 0o777, 0o604);
}

#[test]
fn a_rename_needs_both_directories() {
    let Some(folder) = MountFolder::new("rename") else { return };
    fs::create_dir(folder.at("d")).unwrap();
    fs::create_dir(folder.at("e")).unwrap();
    fs::write(folder.at("d/a"), b"x").unwrap();
    File::open(folder.at("d/a")).unwrap().sync_all().unwrap();
    for dir in ["d", "e", ""] {
        folder.sync_dir(dir);
    }
    fs::rename(folder.at("d/a"), folder.at("e/b")).unwrap();
    folder.sync_dir("e");
    folder.crash();
    assert!(folder.at("d/a").exists() && folder.at("e/b").exists(), "half a rename: two names");
    assert_eq!(fs::metadata(folder.at("e/b")).unwrap().nlink(), 2);
    fs::remove_file(folder.at("d/a")).unwrap();
    folder.sync_dir("d");
    folder.crash();
    assert!(!folder.at("d/a").exists());
    assert_eq!(fs::read(folder.at("e/b")).unwrap(), b"x");
}

#[test]
fn a_removal_needs_its_directory_flushed() {
    let Some(folder) = MountFolder::new("remove") else { return };
    fs::write(folder.at("a"), b"x").unwrap();
    File::open(folder.at("a")).unwrap().sync_all().unwrap();
    folder.sync_dir("");
    fs::remove_file(folder.at("a")).unwrap();
    assert!(!folder.at("a").exists());
    folder.crash();
    assert_eq!(fs::read(folder.at("a")).unwrap(), b"x", "back again");
}

#[test]
fn links_and_special_files_come_with_their_directory() {
    let Some(folder) = MountFolder::new("links") else { return };
    symlink("target", folder.at("l")).unwrap();
    let fifo = CString::new(folder.at("p").as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a valid path for the length of the call.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o640) }, 0);
    folder.sync_dir("");
    folder.crash();
    assert_eq!(fs::read_link(folder.at("l")).unwrap(), PathBuf::from("target"));
    assert_eq!(fs::metadata(folder.at("p")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn it_holds_what_a_server_does_with_it() {
    let Some(folder) = MountFolder::new("tree") else { return };
    fs::create_dir_all(folder.at("x/y/z")).unwrap();
    let names: Vec<String> = (0..3000).map(|n| format!("file-{n:04}")).collect();
    for name in &names {
        File::create(folder.at("x/y").join(name)).unwrap();
    }
    let mut found: Vec<String> = fs::read_dir(folder.at("x/y"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found.len(), 3001, "files and z");
    assert_eq!(found[..3000], names[..]);
    fs::hard_link(folder.at("x/y/file-0000"), folder.at("x/hard")).unwrap();
    assert_eq!(fs::metadata(folder.at("x/hard")).unwrap().nlink(), 2);
    assert!(fs::remove_dir(folder.at("x")).is_err());
    let data: Vec<u8> = (0..1_500_000_u32).map(|n| (n / 7) as u8).collect();
    let open = OpenOptions::new().read(true).write(true).create_new(true).open(folder.at("big"));
    let file = open.unwrap();
    file.write_all_at(&data, 4_095).unwrap();
    file.set_len(1_000_000).unwrap();
    let mut back = vec![1; 995_905];
    file.read_exact_at(&mut back, 4_095).unwrap();
    assert!(back == data[..995_905]);
    assert_eq!(file.metadata().unwrap().len(), 1_000_000);
    let stats = folder.mounted().stats();
    assert!(stats.writes > 0 && stats.ops > 3000, "{stats:?}");
}

/// A kernel handle, opaque as it is.
#[repr(C)]
struct KernelHandle {
    bytes: u32,
    kind: i32,
    body: [u8; 64],
}

fn handle_of(path: &Path) -> io::Result<KernelHandle> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    let mut handle = KernelHandle { bytes: 64, kind: 0, body: [0; 64] };
    let mut mount = 0;
    // SAFETY: a valid path, and a buffer of the size that it states.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0,
        )
    };
    if rc == 0 { Ok(handle) } else { Err(io::Error::last_os_error()) }
}

fn open_handle(mount: &File, handle: &mut KernelHandle) -> io::Result<File> {
    // SAFETY: an open descriptor and a handle that the kernel filled.
    let fd = unsafe {
        let handle: *mut KernelHandle = handle;
        libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), handle, libc::O_RDONLY)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

#[test]
fn kernel_handles_survive_rename_crash_and_cold_caches() {
    let Some(folder) = MountFolder::new("handles") else { return };
    fs::create_dir(folder.at("d")).unwrap();
    fs::write(folder.at("d/a"), b"by handle").unwrap();
    File::open(folder.at("d/a")).unwrap().sync_all().unwrap();
    let mut handle = handle_of(&folder.at("d/a")).unwrap();
    fs::rename(folder.at("d/a"), folder.at("b")).unwrap();
    folder.sync_dir("d");
    folder.sync_dir("");
    folder.crash();
    let mount = File::open(&folder.path).unwrap();
    let mut text = String::new();
    io::Read::read_to_string(&mut open_handle(&mount, &mut handle).unwrap(), &mut text).unwrap();
    assert_eq!(text, "by handle");
    fs::remove_file(folder.at("b")).unwrap();
    let gone = open_handle(&mount, &mut handle).unwrap_err();
    assert_eq!(gone.raw_os_error(), Some(libc::ESTALE));
}

#[test]
fn after_a_crash_the_kernel_knows_no_names() {
    let Some(folder) = MountFolder::new("cold") else { return };
    fs::create_dir(folder.at("d")).unwrap();
    fs::write(folder.at("d/a"), b"x").unwrap();
    File::open(folder.at("d/a")).unwrap().sync_all().unwrap();
    folder.sync_dir("d");
    folder.sync_dir("");
    let mut handle = handle_of(&folder.at("d/a")).unwrap();
    let path_by_handle = |handle: &mut KernelHandle| {
        let file = open_handle(&File::open(&folder.path).unwrap(), handle).unwrap();
        fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap()
    };
    assert_eq!(path_by_handle(&mut handle), folder.at("d/a"), "while it is warm");
    folder.crash();
    assert_ne!(path_by_handle(&mut handle), folder.at("d/a"));
}

#[test]
fn it_comes_back_after_an_unmount() {
    let Some(mut folder) = MountFolder::new("remount") else { return };
    fs::write(folder.at("a"), b"x").unwrap();
    let inode = fs::metadata(folder.at("a")).unwrap().ino();
    let mut handle = handle_of(&folder.at("a")).unwrap();
    let fs = folder.mounted.take().unwrap().unmount().unwrap();
    assert!(!folder.at("a").exists());
    folder.mounted = Some(fs.serve(&folder.path).unwrap());
    assert_eq!(fs::metadata(folder.at("a")).unwrap().ino(), inode);
    let mount = File::open(&folder.path).unwrap();
    assert!(open_handle(&mount, &mut handle).is_ok(), "also with nothing cached");
}

#[test]
fn delays_and_failures_are_as_configured() {
    let Some(folder) = MountFolder::new("knobs") else { return };
    let file = File::create(folder.at("a")).unwrap();
    folder.mounted().set_flush_delay(Duration::from_millis(30));
    let start = Instant::now();
    file.sync_all().unwrap();
    assert!(start.elapsed() >= Duration::from_millis(30));
    folder.mounted().set_flush_delay(Duration::ZERO);
    folder.mounted().set_flush_failure(true);
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(libc::EIO));
    folder.mounted().set_flush_failure(false);
    folder.mounted().set_op_delay(Duration::from_millis(10));
    let start = Instant::now();
    file.write_all_at(b"slow", 0).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(10));
    assert_eq!(folder.mounted().stats().file_flushes, 2);
}

#[test]
fn the_model_lets_go_of_what_nothing_leads_to() {
    let mut model = Model::default();
    let new = New { mode: libc::S_IFREG | 0o644, uid: 0, gid: 0, rdev: 0, target: b"" };
    let ino = model.make(ROOT, b"a", &new).unwrap().ino;
    model.remove(ROOT, b"a", false).unwrap();
    assert_eq!(model.see(ino).unwrap().nlink, 0, "still open");
    model.forget(ino, 1);
    assert_eq!(model.see(ino).unwrap_err(), libc::ESTALE);
}

#[test]
fn a_file_removed_in_memory_only_lives_until_its_directory_is_flushed() {
    let mut model = Model::default();
    let new = New { mode: libc::S_IFREG | 0o644, uid: 0, gid: 0, rdev: 0, target: b"" };
    let ino = model.make(ROOT, b"a", &new).unwrap().ino;
    model.write(ino, 5000, b"data").unwrap();
    model.flush_file(ino, true).unwrap();
    model.flush_dir(ROOT).unwrap();
    model.remove(ROOT, b"a", false).unwrap();
    model.forget(ino, 1);
    assert!(model.see(ino).is_ok(), "a crash would bring it back");
    model.flush_dir(ROOT).unwrap();
    assert_eq!(model.see(ino).unwrap_err(), libc::ESTALE);
}

#[test]
fn an_image_is_what_a_crash_would_have_left() {
    let Some(folder) = MountFolder::new("image") else { return };
    // Before each flush: there are three.
    folder.mounted().keep_images(Box::new(|_, flush| flush));
    let file = File::create(folder.at("a")).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o640)).unwrap();
    file.write_all_at(b"first", 0).unwrap();
    file.sync_all().unwrap();
    folder.sync_dir("");
    file.write_all_at(b"again", 0).unwrap();
    file.sync_all().unwrap();
    file.write_all_at(b"never", 0).unwrap();
    drop(file);
    let images = folder.mounted().take_images();
    let found: Vec<Option<String>> = images
        .iter()
        .enumerate()
        .map(|(n, image)| {
            let to = std::env::temp_dir().join(format!("forget-copy-{n}-{}", std::process::id()));
            fs::create_dir_all(&to).unwrap();
            image.left.copy_to(&to).unwrap();
            let mode = fs::metadata(to.join("a")).map_or(0o640, |a| a.permissions().mode() & 0o777);
            assert_eq!(mode, 0o640);
            let text = fs::read_to_string(to.join("a")).ok();
            fs::remove_dir_all(&to).unwrap();
            text
        })
        .collect();
    assert_eq!(found, [None, None, Some("first".to_owned())]);
    assert!(images.is_sorted_by_key(|image| image.call));
    assert_eq!(fs::read(folder.at("a")).unwrap(), b"never", "the run itself goes on");
}

#[test]
fn a_file_that_is_open_becomes_read_only() {
    let Some(folder) = MountFolder::new("read-only") else { return };
    let file = File::create(folder.at("a")).unwrap();
    file.write_all_at(b"before", 0).unwrap();
    folder.mounted().set_read_only(true);
    let refused = |done: std::io::Result<()>| done.unwrap_err().raw_os_error();
    assert_eq!(refused(file.write_all_at(b"after", 0)), Some(libc::EROFS));
    assert_eq!(refused(file.sync_all()), Some(libc::EROFS));
    assert_eq!(fs::read(folder.at("a")).unwrap(), b"before");
    folder.mounted().set_read_only(false);
    file.write_all_at(b"after!", 0).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn what_is_stuck_is_answered_when_it_is_loose() {
    let Some(folder) = MountFolder::new("stuck") else { return };
    let file = File::create(folder.at("a")).unwrap();
    folder.mounted().set_stuck(true);
    let before = folder.mounted().stats();
    let writer = std::thread::spawn(move || file.write_all_at(b"data", 0));
    // Nothing can be waited for that does not happen; a few turns show that it does not at once.
    (0..1000).for_each(|_| std::thread::yield_now());
    assert!(!writer.is_finished());
    assert_eq!(folder.mounted().stats(), before);
    folder.mounted().set_stuck(false);
    writer.join().unwrap().unwrap();
    assert_eq!(fs::read(folder.at("a")).unwrap(), b"data");
}
