//! Names lead back to their numbers.

use super::*;

#[test]
fn names_lead_back_to_numbers() {
    for protocol in Protocol::ALL {
        for op in 0..=255 {
            assert_eq!(op_number(protocol, &op_name(protocol, op)), Some(op));
        }
        for status in 0..=20_000 {
            assert_eq!(status_number(protocol, &status_name(protocol, status)), Some(status));
        }
    }
    assert_eq!(op_name(Protocol::Nfs3, 6), "read");
    assert_eq!(op_name(Protocol::Nfs3, 21), "commit");
    assert_eq!(op_number(Protocol::Nfs3, "fly"), None);
}
