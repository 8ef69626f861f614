//! The lines that people copy.

use super::*;

#[test]
fn commands_can_be_pasted_into_a_shell() {
    let at = "[2001:db8::1]:10218".parse().unwrap();
    assert_eq!(sftp("", at, "my data"), "sftp -P 10218 'USER@[2001:db8::1]:/my data'");
    let at = "127.0.0.1:10443".parse().unwrap();
    let url = "webdavs://127.0.0.1:10443/my%20data";
    assert_eq!(davfs(url, at, "my data"), "mount -t davfs https://127.0.0.1:10443/my%20data/ /mnt");
}
