//! passwd(5).

use super::*;

#[test]
fn users_by_number() {
    let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
    assert_eq!(user_name(passwd, 0).as_deref(), Some("root"));
    assert_eq!(user_name(passwd, 1000).as_deref(), Some("ann"));
    assert_eq!(user_name(passwd, 1001), None);
}

#[test]
fn a_file_without_a_known_path_is_told_by_its_number() {
    assert_eq!(file_name("tank", &FileName::Path(b"a/b".to_vec())), "/export/tank/a/b");
    assert_eq!(file_name("tank", &FileName::Path(Vec::new())), "/export/tank");
    assert_eq!(file_name("tank", &FileName::Inode(12)), "inode 12 in tank");
}
