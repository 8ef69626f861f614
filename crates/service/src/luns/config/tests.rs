//! Tests of names.

use base::node::Path;

use super::{is_lun, is_node_name, name_of, path_of};

#[test]
fn iscsi_names_are_distinguished_from_others() {
    for good in ["iqn.1993-08.org.debian:01:anna", "eui.02004567a425678d", "naa.52004567ba64678d"] {
        assert!(is_node_name(good), "{good}");
    }
    let long = format!("iqn.2026-01.org.example:{}", "x".repeat(200));
    for wrong in [
        "",
        "iqn.",
        "anna",
        "iqn.2026-01.org.Example:x",
        "iqn.2026-01.org x",
        "iqn.bad",
        "iqn.2026-13.org.example:x",
        "iqn.26-01.org.example:x",
        "iqn.2026-01.:x",
        "eui.0200456",
        "naa.52004567ba64678g",
        &long,
    ] {
        assert!(!is_node_name(wrong), "{wrong}");
    }
}

#[test]
fn nodes_and_names_lead_to_each_other() {
    let path = Path::of(&["shares", "p", "luns", "disk"]);
    assert_eq!(name_of(&path), "p/disk");
    assert_eq!(path_of("p/disk"), Some(path.clone()));
    assert!(is_lun(&path) && is_lun(&path.parent().expect("above")));
    assert!(!is_lun(&Path::of(&["shares", "p", "lunch"])));
}
