//! Transactions: all or nothing, what is refused and how that reads, restore, import.

use serde_json::json;

use super::disk::MemoryDisk;
use super::{Holder, actor, commit, create, open, path, request, rooms, set, tree};
use crate::tree::change::Request;
use crate::tree::viewer::Everything;
use crate::tree::{Document, Fault, Problem};

const ONLY_USERS: Holder = Holder(&["users:change"]);

fn refused(result: Result<crate::tree::Done, Vec<Problem>>) -> Problem {
    result.unwrap_err().remove(0)
}

#[test]
fn a_transaction_is_whole() {
    let disk = MemoryDisk::default();
    let tree = open(&disk);
    let all = rooms::Recorders::default();
    tree.join(rooms::branches(&all));
    let changes = json!([
        set("/services/nfs", "lease", "2m"),
        create("/shares", "p", json!({ "read_only": true })),
        create("/shares/p", "s", json!({ "directory": "/srv", "rules": ["10.0.0.0/8(rw,sync)"] })),
    ]);
    let done = commit(&tree, changes).unwrap();
    assert_eq!((done.revision, done.changes.len()), (1, 6));
    assert_eq!(done.notes, ["/services/nfs lease takes effect when the server restarts"]);
    assert!(tree.document().bool(&path("/shares/p/s"), "read_only"), "inherited");
    assert!(all.taken("shares").is_some() && all.taken("users").is_none());
    let file = disk.file("configuration/000001.toml").unwrap();
    assert!(file.contains("[\"/shares/p/s\"]\ndirectory = \"/srv\"\n"), "{file}");

    let before = tree.document();
    let changes = json!([set("/services/nfs", "lease", 5), set("/services/nfs", "window", 1)]);
    let problem = refused(commit(&tree, changes));
    assert_eq!(problem.sentence, "window: 1 is too small; the minimum is 1024 bytes");
    assert_eq!(problem.property.as_deref(), Some("window"));
    assert_eq!(tree.document(), before);
    assert_eq!(*open(&disk).document(), *before, "and on disk");
    let same = commit(&tree, json!([set("/services/nfs", "lease", 120)])).unwrap();
    assert_eq!((same.revision, same.changes.len()), (1, 0), "no change is no revision");
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    let tree = tree();
    commit(
        &tree,
        json!([
            create("/shares", "p", json!({})),
            create("/shares/p", "s", json!({ "directory": "/srv", "mode": "m1" }))
        ]),
    )
    .unwrap();
    let dry = |path: &str| json!({ "destroy": path });
    use Fault::{Conflict, Unknown, Value};
    let cases = [
        (set("nfs", "a", 1), Value, "a path begins with /"),
        (set("/services/smb", "a", 1), Unknown, "/services has no \"smb\""),
        (set("/services/nfs", "leese", 1), Unknown, "unknown property \"leese\""),
        (set("/services/nfs", "state", "x"), Value, "state is read-only"),
        (set("/services/nfs", "lease", true), Value, "lease: it is true or false; expected"),
        (set("/services/nfs", "lease", json!({})), Value, "lease: expected seconds"),
        (set("/services/nfs", "delegations", true), Conflict, "overridden by the command line"),
        (set("/shares/q", "read_only", true), Unknown, "there is no project named \"q\""),
        (set("/shares/p/s", "mode", "m2"), Conflict, "can only be set at creation"),
        (set("/shares/default/given", "read_only", true), Conflict, "comes from the command line"),
        (json!({ "unset": "/shares/p/s", "property": "directory" }), Value, "must have a value"),
        (create("/services", "x", json!({})), Value, "this node has no items that can be created"),
        (create("/sessions", "x", json!({})), Value, "this node has no items that can be created"),
        (create("/shares", "p", json!({})), Conflict, "a project \"p\" already exists"),
        (create("/shares", "default", json!({})), Conflict, "a project \"default\" already exists"),
        (
            create("/shares/default", "given", json!({})),
            Conflict,
            "a share \"given\" already exists",
        ),
        (create("/shares", "a/b", json!({})), Value, "\"a/b\" cannot be the name of a project"),
        (create("/shares/p", "t", json!({})), Value, "directory must be set"),
        (create("/shares/p", "t", json!({ "colour": 1 })), Unknown, "unknown property \"colour\""),
        (dry("/services/nfs"), Conflict, "a fixed part"),
        (dry("/shares/default"), Conflict, "it is built in"),
        (dry("/sessions/s1"), Conflict, "it is created by the server"),
        (dry("/shares/p"), Conflict, "also destroys: 1 more items below it; 2 clients use it"),
        (json!({ "rename": "/shares/p", "to": "default" }), Conflict, "already"),
        (json!({ "rename": "/shares/p", "to": "-" }), Value, "cannot be the name"),
        (
            create("/shares/default", "wrong", json!({ "directory": "/no" })),
            Value,
            "does not exist",
        ),
        (create("/users", "u", json!({ "password": "abc" })), Value, "password is too short"),
    ];
    for (change, fault, says) in cases {
        let problem = refused(commit(&tree, json!([change])));
        assert!(problem.sentence.contains(says), "{change}: {problem:?}");
        assert_eq!(problem.fault, fault, "{change}: {problem:?}");
        assert_eq!(tree.current().revision.number, 1, "{change}");
    }
    let three = json!([create("/shares", "a", json!({})), create("/shares", "b", json!({}))]);
    let problems = commit(&tree, three).unwrap_err();
    assert_eq!(problems.len(), 1, "said once: {problems:?}");
    assert!(problems[0].sentence.contains("the maximum is 3 projects"));
}

#[test]
fn an_invalid_change_is_refused_with_what_it_lacks() {
    let cases = [
        (json!({}), "exactly one of set, unset, create, destroy and rename"),
        (json!({ "set": "/a", "unset": "/a", "property": "b" }), "exactly one of"),
        (json!({ "set": "/a", "value": 1 }), "\"set\" needs \"property\""),
        (json!({ "set": "/a", "property": "b" }), "\"set\" needs \"value\""),
        (json!({ "unset": "/a" }), "\"unset\" needs \"property\""),
        (json!({ "create": "/a" }), "\"create\" needs \"name\""),
        (json!({ "rename": "/a" }), "\"rename\" needs \"to\""),
        (json!({ "destroy": "/a", "to": "b" }), "\"to\" is not valid with \"destroy\""),
        (json!({ "destory": "/a" }), "unknown field `destory`"),
        (json!({ "destroy": 7 }), "expected a string"),
    ];
    for (change, says) in cases {
        let error = serde_json::from_value::<Request>(json!({ "changes": [change] })).unwrap_err();
        assert!(error.to_string().contains(says), "{change}: {error}");
    }
}

#[test]
fn items_are_renamed_and_destroyed() {
    let tree = tree();
    let all = rooms::Recorders::default();
    let tree2 = open(&MemoryDisk::default());
    tree2.join(rooms::branches(&all));
    for tree in [&tree, &tree2] {
        commit(
            tree,
            json!([
                create("/shares", "p", json!({})),
                create("/shares/p", "s", json!({ "directory": "/srv" }))
            ]),
        )
        .unwrap();
        commit(tree, json!([{ "rename": "/shares/p", "to": "q" }])).unwrap();
        assert!(tree.document().exists(&path("/shares/q/s")));
    }
    assert_eq!(all.renamed(), [(path("/shares/p"), path("/shares/q"))]);
    let done = commit(&tree2, json!([{ "destroy": "/shares/q", "confirm": true }])).unwrap();
    assert_eq!(done.changes.len(), 3);
    assert_eq!(*tree2.document(), Document::new(&super::ROOT));
}

#[test]
fn a_dry_run_changes_nothing() {
    let tree = tree();
    let ask = Request { dry_run: true, ..request(json!([set("/services/nfs", "lease", 5)])) };
    let done = tree.commit(&ask, &actor(), &Everything).unwrap();
    assert_eq!((done.revision, done.changes.len()), (0, 1));
    assert_eq!(tree.current().revision.number, 0);
    assert!(
        tree.audit()
            .read(&crate::tree::audit::AuditFilter { limit: 9, ..Default::default() })
            .unwrap()
            .is_empty()
    );
}

#[test]
fn what_another_user_has_changed_is_not_changed_unseen() {
    let tree = tree();
    commit(&tree, json!([set("/services/nfs", "lease", 5)])).unwrap();
    commit(&tree, json!([set("/services/nfs", "lease", 6)])).unwrap();
    let seen = |revision, change| Request { revision: Some(revision), ..request(json!([change])) };
    let late = seen(1, set("/services/nfs", "window", 4_096));
    let problem = refused(tree.commit(&late, &actor(), &Everything));
    assert_eq!(problem.fault, Fault::Conflict);
    let last = "revision 2, made by anna from 10.0.0.7 at 2027-01-15 08:00:00 UTC";
    assert!(problem.sentence.contains(last), "{problem:?}");
    let elsewhere = seen(1, set("/shares/default", "read_only", true));
    assert_eq!(tree.commit(&elsewhere, &actor(), &Everything).unwrap().revision, 3);
    let fresh = seen(3, set("/services/nfs", "window", 4_096));
    assert_eq!(tree.commit(&fresh, &actor(), &Everything).unwrap().revision, 4);
    let other = seen(99, set("/services/nfs", "window", 8_192));
    let problem = refused(tree.commit(&other, &actor(), &Everything));
    assert_eq!(problem.fault, Fault::Conflict);
    assert!(problem.sentence.contains("revision 99"), "{problem:?}");
}

#[test]
fn a_whole_configuration_is_taken_over_what_its_maker_has_seen() {
    let tree = tree();
    let export = tree.export("nas");
    for lease in [5, 6] {
        commit(&tree, json!([set("/services/nfs", "lease", lease)])).unwrap();
    }
    let import = |seen| tree.import_over(Some(seen), &export, false, &actor(), &Everything);
    let restore = |seen| tree.restore_over(Some(seen), 1, &actor(), &Everything);
    for late in [import(1), restore(1), import(9)] {
        let problem = refused(late);
        assert_eq!(problem.fault, Fault::Conflict);
        assert!(problem.sentence.contains("revision 2, made by anna"), "{problem:?}");
    }
    assert_eq!(restore(2).unwrap().revision, 3);
    assert_eq!(import(3).unwrap().revision, 4);
}

#[test]
fn destroying_what_has_changed_below_is_a_conflict() {
    let tree = tree();
    commit(&tree, json!([create("/shares", "p", json!({}))])).unwrap();
    let share = create("/shares/p", "s", json!({ "directory": "/srv" }));
    commit(&tree, json!([share])).unwrap();
    let destroy = |revision| Request {
        revision: Some(revision),
        ..request(json!([{ "destroy": "/shares/p", "confirm": true }]))
    };
    let problem = refused(tree.commit(&destroy(1), &actor(), &Everything));
    assert_eq!(problem.fault, Fault::Conflict);
    assert!(problem.sentence.contains("changed since revision 1"), "{problem:?}");
    assert_eq!(tree.commit(&destroy(2), &actor(), &Everything).unwrap().revision, 3);
}

#[test]
fn a_room_that_refuses_takes_the_others_back() {
    let disk = MemoryDisk::default();
    let tree = open(&disk);
    let all = rooms::Recorders::default();
    tree.join(rooms::branches(&all));
    commit(&tree, json!([set("/services/nfs", "window", 2_048)])).unwrap();
    all.refuse(Some("users"));
    let changes = json!([
        set("/services/nfs", "window", 4_096),
        set("/shares/default", "read_only", true),
        create("/users", "anna", json!({})),
    ]);
    assert_eq!(refused(commit(&tree, changes.clone())).sentence, "the room refuses");
    let window = |document: &Document| document.integer(&path("/services/nfs"), "window");
    assert_eq!(window(&tree.document()), Some(2_048));
    assert_eq!(window(&all.taken("services").unwrap()), Some(2_048), "applied back");
    assert!(!all.taken("shares").unwrap().bool(&path("/shares/default"), "read_only"));
    assert!(all.taken("users").is_none());
    assert_eq!(open(&disk).current().revision.number, 1);
    all.refuse(None);
    assert_eq!(commit(&tree, changes).unwrap().revision, 2);
}

#[test]
fn secrets_are_sealed_and_come_back_with_their_revision() {
    let disk = MemoryDisk::default();
    let tree = open(&disk);
    let all = rooms::Recorders::default();
    tree.join(rooms::branches(&all));
    commit(&tree, json!([create("/users", "anna", json!({ "password": "first" }))])).unwrap();
    assert_eq!(all.password().as_deref(), Some("sealed:5"));
    commit(&tree, json!([set("/users/anna", "password", "the second")])).unwrap();
    assert_eq!(all.password().as_deref(), Some("sealed:10"));
    tree.restore(1, &actor(), &Everything).unwrap();
    assert_eq!(all.password().as_deref(), Some("sealed:5"));
    let files = ["configuration/000001.toml", "audit.log", "secrets.json"];
    for file in files {
        let text = disk.file(file).unwrap();
        assert!(!text.contains("first") && !text.contains("the second"), "{file}: {text}");
    }
    assert!(!tree.export("nas").contains("sealed"));

    // An import retains the existing secret, and reports the missing ones.
    let export = tree.export("nas");
    assert!(tree.import(&export, false, &actor(), &Everything).unwrap().changes.is_empty());
    let other = super::tree();
    let done = other.import(&export, false, &actor(), &Everything).unwrap();
    assert_eq!(done.notes, ["/users/anna password is secret and must be set again"]);
    assert!(other.document().set_value(&path("/users/anna"), "password").is_none());
}

#[test]
fn an_import_has_no_secret_by_its_number() {
    let disk = MemoryDisk::default();
    let tree = open(&disk);
    let all = rooms::Recorders::default();
    tree.join(rooms::branches(&all));
    let user = |name: &str, password: &str| create("/users", name, json!({ "password": password }));
    commit(&tree, json!([user("anna", "first"), user("bert", "the second")])).unwrap();
    commit(&tree, json!([create("/users", "carl", json!({}))])).unwrap();
    let before = tree.document();
    let number = |name: &str| {
        let at = path(&format!("/users/{name}"));
        tree.document().set_value(&at, "password").and_then(base::node::Value::as_integer)
    };
    let [anna, bert] = ["anna", "bert"].map(|name| number(name).unwrap());
    let import = |[a, b, c]: [i64; 3]| {
        let user = |name, n| format!("[\"/users/{name}\"]\npassword = {n}\n");
        let text = ["format = 1\n".to_owned(), user("anna", a), user("bert", b), user("carl", c)];
        tree.import(&text.concat(), false, &actor(), &Holder(&["users:change"])).unwrap()
    };
    // One that nothing else has, those of others, its own.
    for [a, b, c] in [[99, 98, 97], [bert, anna, anna], [anna, bert, bert]] {
        let done = import([a, b, c]);
        assert_eq!(done.notes, ["/users/carl password is secret and must be set again"]);
        assert!(done.changes.is_empty(), "{:?}", done.changes);
        assert_eq!(tree.document(), before);
    }
    // Nor that of an earlier revision, which comes back with this revision alone.
    commit(&tree, json!([set("/users/anna", "password", "the third one")])).unwrap();
    assert!(import([anna, bert, anna]).changes.is_empty());
    assert_eq!(number("carl"), None);
    tree.restore(1, &actor(), &Everything).unwrap();
    assert_eq!(number("anna"), Some(anna));
}

#[test]
fn secrets_that_no_revision_has_do_not_pile_up() {
    let tree = open(&MemoryDisk::default());
    let all = rooms::Recorders::default();
    tree.join(rooms::branches(&all));
    let users = |password: &str| -> serde_json::Value {
        let one = |n| create("/users", &format!("u{n}"), json!({ "password": password }));
        (0..100).map(one).collect()
    };
    // What is made for a transaction that a room then refuses belongs to nothing.
    all.refuse(Some("users"));
    for _ in 0..11 {
        refused(commit(&tree, users("never in force")));
    }
    assert_eq!(tree.secrets().len(), 1_100);
    all.refuse(None);
    commit(&tree, users("first")).unwrap();
    assert_eq!(tree.secrets().len(), 100, "dropped while it runs, not only at a start");
    let kept = tree.secrets().get(&tree.document(), &path("/users/u7"), "password");
    assert_eq!(kept.as_deref(), Some("sealed:5"));
}

#[test]
fn earlier_configurations_come_back() {
    let tree = tree();
    for lease in 1..=3 {
        commit(&tree, json!([set("/services/nfs", "lease", lease)])).unwrap();
    }
    let numbers: Vec<u64> = tree.history(9).unwrap().iter().map(|one| one.number).collect();
    assert_eq!(numbers, [3, 2, 1]);
    let done = tree.restore(1, &actor(), &Everything).unwrap();
    assert_eq!((done.revision, done.changes.len()), (4, 1));
    assert_eq!(tree.document().integer(&path("/services/nfs"), "lease"), Some(1));
    let history = tree.history(1).unwrap();
    assert_eq!(history[0].comment, "restore of revision 1");
    let difference = &tree.compare(2, 4).unwrap()[0];
    assert_eq!((&difference.before, &difference.after), (&json!(2), &json!(1)));
    assert_eq!(tree.compare(0, 1).unwrap().len(), 1);
    let lost = tree.restore(9, &actor(), &Everything).unwrap_err().remove(0);
    assert_eq!((lost.fault, lost.sentence.as_str()), (Fault::Unknown, "revision 9 does not exist"));
    assert_eq!(lost.hint, "1 to 4 are retained");
}

#[test]
fn a_whole_configuration_replaces_the_current_one() {
    let (one, other) = (tree(), tree());
    commit(
        &one,
        json!([
            set("/services/nfs", "lease", 5),
            create("/shares", "p", json!({ "rules": "*(ro), 10.0.0.0/8(rw,sync)" })),
            create("/shares/p", "s", json!({ "directory": "/srv" })),
        ]),
    )
    .unwrap();
    commit(&other, json!([create("/shares", "old", json!({}))])).unwrap();
    let dry = other.import(&one.export("one"), true, &actor(), &Everything).unwrap();
    assert_eq!((dry.revision, dry.changes.len()), (1, 6));
    other.import(&one.export("one"), false, &actor(), &Everything).unwrap();
    assert_eq!(other.document(), one.document());
    let body = |text: String| text.lines().filter(|l| !l.starts_with('#')).collect::<String>();
    assert_eq!(body(other.export("x")), body(one.export("y")), "only comments differ");
    let bad = "format = 1\n[\"/shares/default/wrong\"]\ndirectory = \"/no\"\n";
    let problem = refused(other.import(bad, false, &actor(), &Everything));
    assert_eq!(problem.sentence, "line 3: the directory does not exist", "rooms are asked too");
}

#[test]
fn every_way_to_change_requires_the_right() {
    let tree = tree();
    commit(&tree, json!([set("/services/nfs", "lease", 5)])).unwrap();
    commit(&tree, json!([set("/services/nfs", "lease", 6)])).unwrap();
    let ask = |changes| tree.commit(&request(changes), &actor(), &ONLY_USERS);
    let both = json!([create("/users", "a", json!({})), set("/services/nfs", "lease", 7)]);
    let denied = [
        ask(both),
        ask(json!([set("/services/nfs", "no", 7)])),
        tree.restore(1, &actor(), &ONLY_USERS),
        tree.import("format = 1\n", false, &actor(), &ONLY_USERS),
    ];
    for result in denied {
        let problem = refused(result);
        assert_eq!(
            (problem.fault, problem.sentence.as_str()),
            (Fault::Denied, "may not change services")
        );
    }
    assert_eq!(ask(json!([create("/users", "a", json!({}))])).unwrap().revision, 3);
    let greet =
        tree.act(&path("/services/nfs"), "greet", &Default::default(), &actor(), &ONLY_USERS);
    assert_eq!(greet.unwrap_err().fault, Fault::Denied);
}

#[test]
fn actions_check_their_parameters_and_are_recorded() {
    let tree = tree();
    let act = |action: &str, given: serde_json::Value| {
        let given = serde_json::from_value(given).unwrap();
        tree.act(&path("/services/nfs"), action, &given, &actor(), &Everything)
    };
    assert_eq!(
        act("greet", json!({ "name": "bob", "word": "xyzzy" })).unwrap(),
        "greet bob from anna"
    );
    assert_eq!(act("greet", json!({})).unwrap_err().sentence, "name is missing");
    assert!(act("greet", json!({ "name": 7 })).unwrap_err().sentence.contains("expected a name"));
    assert!(act("dance", json!({})).unwrap_err().hint.contains("greet"));
    let wanted = crate::tree::audit::AuditFilter { limit: 9, ..Default::default() };
    let records = tree.audit().read(&wanted).unwrap();
    assert_eq!(records.len(), 1, "only what was done");
    assert_eq!(records[0].after, json!({ "parameters": { "name": "bob", "word": "(secret)" } }));
}

#[test]
fn a_damaged_revision_is_never_replaced_by_an_older_one() {
    let disk = MemoryDisk::default();
    let tree = open(&disk);
    commit(&tree, json!([set("/services/nfs", "lease", 5)])).unwrap();
    commit(&tree, json!([set("/services/nfs", "lease", 6)])).unwrap();
    disk.replace("configuration/000002.toml", "format = 1\n[revision]\nnumber = 1\n");
    let clock = std::sync::Arc::new(base::clock::ManualClock::default());
    let error =
        crate::tree::Tree::open(std::sync::Arc::new(disk), &super::ROOT, clock).err().unwrap();
    assert!(
        error.to_string().contains("revision 2 of the configuration cannot be used"),
        "{error}"
    );
}
