//! Secrets and mounts without data are omitted; this machine's description has the expected fields.

use super::*;

#[test]
fn values_that_look_like_secrets_are_left_out() {
    let line = "root=/dev/vda ro ip=dhcp luks.Passphrase=abc tang_key=x cgroup_token=y quiet";
    let shown = without_secrets(line, ' ');
    let wanted = "root=/dev/vda ro ip=dhcp luks.Passphrase=... tang_key=... cgroup_token=... quiet";
    assert_eq!(shown, wanted);
    let mounts = parse_mounts(
        "proc /proc proc rw 0 0\n//nas/x /x cifs rw,username=anna,password=abc 0 0\n\
         /dev/vda / ext4 rw,relatime 0 0\n",
    );
    assert_eq!(
        mounts,
        ["//nas/x /x cifs rw,username=anna,password=...", "/dev/vda / ext4 rw,relatime"]
    );
}

#[test]
fn this_machine_is_described() {
    let here = here();
    assert!(here["program"]["sha256"].as_str().is_some_and(|hash| hash.len() == 64), "{here}");
    assert!(here["sysctl"]["net.ipv4.tcp_rmem"].is_string());
    assert!(here["network"]["lo"]["mtu"].is_i64(), "{}", here["network"]);
    assert!(here["network"]["lo"]["offloads"]["tcp-segmentation"].is_boolean());
    assert!(here["kernel"].is_string() && here["mounts"].is_array());
}
