//! The properties of the node, as settings.

use base::node::{Path, Value};

use super::*;
use crate::tests::ROOT;

#[test]
fn declared_defaults_are_those_of_the_service() {
    let wanted = Settings { name: machine_name(), secure_port: 10_443, ..Settings::default() };
    assert_eq!(settings(&Document::new(&ROOT), 10_000), wanted);
}

#[test]
fn settings_follow_the_configuration() {
    let mut document = Document::new(&ROOT);
    let at = Path::of(&["configuration", "services", "http"]);
    document.set(&at, "plain", Value::text("off"));
    document.set(&at, "sign_in", Value::text("optional"));
    document.set(&at, "webdav", Value::Bool(false));
    document.set(&at, "umask", Value::text("077"));
    assert!(!has_plain(&document) && has_plain(&Document::new(&ROOT)));
    let settings = settings(&document, 0);
    assert_eq!(settings.sign_in, SignIn::Optional);
    assert_eq!((settings.webdav, settings.umask), (false, 0o077));
}
