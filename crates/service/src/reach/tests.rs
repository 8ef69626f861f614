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

#[test]
fn words_survive_a_shell() {
    assert_eq!(shell_quote("127.0.0.1:/export/data"), "127.0.0.1:/export/data");
    assert_eq!(shell_quote("my data"), "'my data'");
    assert_eq!(shell_quote("it's"), r"'it'\''s'");
    assert_eq!(shell_quote(""), "''");
}

#[test]
fn names_survive_a_url() {
    assert_eq!(url_encode(b"data-1.x_~"), "data-1.x_~");
    assert_eq!(url_encode(b"a b/\xff?"), "a%20b%2F%FF%3F");
}
