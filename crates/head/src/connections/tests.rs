//! What is written is read, and nothing else is.

use super::*;

#[test]
fn connections_come_back_and_damaged_lines_do_not() {
    let state = std::env::temp_dir().join(format!("head-connections-{}", std::process::id()));
    std::fs::create_dir(&state).expect("a directory");
    assert_eq!(read(&state).expect("no file"), []);
    let at = |text: &str| text.parse().expect("an address");
    let all = [(2049, at("192.0.2.1:700")), (445, at("[2001:db8::2]:50000"))];
    write(&state, &all).expect("written");
    assert_eq!(read(&state).expect("read"), all);
    let damaged = "2049 192.0.2.1:700\n70000 192.0.2.1:1\nx\n\n445 [::1]:5\n22 192.0.2.1";
    std::fs::write(state.join(CONNECTIONS), damaged).expect("written");
    assert_eq!(read(&state).expect("read"), [(2049, at("192.0.2.1:700")), (445, at("[::1]:5"))]);
    write(&state, &vec![all[0]; HEAD_CONNECTIONS_MAX + 1]).expect("written");
    assert_eq!(read(&state).expect("read").len(), HEAD_CONNECTIONS_MAX);
    std::fs::remove_dir_all(&state).expect("removed");
}
