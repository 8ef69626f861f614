//! Tests of the syntax of units on the command line.

use super::{LunGiven, parse};

#[test]
fn sizes_and_names_are_read() {
    let given = |name: &str, size| Ok(LunGiven { name: name.to_owned(), size });
    assert_eq!(parse("disk=10G"), given("disk", 10 << 30));
    assert_eq!(parse("a-b_c.d=1048576"), given("a-b_c.d", 1 << 20));
    for wrong in
        ["disk", "=1G", ".x=1G", "a/b=1G", "a=1", "a=G", "a=+1G", "a=99999999T", "a=1048577"]
    {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
