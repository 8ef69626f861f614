//! passwd(5).

use super::user_name;

#[test]
fn users_by_number() {
    let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
    assert_eq!(user_name(passwd, 0).as_deref(), Some("root"));
    assert_eq!(user_name(passwd, 1000).as_deref(), Some("ann"));
    assert_eq!(user_name(passwd, 1001), None);
}
