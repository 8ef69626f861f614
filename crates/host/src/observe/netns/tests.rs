//! Listeners in captured namespaces, and one of this process.

use super::*;
use crate::observe::tests::Machine;

const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
    retrnsmt   uid  timeout inode\n";

fn row(address: &str, state: &str, inode: u64) -> String {
    format!(
        "   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0 0 \
         {inode} 1\n"
    )
}

/// `address:port` as the kernel of this machine prints it.
fn four(address: [u8; 4], port: u16) -> String {
    format!("{:08X}:{port:04X}", u32::from_ne_bytes(address))
}

#[test]
fn rows_of_proc_net_tcp() {
    let text = format!(
        "{HEAD}{}{}{}",
        row(&four([10, 1, 2, 3], 2049), "0A", 17),
        row(&four([10, 1, 2, 3], 2049), "01", 18),
        row("00000000000000000000000000000000:0801", "0A", 19),
    );
    let found = parse_listening(&text);
    let address = IpAddr::from([10, 1, 2, 3]);
    assert_eq!(found[0], Listening { address, port: 2049, inode: 17 });
    assert_eq!(found.len(), 2);
    assert!(found[1].address.is_unspecified());
    assert_eq!(parse_namespace("net:[4026531840]"), Some(4_026_531_840));
    assert_eq!(parse_namespace("mnt:[1]"), None);
}

fn trie(addresses: &[&str]) -> String {
    let leaf = |a: &&str| format!("     |-- {a}\n        /32 host LOCAL\n");
    format!("Main:\n  +-- 0.0.0.0/0 3 0 5\n{}", addresses.iter().map(leaf).collect::<String>())
}

/// A process in a namespace with one address and, perhaps, a listener of its own at port 2049.
fn add(machine: &Machine, pid: u32, namespace: u64, addresses: &[&str], listener: Option<u64>) {
    machine.process(pid, 1, 0, 0);
    machine.link(&format!("proc/{pid}/ns/net"), &format!("net:[{namespace}]"));
    machine.file(&format!("proc/{pid}/net/fib_trie"), &trie(addresses));
    let row = listener.map(|inode| row(&four([0; 4], 2049), "0A", inode));
    machine.file(&format!("proc/{pid}/net/tcp"), &format!("{HEAD}{}", row.unwrap_or_default()));
    if let Some(inode) = listener {
        machine.link(&format!("proc/{pid}/fd/3"), &format!("socket:[{inode}]"));
    }
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.link("proc/self/ns/net", "net:[100]");
    add(&machine, 5, 100, &["127.0.0.1", "192.0.2.1"], None);
    add(&machine, 10, 200, &["127.0.0.1", "10.0.0.2"], Some(17));
    machine
}

#[test]
fn a_server_in_another_namespace() {
    let machine = machine();
    let find = |address: [u8; 4]| find(&machine.root, &[IpAddr::from(address)], 2049);
    let server = find([10, 0, 0, 2]).unwrap();
    let expected = Server { pids: vec![10], network_of: 10, namespace: 200, own_namespace: false };
    assert_eq!(server, expected);
    // Its loopback is not ours, and our other address has no listener.
    assert_eq!(find([127, 0, 0, 1]), Err(ServerNotFound::Elsewhere));
    assert_eq!(find([192, 0, 2, 1]), Err(ServerNotFound::Elsewhere));
    assert_eq!(find([10, 0, 0, 3]), Err(ServerNotFound::Elsewhere));
}

#[test]
fn this_namespace_goes_first_and_two_others_are_ambiguous() {
    let machine = machine();
    let wanted = [IpAddr::from([10, 0, 0, 2])];
    add(&machine, 30, 300, &["10.0.0.2"], Some(27));
    assert_eq!(find(&machine.root, &wanted, 2049), Err(ServerNotFound::Ambiguous));
    add(&machine, 5000, 100, &["10.0.0.2"], Some(37));
    // The namespace is read by its lowest process, 5.
    machine.file("proc/5/net/fib_trie", &trie(&["10.0.0.2"]));
    let tcp = format!("{HEAD}{}", row(&four([10, 0, 0, 2], 2049), "0A", 37));
    machine.file("proc/5/net/tcp", &tcp);
    let server = find(&machine.root, &wanted, 2049).unwrap();
    assert_eq!((server.pids, server.own_namespace), (vec![5000], true));
}

#[test]
fn sockets_without_a_process() {
    let machine = machine();
    let wanted = [IpAddr::from([10, 0, 0, 2])];
    std::fs::remove_file(machine.at("proc/10/fd/3")).unwrap();
    assert_eq!(find(&machine.root, &wanted, 2049), Err(ServerNotFound::Denied));
    add(&machine, 40, 200, &["10.0.0.2"], None);
    let tcp = format!("{HEAD}{}", row(&four([0; 4], 2049), "0A", 0));
    machine.file("proc/10/net/tcp", &tcp);
    assert_eq!(find(&machine.root, &wanted, 2049), Err(ServerNotFound::Kernel));
}

#[test]
fn a_listener_of_this_process() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = find(&Root::default(), &[IpAddr::from([127, 0, 0, 1])], port).unwrap();
    assert_eq!(server.pids, [std::process::id()]);
    assert!(server.own_namespace);
    // By a client's address of its own on the same device.
    assert_eq!(interface_of(IpAddr::from([127, 0, 0, 1])).as_deref(), Some("lo"));
    assert_eq!(interface_of(IpAddr::from([127, 0, 0, 77])).as_deref(), Some("lo"));
    assert_eq!(interface_of(IpAddr::from([203, 0, 113, 9])), None);
}
