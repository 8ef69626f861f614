//! Documents: effective values, differences, and the round trip through a file.

use base::node::Value;
use base::random::{Random, SeededRandom};

use super::{ROOT, path};
use crate::tree::text::{self, SECRET};
use crate::tree::{Document, Revision, Source};

fn revision(number: u64) -> Revision {
    Revision {
        number,
        when: 1_800_000_000,
        who: "anna \"x\"".to_owned(),
        from: "::1".to_owned(),
        comment: "why \\ not".to_owned(),
        changes: 3,
    }
}

#[test]
fn what_is_not_set_is_inherited_or_the_default() {
    let mut document = Document::new(&ROOT);
    let share = path("/shares/p/s");
    document.create(&share);
    assert_eq!(document.items(&path("/shares")).into_iter().collect::<Vec<_>>(), ["default", "p"]);
    assert!(document.exists(&path("/shares/default")) && document.exists(&share));
    assert_eq!(document.missing(&path("/shares/q/s")), Some(path("/shares/q")));
    assert_eq!(document.texts(&share, "rules"), ["*(rw)"]);
    let place = document.place(&share).unwrap();
    let property = place.context.property("rules").unwrap();
    let from = || Source::Inherited(path("/shares/p"));
    assert_eq!(document.resolve(&share, property).1, from());
    document.set(&path("/shares/p"), "rules", Value::texts(["a(ro)"]));
    assert_eq!(document.resolve(&share, property), (Some(Value::texts(["a(ro)"])), from()));
    document.set(&share, "rules", Value::texts(["b(ro)"]));
    assert_eq!(document.resolve(&share, property), (Some(Value::texts(["b(ro)"])), Source::Set));
    document.unset(&share, "rules");
    assert_eq!(document.texts(&share, "rules"), ["a(ro)"]);
    assert_eq!(document.integer(&path("/services/nfs"), "lease"), Some(90));
    assert_eq!(document.value(&share, "directory"), None);
    assert_eq!(document.value(&share, "nothing"), None);
}

#[test]
fn items_keep_what_is_below_them_under_another_name() {
    let mut document = Document::new(&ROOT);
    document.create(&path("/shares/p/s"));
    document.set(&path("/shares/p/s"), "read_only", Value::Bool(true));
    document.rename(&path("/shares/p"), &path("/shares/q"));
    assert!(document.bool(&path("/shares/q/s"), "read_only"));
    assert!(!document.exists(&path("/shares/p")));
    assert_eq!(document.destroy(&path("/shares/q")), 2);
    assert_eq!(document, Document::new(&ROOT));
    // A node that is always there is not worth a mention.
    document.set(&path("/shares/default"), "read_only", Value::Bool(true));
    document.unset(&path("/shares/default"), "read_only");
    assert_eq!(document, Document::new(&ROOT));
}

/// Something of everything, by chance.
fn random_document(random: &mut SeededRandom) -> Document {
    let mut document = Document::new(&ROOT);
    let words = ["", "a", "ä \"q\" 'x'", "#[x]\\n", "true", "1", "= [a]"];
    for _ in 0..random.below(12) {
        let (project, share) = (random.below(3), random.below(5));
        let share = path(&format!("/shares/p{project}/s.{share}"));
        let user = path(&format!("/users/u{}", random.below(4)));
        match random.below(6) {
            0 => document.create(&share),
            1 => {
                document.create(&share);
                let rules = ["*(rw,sync)", "10.0.0.0/8(ro)"];
                let some = &rules[..random.below(3) as usize];
                document.set(&share, "rules", Value::texts(some));
            }
            2 => {
                let on = random.below(2) == 0;
                document.create(&share);
                document.set(&share.parent().unwrap(), "read_only", Value::Bool(on));
            }
            3 => {
                document.create(&user);
                let word = words[random.below(words.len() as u64) as usize];
                document.set(&user, "full_name", Value::text(word));
            }
            4 => {
                document.create(&user);
                document.set(&user, "password", Value::Integer(1 + random.below(99) as i64));
            }
            _ => {
                let lease = Value::Integer(1 + random.below(3_600) as i64);
                document.set(&path("/services/nfs"), "lease", lease);
            }
        }
    }
    document
}

#[test]
fn any_document_is_read_as_it_was_written() {
    let mut random = SeededRandom::new(3);
    for round in 0..500 {
        let document = random_document(&mut random);
        let text = text::write_revision(&document, &revision(round));
        let (read, head) = text::read(&ROOT, &text).unwrap();
        assert_eq!(read, document, "round {round}:\n{text}");
        assert_eq!(head, Some(revision(round)));
        assert_eq!(text::read_head(&text), head);
        assert_eq!(
            text::write_revision(&read, &revision(round)),
            text,
            "one text for one document"
        );
        assert!(document.differences(&read).is_empty());
        let other = random_document(&mut random);
        assert_eq!(document.differences(&other).is_empty(), document == other);
    }
}

#[test]
fn an_export_has_no_secrets() {
    let mut document = Document::new(&ROOT);
    document.create(&path("/users/anna"));
    document.set(&path("/users/anna"), "password", Value::Integer(4711));
    let text = text::write_export(&document, "nas\n= 1");
    assert!(!text.contains("4711") && text.contains("# nas = 1\n"), "{text}");
    let (read, head) = text::read(&ROOT, &text).unwrap();
    assert_eq!(read.set_value(&path("/users/anna"), "password"), Some(&Value::text(SECRET)));
    assert_eq!(head, None);
}

#[test]
fn a_wrong_file_is_refused_with_all_that_is_wrong() {
    let cases = [
        ("", "does not start with format = 1"),
        ("format = 2", "does not start with format = 1"),
        ("format = 1\n[", "not valid TOML"),
        ("format = 1\nx = 1", "a path begins with /"),
        ("format = 1\n\"/shares\" = 1", "it is not a table"),
        ("format = 1\n[\"/nowhere\"]", "/ has no \"nowhere\""),
        ("format = 1\n[\"/sessions/s\"]", "not part of the configuration"),
        ("format = 1\n[\"/services/nfs\"]\nlease = 0", "0 is too small; the minimum is 1 second"),
        ("format = 1\n[\"/services/nfs\"]\nlease = \"2 weeks\"", "is not seconds from 1 to 3600"),
        ("format = 1\n[\"/services/nfs\"]\nlease = 1.5", "expected seconds"),
        ("format = 1\n[\"/services/nfs\"]\nstate = \"online\"", "it is read-only"),
        ("format = 1\n[\"/services/nfs\"]\nleese = 1", "unknown property \"leese\""),
        ("format = 1\n[\"/users/a\"]\npassword = \"plain\"", "secrets are set through the API"),
    ];
    for (text, says) in cases {
        let problems = text::read(&ROOT, text).unwrap_err();
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(all.join("\n").contains(says), "{text:?}: {all:?}");
    }
    let many = "format = 1\n[\"/services/nfs\"]\nlease = 0\nwindow = 0\n[\"/nowhere\"]\n";
    assert_eq!(text::read(&ROOT, many).unwrap_err().len(), 3);
    let lines = "format = 1\n\n# a\n[\"/services/nfs\"]\n  lease = 0\n[\"/nowhere\"]\n";
    let said: Vec<String> =
        text::read(&ROOT, lines).unwrap_err().iter().map(|one| one.sentence.clone()).collect();
    let [nowhere, lease] = said.as_slice() else { panic!("{said:?}") };
    assert!(nowhere.starts_with("line 6: / has no \"nowhere\""), "{nowhere}");
    assert!(lease.starts_with("line 5: lease: 0 is too small"), "{lease}");
    let broken = "format = 1\n[\"/services/nfs\"]\nlease = \n";
    let sentence = &text::read(&ROOT, broken).unwrap_err()[0].sentence;
    assert!(sentence.starts_with("line 3: the configuration is not valid TOML: "), "{sentence}");
    assert!(!sentence.contains('\n'), "{sentence}");
    let friendly = "format = 1\n[\"/services/nfs\"]\nlease = \"5m\"\nwindow = \"64K\"\n";
    let (document, _) = text::read(&ROOT, friendly).unwrap();
    assert_eq!(document.integer(&path("/services/nfs"), "lease"), Some(300));
    assert_eq!(document.integer(&path("/services/nfs"), "window"), Some(65_536));
}
