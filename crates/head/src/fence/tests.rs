//! The file `owner`: its lock, its number, its damage; the fence of a process.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use e2e_free::Folder;

use super::*;

/// A folder that goes with this value.
mod e2e_free {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("plimsoll-head-fence-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _left = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn claim(folder: &Folder, number: u64) -> Claim {
    Claim {
        resource: "projects".to_owned(),
        state: folder.0.join("state"),
        head: "left".to_owned(),
        number,
        served: 0,
        unfenced_up_to: None,
        evict: None,
    }
}

fn take_now(claim: &Claim, fences: &[Box<dyn Fence>]) -> Result<OwnerLock, FenceError> {
    take(claim, fences, &AtomicBool::new(false))
}

#[test]
fn one_owner_at_a_time_and_numbers_that_rise() {
    let folder = Folder::new();
    let first = take_now(&claim(&folder, 3), &[]).expect("free");
    // At once: it is asked to give up.
    let second = take(&claim(&folder, 4), &[], &AtomicBool::new(true));
    assert_eq!(second.err(), Some(FenceError::Locked("left".to_owned())));
    drop(first);
    let superseded = take_now(&claim(&folder, 3), &[]);
    assert_eq!(superseded.err(), Some(FenceError::Superseded(3)));
    take_now(&claim(&folder, 4), &[]).expect("free, and a higher number");
}

#[test]
fn a_directory_that_was_not_served_last_is_refused() {
    let folder = Folder::new();
    let served = |number, served| Claim { served, ..claim(&folder, number) };
    let refused = |number, last| {
        let refused = take_now(&served(number, last), &[]).err().map(|e| e.to_string());
        let refused = refused.unwrap_or_else(|| panic!("number {number}, {last} was served"));
        assert!(refused.contains("is not the one that was served last"), "{refused}");
    };
    // No cluster file system is mounted here.
    refused(4, 3);
    drop(take_now(&served(4, 0), &[]).expect("the first one"));
    drop(take_now(&served(5, 4), &[]).expect("that of the last one"));
    // Claims may have failed since.
    drop(take_now(&served(9, 5), &[]).expect("that of the last one"));
    // A copy of before.
    refused(12, 10);
    let state = folder.0.join("state");
    std::fs::write(state.join("configuration"), "").expect("written");
    refused(13, 10);
    std::fs::remove_file(state.join(OWNER)).expect("removed");
    take_now(&served(14, 10), &[]).expect("the administrator has removed the file");
}

#[test]
fn a_confirmation_is_of_the_owners_that_were_known() {
    let folder = Folder::new();
    let former = |number| OwnerFile { number, ..OwnerFile::default() };
    let claim = |unfenced_up_to| Claim { unfenced_up_to, ..claim(&folder, 9) };
    assert!(!claim(None).permits(&former(1)));
    assert!(claim(Some(5)).permits(&former(5)));
    assert!(claim(Some(5)).permits(&former(4)), "the claims after it did not get the lock");
    assert!(!claim(Some(5)).permits(&former(6)), "it may be alive");
}

#[test]
fn the_lock_lives_with_the_process_that_has_it() {
    let folder = Folder::new();
    let mut lock = take_now(&claim(&folder, 1), &[]).expect("free");
    let input = Stdio::from(lock.pass().expect("a descriptor"));
    let mut child = Command::new("sh")
        .args(["-c", "echo ready; kill -STOP $$; read -r _"])
        .stdin(input)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    lock.enter(child.id()).expect("written");
    drop(lock);
    let held = take(&claim(&folder, 2), &[], &AtomicBool::new(true));
    assert!(matches!(held, Err(FenceError::Locked(_))), "{held:?}");
    // Also a process that is stopped is ended.
    let fences: Vec<Box<dyn Fence>> = vec![Box::new(ProcessFence)];
    let taken = take_now(&claim(&folder, 2), &fences).expect("the process is gone");
    assert_eq!(taken.content.number, 2);
    let status = child.wait().expect("its end");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
}

#[test]
fn a_client_that_keeps_the_lock_is_evicted() {
    let folder = Folder::new();
    let lock = take_now(&claim(&folder, 1), &[]).expect("free");
    let mut child = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::from(lock.pass().expect("a descriptor")))
        .spawn()
        .expect("a process");
    drop(lock);
    // The process is what the client is.
    let command = ["sh", "-c", "kill -9 ${0#id=}"].map(str::to_owned).to_vec();
    let evict = Some(Evict { client: child.id().into(), command });
    take_now(&Claim { evict, ..claim(&folder, 2) }, &[]).expect("the client is gone");
    let status = child.wait().expect("its end");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
}

/// A fence that succeeds after something else has happened; the numbers that it has fenced.
struct Meanwhile<F>(F, Arc<Mutex<Vec<u64>>>);

impl<F: Fn() + Send + Sync> Fence for Meanwhile<F> {
    fn name(&self) -> &'static str {
        "the test"
    }

    fn fence(&self, _resource: &str, former: &OwnerFile, _path: &Path) -> Result<bool, String> {
        self.1.lock().expect("no panic").push(former.number);
        (self.0)();
        Ok(true)
    }
}

#[test]
fn no_fence_is_run_for_a_claim_that_is_over() {
    let folder = Folder::new();
    let fenced = Arc::new(Mutex::new(Vec::new()));
    let fences: Vec<Box<dyn Fence>> = vec![Box::new(Meanwhile(|| {}, fenced.clone()))];
    let _owner = take_now(&claim(&folder, 3), &[]).expect("free");
    let over = take(&claim(&folder, 4), &fences, &AtomicBool::new(true));
    assert_eq!(over.err(), Some(FenceError::Locked("left".to_owned())));
    assert_eq!(*fenced.lock().expect("no panic"), [0_u64; 0], "the owner may be a later one");
}

#[test]
fn an_owner_that_came_while_another_one_was_fenced_is_not_followed() {
    let folder = Folder::new();
    let owner = Mutex::new(Some(take_now(&claim(&folder, 3), &[]).expect("free")));
    let next = claim(&folder, 4);
    let comes_and_goes = move || {
        drop(owner.lock().expect("no panic").take());
        drop(take_now(&next, &[]).expect("free"));
    };
    let fenced = Arc::new(Mutex::new(Vec::new()));
    let later = Meanwhile(|| {}, fenced.clone());
    let fences: Vec<Box<dyn Fence>> = vec![Box::new(Meanwhile(comes_and_goes, fenced.clone()))];
    let refused = take_now(&claim(&folder, 5), &fences);
    assert_eq!(refused.err(), Some(FenceError::Locked("left".to_owned())), "4 was not fenced");
    take_now(&claim(&folder, 5), &[Box::new(later)]).expect("the next attempt");
    assert_eq!(*fenced.lock().expect("no panic"), [3]);
}

#[test]
fn a_process_that_has_not_the_file_is_left_alone() {
    let folder = Folder::new();
    let mut lock = take_now(&claim(&folder, 1), &[]).expect("free");
    let mut child = Command::new("sleep").arg("600").spawn().expect("a process");
    lock.enter(child.id()).expect("written");
    let file = lock.pass().expect("a descriptor");
    let former = read(&file).expect("content");
    let path = folder.0.join("state").join(OWNER);
    assert_eq!(ProcessFence.fence("projects", &former, &path), Ok(false));
    assert_eq!(child.try_wait().expect("a status"), None, "it runs");
    child.kill().expect("killed");
    child.wait().expect("its end");
}

#[test]
fn a_program_fences_and_its_failure_is_reported() {
    let folder = Folder::new();
    let former = OwnerFile { head: "right".to_owned(), ..OwnerFile::default() };
    let path = folder.0.join("owner");
    let fence = |program: &str| ProgramFence { program: program.into() }.fence("r", &former, &path);
    assert_eq!(fence("true"), Ok(true));
    assert!(fence("false").is_err_and(|why| why.contains("exit status: 1")));
    assert!(fence("/nonexistent/fence").is_err_and(|why| why.contains("No such file")));
}

#[test]
fn damaged_and_newer_files_are_refused() {
    let folder = Folder::new();
    drop(take_now(&claim(&folder, 1), &[]).expect("free"));
    let path = folder.0.join("state").join(OWNER);
    assert_eq!(std::fs::metadata(&path).expect("the file").len(), SECTOR as u64);
    std::fs::write(&path, "{").expect("written");
    let damaged = take_now(&claim(&folder, 2), &[]).err().map(|e| e.to_string());
    assert!(damaged.as_deref().is_some_and(|why| why.contains("it is damaged")), "{damaged:?}");
    std::fs::write(&path, r#"{"format":2,"head":"left","number":1}"#).expect("written");
    let newer = take_now(&claim(&folder, 2), &[]).err().map(|e| e.to_string());
    assert!(newer.as_deref().is_some_and(|why| why.contains("newer version")), "{newer:?}");
}

#[test]
fn the_end_of_a_process_is_entered_for_its_own_number_only() {
    let folder = Folder::new();
    let lock = take_now(&claim(&folder, 3), &[]).expect("free");
    let state = folder.0.join("state");
    assert_eq!(release(&state, 3).ok(), Some(false), "it is locked");
    drop(lock);
    assert_eq!(release(&state, 2).ok(), Some(false), "another number");
    assert_eq!(release(&state, 3).ok(), Some(true));
    let file = File::open(state.join(OWNER)).expect("the file");
    let content = read(&file).expect("content");
    assert!(content.released && content.number == 3, "{content:?}");
    let next = take_now(&claim(&folder, 4), &[]).expect("free");
    assert!(!next.content.released);
}

#[test]
fn an_end_is_known_or_not() {
    let folder = Folder::new();
    let path = folder.0.join("owner");
    std::fs::write(&path, "").expect("written");
    let former = |head: &str, boot: &str, pid, released| OwnerFile {
        head: head.to_owned(),
        boot: boot.to_owned(),
        pid,
        released,
        ..OwnerFile::default()
    };
    let here = boot_id();
    let _open = File::open(&path).expect("open");
    let own = std::process::id();
    for (former, gone) in [
        (OwnerFile::default(), true),
        (former("right", "elsewhere", 1, true), true),
        (former("right", "elsewhere", 1, false), false),
        (former("left", "elsewhere", 1, false), true),
        (former("left", "", 0, false), false),
        (former("right", &here, u32::MAX, false), true),
        (former("right", &here, own, false), false),
    ] {
        assert_eq!(former::is_gone(&former, "left", &path), gone, "{former:?}");
    }
}
