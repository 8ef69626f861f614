//! The properties of the node, as settings.

use base::node::{Path, Value};
use serve::ftp::{LoginRoot, Uploads};

use super::*;
use crate::tests::ROOT;
use crate::values::ports;

#[test]
fn declared_defaults_are_those_of_the_service() {
    assert_eq!(settings(&Document::new(&ROOT)), Settings::default());
}

#[test]
fn settings_follow_the_configuration() {
    let mut document = Document::new(&ROOT);
    let at = Path::of(&["configuration", "services", "ftp"]);
    for (property, value) in [
        ("tls", Value::text("required")),
        ("passive_ports", Value::text("30000-30009")),
        ("masquerade_address", Value::text("192.0.2.7")),
        ("umask", Value::text("027")),
        ("login_root", Value::text("home")),
        ("uploads", Value::text("in-place")),
        ("idle", Value::Integer(60)),
    ] {
        document.set(&at, property, value);
    }
    let settings = settings(&document);
    assert_eq!((settings.tls, settings.umask), (TlsUse::Required, 0o027));
    assert_eq!(settings.passive_ports, Some(30_000..=30_009));
    assert_eq!(settings.masquerade_address, Some([192, 0, 2, 7].into()));
    assert_eq!((settings.uploads, settings.login_root), (Uploads::InPlace, LoginRoot::Home));
    assert_eq!(settings.idle.as_secs(), 60);
}

#[test]
fn ports_are_a_range_of_unprivileged_ones() {
    assert_eq!(ports("1024-65535"), Some(1024..=65_535));
    for wrong in ["", "30000", "30001-30000", "1023-2000", "1-2", "30000-70000", "a-b"] {
        assert_eq!(ports(wrong), None, "{wrong:?}");
    }
}
