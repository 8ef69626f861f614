//! The observer keeps its socket.

use std::collections::BTreeSet;

use super::*;

/// The sockets of netlink of this process, by their inode.
fn sockets() -> BTreeSet<String> {
    let all = std::fs::read_to_string("/proc/self/net/netlink").expect("sockets of netlink");
    let inodes = all.lines().filter_map(|line| line.split_whitespace().last());
    let inodes: BTreeSet<String> = inodes.map(|inode| format!("socket:[{inode}]")).collect();
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let targets = descriptors.filter_map(|one| std::fs::read_link(one.path()).ok());
    let targets = targets.map(|target| target.to_string_lossy().into_owned());
    targets.filter(|target| inodes.contains(target)).collect()
}

#[test]
fn it_asks_by_one_socket_until_that_fails() {
    let before = sockets();
    let observer = Observer::default();
    assert_eq!(sockets(), before, "nothing is open before it is of use");
    assert!(observer.carriers().is_ok_and(|carriers| carriers.contains_key("lo")));
    let first = sockets();
    assert_eq!(first.len(), before.len() + 1);
    assert!(observer.carriers().is_ok() && observer.devices().contains(&"lo".to_owned()));
    assert_eq!(sockets(), first);
    let refused = |_: &mut Linux| Err::<(), _>(Failure::Observe("no answer".to_owned()));
    assert!(observer.ask(refused).is_err());
    assert_eq!(sockets(), before, "an answer may still be on its way");
    assert!(observer.carriers().is_ok());
}
