//! What an item must have depends on what it is; some names no item can have.

use std::sync::Arc;

use base::clock::ManualClock;
use base::node::{Action, Context, Default, Items, Kind, Property, RESERVED};
use serde_json::{Value as Json, json};

use super::disk::MemoryDisk;
use super::{LINE, NAME, commit, create, path, set};
use crate::tree::{Problem, Tree};

static ROOT: Context = Context::new("", "Test", "All of it.", "status").children(&[&WATCHES]);
static WATCHES: Context = Context::new("watches", "Watches", "What is watched.", "status")
    .actions(&[Action::new("look", "Look", "Looks.", "Nothing.")])
    .items(&Items::configured("watch", "watches", &NAME, 9, &WATCH));
static WATCH: Context = Context::new("watch", "Watch", "One.", "status").properties(&[
    Property::setting(
        "when",
        "When",
        Kind::Choice(&[("figure", "a figure"), ("event", "an event")]),
        Default::Text("figure"),
        "What.",
    ),
    Property::setting("figure", "Figure", LINE, Default::None, "Which.")
        .required()
        .only_if("when", &["figure"])
        .example("a.b"),
    Property::setting("limit", "Limit", LINE, Default::None, "How much.")
        .required()
        .only_if("when", &["figure"])
        .example("5"),
]);

fn tree() -> Tree {
    let clock = Arc::new(ManualClock::at(0));
    Tree::open(Arc::new(MemoryDisk::default()), &ROOT, clock).unwrap()
}

fn refused(tree: &Tree, changes: Json) -> Problem {
    commit(tree, changes).unwrap_err().remove(0)
}

#[test]
fn all_that_is_missing_is_reported_at_once_and_only_what_is_of_use() {
    let tree = tree();
    let problem = refused(&tree, json!([create("/watches", "a", json!({}))]));
    assert_eq!(problem.sentence, "figure and limit must be set");
    assert_eq!(problem.hint, "for example figure=a.b limit=5");
    assert_eq!((problem.property.as_deref(), problem.path), (Some("figure"), path("/watches/a")));
    commit(&tree, json!([create("/watches", "a", json!({ "when": "event" }))])).unwrap();
    let problem = refused(&tree, json!([{ "unset": "/watches/a", "property": "when" }]));
    assert_eq!(problem.sentence, "figure and limit must be set");
    let both = json!([
        set("/watches/a", "when", "figure"),
        set("/watches/a", "figure", "x.y"),
        set("/watches/a", "limit", "1"),
    ]);
    commit(&tree, both).unwrap();
    let unset = json!({ "unset": "/watches/a", "property": "limit" });
    assert_eq!(refused(&tree, json!([unset.clone()])).sentence, "limit must be set");
    commit(&tree, json!([unset, set("/watches/a", "when", "event")])).unwrap();
}

#[test]
fn reserved_words_of_the_command_line_are_refused_as_names() {
    let tree = tree();
    let given = json!({ "when": "event" });
    for name in RESERVED.into_iter().filter(|name| *name != "..").chain(["look"]) {
        let problem = refused(&tree, json!([create("/watches", name, given.clone())]));
        let sentence = format!(
            "{name:?} cannot be the name of a watch: it is a reserved word of the command \
                line"
        );
        assert_eq!((problem.sentence, problem.hint.as_str()), (sentence, "choose another name"));
    }
    commit(&tree, json!([create("/watches", "creates", given)])).unwrap();
    let to_verb = json!({ "rename": "/watches/creates", "to": "create" });
    assert!(
        refused(&tree, json!([to_verb])).sentence.contains("a reserved word of the command line")
    );
}
