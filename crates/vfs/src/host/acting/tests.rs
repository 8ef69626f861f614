//! Acting as somebody: the kernel's own account of the thread says who it is. Needs root.

use super::*;

/// A line of the thread's own status.
fn status(key: &str) -> String {
    let text = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("has this line");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_resource() -> bool {
    let caps = u64::from_str_radix(&status("CapEff:"), 16).expect("a hexadecimal number");
    caps & sys::CAP_SYS_RESOURCE != 0
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
            let _first = Acting::as_caller(&user(1000, &[])).expect("may switch");
            assert!(!has_resource(), "an ordinary caller must be stopped by quotas");
            let _second = Acting::as_caller(&user(1001, &[])).expect("may switch");
            assert!(!has_resource());
            let _server = Acting::as_server().expect("may switch back");
            assert_eq!(status("CapEff:"), before);
        }
        assert_eq!(status("CapEff:"), before, "everything is back");
        let _odd = Acting::as_caller(&Cred { uid: 0, gid: 5, groups: vec![] }).expect("may switch");
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
            drop(Acting::as_caller(&user(1000, &many)).expect("may switch"));
            assert_eq!(status("Groups:"), listed, "a dedicated thread stays who it was");
            assert!(status("Uid:").ends_with(" 1000"), "the file-system user is the last");
            drop(Acting::as_caller(&user(1001, &[])).expect("may switch"));
            assert_eq!(status("Groups:"), "", "nobody inherits another's groups");
            drop(Acting::as_server().expect("may switch"));
            assert_eq!(status("Groups:"), before);
        }
    });
}

#[test]
fn either_will_do_without_a_change() {
    on_own_thread(|| {
        dedicate_thread();
        let me = user(1000, &[]);
        drop(Acting::as_caller(&me).expect("may switch"));
        drop(Acting::as_server_or(&me).expect("nothing to do"));
        assert!(status("Uid:").ends_with(" 1000"));
        drop(Acting::as_server_or(&user(1001, &[])).expect("may switch"));
        assert!(status("Uid:").ends_with(" 0"), "another caller's identity will not do");
    });
}

#[test]
fn the_invalid_id_is_refused() {
    on_own_thread(|| {
        let who = Acting::as_caller(&user(u32::MAX, &[])).err();
        assert_eq!(who, Some(Status::Access));
        let _me = Acting::as_caller(&user(1000, &[])).expect("the thread is still of use");
        assert!(status("Uid:").ends_with(" 1000"));
    });
}
