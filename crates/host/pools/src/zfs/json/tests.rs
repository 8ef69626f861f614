//! What is wrong with an output.

use super::pools;

#[test]
fn what_is_no_output_is_refused() {
    for bytes in [&b"{"[..], b"[]", b"{\"pools\": 3}", b"\xff"] {
        assert!(pools(bytes).is_err());
    }
    let deep = "{\"pools\":".repeat(1_000);
    assert!(pools(deep.as_bytes()).is_err());
    assert_eq!(pools(b"{\"pools\": {\"tank\": 3}}").expect("parsed")[0].leaves.len(), 0);
}
