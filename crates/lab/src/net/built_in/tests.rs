//! Built-in profiles are read.

use super::{BUILT_IN, DEFAULTS, FORMS, text};
use lab_net::read::{Variables, read};

fn variables() -> Variables {
    let set = DEFAULTS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Variables { set: set.into(), environment: false, local_hosts: true }
}

#[test]
fn all_built_in_profiles_are_read() {
    for (name, answers, text) in BUILT_IN {
        let profile = read(name, text, &variables()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(profile.name, name);
        assert!(answers.ends_with('?'));
        let hosts = if name == "lso-request-1" { 1 } else { 4 };
        assert_eq!(profile.hosts().len(), hosts, "{name}");
    }
    for form in FORMS {
        let made = text(form, 3).expect("text");
        let profile = read(form, &made, &variables()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((profile.groups.len(), profile.threads()), (3, 12));
    }
    assert!(text("other", 1).is_none());
}
