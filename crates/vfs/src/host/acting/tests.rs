//! Impersonation: checks the identity that the kernel reports for the thread. Needs root, or the
//! capabilities of a service; the tests run themselves once more with those, and with all that
//! exist.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use super::*;

/// Set in the environment of the tests that were started by a test.
const WITHIN: &str = "PLIMSOLL_TEST_ACTING";

/// A line of the thread's own status.
fn status(key: &str) -> String {
    let text = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("has this line");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn rights() -> u64 {
    u64::from_str_radix(&status("CapEff:"), 16).expect("a hexadecimal number")
}

fn has_resource() -> bool {
    rights() & sys::CAP_SYS_RESOURCE != 0
}

fn on_own_thread(test: impl FnOnce() + Send + 'static) {
    if !can_switch() {
        println!("SKIP acting: this process may not act as others");
        return;
    }
    std::thread::spawn(test).join().expect("the test passed");
}

fn user(uid: u32, groups: &[u32]) -> Cred {
    Cred { uid, gid: uid, groups: groups.to_vec() }
}

#[test]
fn reserved_blocks_are_for_root_only() {
    on_own_thread(|| {
        let before = status("CapEff:");
        if !has_resource() {
            return println!("SKIP reserved blocks: this process has no right to them");
        }
        {
            let _first = CredGuard::as_caller(&user(1000, &[])).expect("may switch");
            assert!(!has_resource(), "an ordinary caller must be stopped by quotas");
            let _second = CredGuard::as_caller(&user(1001, &[])).expect("may switch");
            assert!(!has_resource());
            let _server = CredGuard::as_server().expect("may switch back");
            assert_eq!(status("CapEff:"), before);
        }
        assert_eq!(status("CapEff:"), before, "everything is back");
        let _odd =
            CredGuard::as_caller(&Cred { uid: 0, gid: 5, groups: vec![] }).expect("may switch");
        assert!(has_resource(), "root keeps it, whatever its group");
    });
}

#[test]
fn sixteen_groups_come_and_go() {
    on_own_thread(|| {
        dedicate_thread();
        let before = status("Groups:");
        let many: Vec<u32> = (2000..2016).collect();
        let listed = many.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        for _ in 0..2 {
            drop(CredGuard::as_caller(&user(1000, &many)).expect("may switch"));
            assert_eq!(status("Groups:"), listed, "a dedicated thread stays who it was");
            assert!(status("Uid:").ends_with(" 1000"), "the file-system user is the last");
            drop(CredGuard::as_caller(&user(1001, &[])).expect("may switch"));
            assert_eq!(status("Groups:"), "", "nobody inherits another's groups");
            drop(CredGuard::as_server().expect("may switch"));
            assert_eq!(status("Groups:"), before);
        }
    });
}

#[test]
fn either_will_do_without_a_change() {
    on_own_thread(|| {
        dedicate_thread();
        let me = user(1000, &[]);
        drop(CredGuard::as_caller(&me).expect("may switch"));
        drop(CredGuard::as_server_or(&me).expect("nothing to do"));
        assert!(status("Uid:").ends_with(" 1000"));
        drop(CredGuard::as_server_or(&user(1001, &[])).expect("may switch"));
        let server = format!(" {}", own().uid);
        assert!(status("Uid:").ends_with(&server), "another caller's identity will not do");
    });
}

#[test]
fn the_invalid_id_is_refused() {
    on_own_thread(|| {
        let who = CredGuard::as_caller(&user(u32::MAX, &[])).err();
        assert_eq!(who, Some(Status::Access));
        let _me = CredGuard::as_caller(&user(1000, &[])).expect("the thread is still of use");
        assert!(status("Uid:").ends_with(" 1000"));
    });
}

#[test]
fn rights_over_files_are_for_root_only() {
    on_own_thread(|| {
        let before = rights();
        let over_files = before & sys::CAPS_OVER_FILES;
        assert_ne!(over_files, 0);
        let root = Cred { uid: 0, gid: 0, groups: vec![] };
        let orders: [&[&Cred]; 3] = [
            &[&user(1000, &[]), &root, &user(1001, &[5]), &root],
            &[&root, &user(1000, &[]), &user(1001, &[]), &root],
            &[&root, &root, &user(1000, &[])],
        ];
        for callers in orders {
            for caller in callers {
                let _caller = CredGuard::as_caller(caller).expect("may switch");
                assert!(status("Uid:").ends_with(&format!(" {}", caller.uid)));
                let expected = if caller.uid == 0 { over_files } else { 0 };
                assert_eq!(rights() & sys::CAPS_OVER_FILES, expected, "as {caller:?}");
                let _server = CredGuard::as_server().expect("may switch back");
                assert_eq!(rights(), before, "as the server within {caller:?}");
            }
            assert_eq!(rights(), before);
        }
    });
}

/// The other tests of this file were run, all of them, and passed.
fn all_pass(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let all =
        output.status.success() && !said.contains("SKIP acting") && !said.contains(" 0 passed");
    assert!(all, "{said}{}", String::from_utf8_lossy(&output.stderr));
}

fn again(starter: &[&str]) -> Command {
    let own = std::env::current_exe().expect("this program's path");
    let mut command = Command::new(starter[0]);
    command.args(&starter[1..]).arg(own).args(["host::acting::tests::", "--show-output"]);
    command.env(WITHIN, "1");
    command
}

#[test]
fn an_ordinary_user_with_the_rights_of_a_service_acts_as_others() {
    if std::env::var_os(WITHIN).is_some() {
        return;
    }
    if own().uid != 0 {
        return println!("SKIP acting: needs root to hand out rights");
    }
    let names = "-all,+chown,+dac_override,+dac_read_search,+fowner,+fsetid,+setgid,+setuid";
    let sets = ["--inh-caps", "--ambient-caps", "--bounding-set"].map(|s| format!("{s}={names}"));
    let mut starter = vec!["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    starter.extend(sets.iter().map(String::as_str));
    all_pass(&again(&starter).output().expect("setpriv starts"));
}

#[test]
fn a_root_with_every_right_acts_as_others() {
    if std::env::var_os(WITHIN).is_some() {
        return;
    }
    if own().uid != 0 {
        return println!("SKIP acting: needs root to hand out rights");
    }
    // A user namespace's root has them all; the ids in it are mapped from outside.
    let wait = ["unshare", "--user", "sh", "-c", "read -r _ && exec \"$@\"", "sh"];
    let mut command = again(&wait);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("unshare starts");
    let mut wait = child.stdin.take().expect("its input");
    let mapped = map_ids(child.id());
    if let Err(e) = mapped {
        drop(wait);
        let _ended = child.wait();
        return println!("SKIP acting in a user namespace: {e}");
    }
    wait.write_all(b"go\n").expect("it waits");
    all_pass(&child.wait_with_output().expect("it ends"));
}

/// Maps all ids in the user namespace of `pid` to themselves, as soon as it exists.
fn map_ids(pid: u32) -> std::io::Result<()> {
    let own = std::fs::read_link("/proc/self/ns/user")?;
    let place = format!("/proc/{pid}");
    while std::fs::read_link(format!("{place}/ns/user"))? == own {
        std::thread::yield_now();
    }
    for map in ["uid_map", "gid_map"] {
        std::fs::write(format!("{place}/{map}"), "0 0 65536\n")?;
    }
    Ok(())
}
