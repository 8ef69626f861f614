//! Files of Linux, and which of their addresses other hosts may use.

use super::*;

const TRIE: &str = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 192.168.7.0/24 2 0 2
        |-- 192.168.7.0
           /24 link UNICAST
        |-- 192.168.7.12
           /32 host LOCAL
        |-- 192.168.7.255
           /32 link BROADCAST
     |-- 169.254.3.4
        /32 host LOCAL
Local:
     |-- 192.168.7.12
        /32 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
";

#[test]
fn routes_of_type_local_are_addresses_of_the_machine() {
    let all: Vec<String> = version_4(TRIE).iter().map(ToString::to_string).collect();
    assert_eq!(all, ["192.168.7.12", "192.168.7.12", "127.0.0.1"], "none is link-local");
}

#[test]
fn global_addresses_of_version_6() {
    let line = "20010db8000000000000000000000007 02 40 00 80     eth0";
    assert_eq!(version_6(line), Some("2001:db8::7".parse().unwrap()));
    assert_eq!(version_6("fe800000000000000000000000000007 02 40 20 80     eth0"), None);
    assert_eq!(version_6("nonsense"), None);
}

#[test]
fn this_machine_is_read_without_its_loopback() {
    assert!(addresses(&Root::default()).iter().all(|address| !address.is_loopback()));
}
