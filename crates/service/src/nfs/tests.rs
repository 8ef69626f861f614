//! The lines that people copy.

use base::protocol::Protocol;

use super::{mount_command, url};

#[test]
fn the_mount_command_is_the_one_that_is_promised() {
    let at = "127.0.0.1:12049".parse().unwrap();
    assert_eq!(
        mount_command(Protocol::Nfs3, at, "data", false),
        "mount -t nfs -o vers=3,proto=tcp,port=12049,mountport=12049,mountproto=tcp,nolock \
         127.0.0.1:/export/data /mnt"
    );
    let v6 = "[2001:db8::1]:2049".parse().unwrap();
    assert!(
        mount_command(Protocol::Nfs3, v6, "my data", true)
            .ends_with("'[2001:db8::1]:/export/my data' /mnt")
    );
}

#[test]
fn urls_name_a_host_that_can_be_reached() {
    let at = "127.0.0.1:12049".parse().unwrap();
    assert_eq!(url(Protocol::Nfs3, at, b"my data"), "nfs3://127.0.0.1:12049/export/my%20data");
    let all = url(Protocol::Nfs3, "0.0.0.0:2049".parse().unwrap(), b"x");
    assert!(!all.contains("0.0.0.0"), "{all}");
}
