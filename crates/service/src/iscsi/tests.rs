//! Tests of portals as they are set.

use super::portal;

#[test]
fn portals_are_addresses_with_or_without_a_port() {
    let told = |text| portal(text, 3260).map(|portal| portal.to_string());
    for (text, meant) in [
        ("192.0.2.7", "192.0.2.7:3260"),
        ("192.0.2.7:860", "192.0.2.7:860"),
        ("2001:db8::7", "[2001:db8::7]:3260"),
        ("[2001:db8::7]", "[2001:db8::7]:3260"),
        ("[2001:db8::7]:860", "[2001:db8::7]:860"),
    ] {
        assert_eq!(told(text).as_deref(), Some(meant), "{text}");
    }
    for wrong in ["", "host", "192.0.2", "192.0.2.7:", "192.0.2.7:99999", "192.0.2.7,1"] {
        assert_eq!(told(wrong), None, "{wrong}");
    }
}
