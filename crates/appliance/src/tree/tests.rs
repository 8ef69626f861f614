//! The declarations of all rooms together.

use std::collections::BTreeSet;

use base::node::{
    Condition, Context, Default, Items, Kind, Origin, Path, Property, RESERVED, Role,
};
use control::access::SCOPES;

use super::ROOT;

mod reference;

/// Everything that is declared, with the path that leads there.
fn walk(context: &'static Context, path: &Path, found: &mut Vec<(Path, &'static Context)>) {
    found.push((path.clone(), context));
    for child in context.children {
        walk(child, &path.join(child.name), found);
    }
    if let Some(items) = context.items {
        walk(items.context, &path.join("NAME"), found);
    }
}

fn all() -> Vec<(Path, &'static Context)> {
    let mut found = Vec::new();
    walk(&ROOT, &Path::root(), &mut found);
    found
}

fn is_name(name: &str, extra: char) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == extra)
}

fn is_sentence(text: &str) -> bool {
    text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()) && text.ends_with('.')
}

#[test]
fn every_node_is_declared_well() {
    for (path, context) in all() {
        assert!(path.is_root() || is_name(context.name, '-'), "{path}: {:?}", context.name);
        assert!(is_sentence(context.help), "{path}: {:?}", context.help);
        let scope = SCOPES.iter().any(|(scope, _)| *scope == context.scope);
        assert!(scope && context.scope != "*", "{path}: scope {:?}", context.scope);
        let below: BTreeSet<&str> = context.children.iter().map(|child| child.name).collect();
        assert_eq!(below.len(), context.children.len(), "{path}: two children of one name");
        if let Some(Items { key, max, fixed, .. }) = context.items {
            assert!(*max > 0 && matches!(key, Kind::Text { .. } | Kind::Choice(_)), "{path}");
            for name in *fixed {
                assert!(context.below(name).is_some(), "{path}: {name} is no good key");
            }
        }
        let names: BTreeSet<&str> = context.properties.iter().map(|p| p.name).collect();
        assert_eq!(names.len(), context.properties.len(), "{path}: two properties of one name");
        for property in context.properties {
            good(&path, property);
            let Some(Condition { property: on, values }) = property.only_if else { continue };
            let of = context.property(on).unwrap_or_else(|| panic!("{path}: no property {on}"));
            for value in values {
                assert!(of.kind.parse(value).is_ok(), "{path} {}: {on}={value}", property.name);
            }
        }
        for action in context.actions {
            assert!(is_name(action.name, '_') && is_sentence(action.help), "{path}: {action:?}");
            action.parameters.iter().for_each(|parameter| good(&path, parameter));
        }
    }
}

fn good(path: &Path, property: &Property) {
    let what = format!("{path} {}", property.name);
    assert!(is_name(property.name, '_'), "{what}");
    assert!(!property.title.is_empty() && is_sentence(property.help), "{what}");
    if let Some(value) = property.default.value() {
        assert_eq!(property.kind.check(&value), Ok(()), "{what}: its default");
        assert!(property.role != Role::State, "{what}: state has no default");
    }
    if !property.example.is_empty() {
        assert!(property.kind.parse(property.example).is_ok(), "{what}: its example");
    }
    if property.default == Default::Inherited {
        let mut above = path.parent();
        let mut found = false;
        while let Some(at) = above {
            let place = ROOT.find(&at).ok();
            found |= place.is_some_and(|place| place.context.property(property.name).is_some());
            above = at.parent();
        }
        assert!(found, "{what}: nothing above has it");
    }
}

/// A word of the command line has the same meaning everywhere; only items that the server creates
/// and removes itself may have `abort` and `destroy` as actions.
#[test]
fn no_action_is_hidden_by_a_command() {
    for (path, context) in all() {
        let live = path.parent().and_then(|above| ROOT.find(&above).ok()).is_some_and(|above| {
            let items = above.context.items;
            items.is_some_and(|items| {
                items.origin == Origin::Running && std::ptr::eq(items.context, context)
            })
        });
        for action in context.actions {
            let hidden = RESERVED.contains(&action.name) && !live;
            assert!(!hidden, "{path}: {}", action.name);
        }
    }
}

#[test]
fn live_items_hold_no_settings() {
    for (path, context) in all() {
        let Some(items) = context.items.filter(|items| items.origin == Origin::Running) else {
            continue;
        };
        let settings = items.context.properties.iter().filter(|p| p.is_configured()).count();
        assert_eq!(settings, 0, "{path}: nothing would keep them");
    }
}
