//! What a Rust file imports and names, read from blanked code ([`super::scan::blank`]). It knows
//! paths and `use` trees, not types: enough for a graph of files.

/// Names of modules from the outermost inwards, perhaps with the name of an item.
pub type ModulePath = Vec<String>;

/// One name that a `use` brings in.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    /// Its path as written, groups resolved, without a trailing `self` or `*`.
    pub path: ModulePath,
    /// What the file calls it; `None` for `*`.
    pub name: Option<String>,
}

/// The imports of `code` and the rest of it; those for tests are in neither.
pub fn uses(code: &str) -> (Vec<Import>, String) {
    let (mut found, mut rest, mut from) = (Vec::new(), String::new(), 0);
    for (at, _) in code.match_indices("use ") {
        let word = at == 0 || !is_word(code.as_bytes()[at - 1]);
        if !word || at < from {
            continue;
        }
        let end = code[at..].find(';').map_or(code.len(), |n| at + n);
        if !is_for_tests(&code[..at]) {
            expand(&code[at + 4..end], &[], &mut found);
        }
        rest.push_str(&code[from..at]);
        from = end;
    }
    rest.push_str(&code[from..]);
    (found, rest)
}

/// Modules in files of their own that `code` declares for tests.
pub fn test_modules(code: &str) -> Vec<String> {
    let declared = code.match_indices("mod ").filter(|(at, _)| is_for_tests(&code[..*at]));
    let names = declared.filter_map(|(at, _)| code[at + 4..].split_once(';'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// Whether the item that begins at the end of `before` has `#[cfg(test)]`.
fn is_for_tests(before: &str) -> bool {
    let item = before.rfind([';', '{', '}']).map_or(before, |n| &before[n..]);
    item.contains("#[cfg(test)]")
}

/// Adds each name of the `use` tree `tree`, which stands below `above`.
fn expand(tree: &str, above: &[String], found: &mut Vec<Import>) {
    let (head, group) = match tree.split_once('{') {
        Some((head, rest)) => (head, rest.rsplit_once('}').map(|(group, _)| group)),
        None => (tree, None),
    };
    let (head, alias) = match head.split_once(" as ") {
        Some((head, alias)) => (head, Some(alias.trim().to_owned())),
        None => (head, None),
    };
    let mut path = above.to_vec();
    path.extend(head.split("::").map(str::trim).filter(|p| !p.is_empty()).map(str::to_owned));
    if let Some(group) = group {
        branches(group).into_iter().for_each(|branch| expand(branch, &path, found));
        return;
    }
    let glob = path.last().is_some_and(|p| p == "*");
    if glob || path.len() > 1 && path.last().is_some_and(|p| p == "self") {
        path.pop();
    }
    if let Some(last) = path.last().cloned() {
        let name = (!glob).then(|| alias.unwrap_or(last));
        found.push(Import { path, name });
    }
}

/// The parts of a group between its own commas.
fn branches(group: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = group.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.filter(|p| !p.trim().is_empty()).collect()
}

/// Paths of two names and more in `code`, as written.
pub fn paths(code: &str) -> Vec<ModulePath> {
    let bytes = code.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            at += 1;
            continue;
        }
        let mut path = Vec::new();
        loop {
            let end = bytes[at..].iter().position(|b| !is_word(*b)).map_or(bytes.len(), |n| at + n);
            path.push(code[at..end].to_owned());
            at = end;
            let more =
                code[at..].starts_with("::") && bytes.get(at + 2).is_some_and(|b| is_word(*b));
            if !more {
                break;
            }
            at += 2;
        }
        if path.len() > 1 {
            found.push(path);
        }
    }
    found
}

/// Whether `code` has an item called `name`.
pub fn defines(code: &str, name: &str) -> bool {
    let kinds = ["struct", "enum", "trait", "type", "fn", "const", "static", "mod", "union"];
    kinds.iter().any(|kind| {
        let item = format!("{kind} {name}");
        let mut there = code.match_indices(&item);
        there.any(|(at, _)| !code.as_bytes().get(at + item.len()).is_some_and(|b| is_word(*b)))
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
