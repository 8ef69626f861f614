//! What is exchanged while it is in use.

use super::super::pair::tests::{authority, signed};
use super::*;

#[test]
fn another_certificate_is_for_connections_that_begin_then() {
    let ca = authority("CA");
    let (one, two) = (signed(&ca, &["a"], 2100), signed(&ca, &["a"], 2100));
    let shown = Shown::new(&one).map_err(|e| e.sentence).unwrap();
    let first = shown.config();
    shown.set(&one).unwrap();
    assert!(Arc::ptr_eq(&first, &shown.config()), "the same again is no change");
    shown.set(&two).unwrap();
    assert!(!Arc::ptr_eq(&first, &shown.config()) && shown.identity() == two);
    let mixed = Identity { key_pem: one.key_pem.clone(), ..two.clone() };
    shown.set(&mixed).unwrap_err();
    assert!(shown.identity() == two, "the previous certificate stays in use");
}
