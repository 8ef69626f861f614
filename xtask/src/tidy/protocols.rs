//! Knowledge of protocols: the files outside the folders of a protocol that name it, by a variant
//! of the registry or of any other enum, by a constant in capitals, or by a registry id as a
//! string. Each is a place that has to be extended by hand for a new protocol, so they are few, and
//! listed.
//!
//! The list is `xtask/protocol-places.txt`; `cargo xtask tidy --places` prints it as it is now.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Source};

/// The registry.
const REGISTRY: &str = "crates/base/src/protocol.rs";
/// The list.
const LIST: &str = "xtask/protocol-places.txt";
/// Files outside its folders that may know a protocol.
const PLACES_MAX: usize = 10;

/// Folders and files of a protocol that are not named after it.
const ALSO_OWN: [(&str, &[&str]); 8] = [
    ("http", &["web"]),
    ("nfs", &["nfs3", "nfs4", "nlm", "mount3", "rpc", "portmap"]),
    ("nfs3", &["nfs", "nlm", "mount3", "rpc", "portmap"]),
    ("nfs4", &["nfs", "rpc", "portmap"]),
    ("mount3", &["nfs3", "nfs", "rpc", "portmap"]),
    ("nlm", &["nfs", "nfs4", "rpc", "portmap"]),
    ("dsync", &["sync", "sftp"]),
    ("iscsi", &["lun", "luns", "scsi"]),
];

/// Where a name of the registry means something else: the protocol, the file, and what it is there.
const OTHER_MEANINGS: [(&str, &str, &str); 15] = [
    ("dsync", "crates/lab/program/src/wml/expand/acts.rs", "an attribute of WML"),
    ("echo", "crates/appliance/src/cmd/cli/outside.rs", "characters of a terminal"),
    ("echo", "crates/lab/src/client/smb/mod.rs", "a command of SMB"),
    ("echo", "crates/lab/src/client/smb/session.rs", "a command of SMB"),
    ("echo", "crates/serve/smb/src/compound.rs", "a command of SMB"),
    ("echo", "crates/serve/smb/src/dispatch.rs", "a command of SMB"),
    ("echo", "crates/wire/src/smb/header.rs", "a command of SMB"),
    ("echo", "schema/smb.toml", "a command of SMB"),
    ("echo", "crates/wire/src/ssh/message.rs", "whether an answer is shown as it is typed"),
    ("echo", "crates/lab/program/src/wml/parse.rs", "a command of WML"),
    ("http", "crates/control/src/api/openapi.rs", "a scheme of authentication"),
    ("http", "crates/control/src/certificates/acme.rs", "the challenge http-01"),
    ("http", "crates/control/src/certificates/wanted.rs", "the challenge http-01"),
    ("http", "crates/control/src/alerts/webhook.rs", "a URL of another server"),
    ("http", "crates/wire/src/dav/header.rs", "a URL of RFC 4918"),
];

/// A protocol of the registry, or a service that has no protocol of its name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RegistryEntry {
    /// Variants: its own and those of its URL schemes.
    variants: BTreeSet<String>,
    /// Ids and names of schemes.
    names: BTreeSet<String>,
}

/// Files that know each protocol.
pub type Mentions = BTreeMap<String, BTreeSet<String>>;

/// The protocols of the registry, by their ids, from its text.
pub fn registry(text: &str) -> BTreeMap<String, RegistryEntry> {
    let mut known = BTreeMap::<String, RegistryEntry>::new();
    let (mut variant, mut name) = ("", "");
    for line in text.lines().map(str::trim) {
        let quoted = || line.split('"').nth(1).unwrap_or_default();
        if let Some((before, row)) = line.split_once(" => ") {
            variant = before.split(' ').next().unwrap_or_default();
            if row.starts_with("service!") {
                name = "";
            }
        } else if line.starts_with("id: \"") {
            let one = known.entry(quoted().to_owned()).or_default();
            one.variants.insert(variant.to_owned());
            one.names.insert(quoted().to_owned());
        } else if line.starts_with("name: \"") {
            name = quoted();
        } else if let Some(protocol) = line.strip_prefix("protocol: Protocol::") {
            let protocol = protocol.trim_end_matches(',');
            let of = known.values_mut().find(|one| one.variants.contains(protocol));
            if let Some(one) = of.filter(|_| !name.is_empty()) {
                one.variants.insert(variant.to_owned());
                one.names.insert(name.to_owned());
            }
        } else if line.starts_with('"') && line.contains("Protocol::") {
            // The arguments of `service!`: id, title, protocol.
            let one = known.entry(quoted().to_owned()).or_default();
            one.variants.insert(variant.to_owned());
            one.names.insert(quoted().to_owned());
        }
    }
    known
}

/// The files that know each protocol.
pub fn places(sources: &[Source]) -> Mentions {
    let text = sources.iter().find(|source| source.path == REGISTRY).map(|one| one.text.as_str());
    let registry = registry(text.unwrap_or_default());
    let mut places: Mentions = registry.keys().map(|id| (id.clone(), BTreeSet::new())).collect();
    for source in sources.iter().filter(|source| is_counted(source)) {
        let found = registry.iter().filter(|(id, one)| {
            let other = OTHER_MEANINGS.iter().any(|(p, file, _)| p == id && *file == source.path);
            !other && !is_own(id, &source.path) && names(source, one)
        });
        for (id, _) in found {
            places.entry(id.clone()).or_default().insert(source.path.clone());
        }
    }
    places
}

/// Sources of the program, without benchmarks: these compare it with other servers, protocol by
/// protocol.
fn is_counted(source: &Source) -> bool {
    let program = source.path.starts_with("crates/") && source.is_rust();
    let browser = source.path.starts_with("ui/src/") && source.is_ui();
    let schema = source.path.starts_with("schema/");
    (program || browser || schema) && !source.is_test()
}

/// Whether a part of the path is the protocol's name, or begins with it.
fn is_own(id: &str, path: &str) -> bool {
    let also = ALSO_OWN.iter().find(|(one, _)| *one == id).map_or(&[][..], |(_, also)| also);
    path.split(['/', '.'])
        .any(|part| part == id || also.contains(&part) || part.starts_with(&format!("{id}_")))
}

fn names(source: &Source, known: &RegistryEntry) -> bool {
    let text = without_comments(source);
    let is_quoted = |name: &String| {
        ['"', '\'', '`'].iter().any(|mark| text.contains(&format!("{mark}{name}{mark}")))
    };
    if known.names.iter().any(is_quoted) {
        return true;
    }
    let constants = known.names.iter().map(|name| name.to_uppercase());
    let variants = known.variants.iter().map(|variant| format!("::{variant}"));
    source.is_rust() && constants.chain(variants).any(|word| has_word(&source.code, &word))
}

/// Whole lines of comments name protocols without depending on them.
fn without_comments(source: &Source) -> String {
    let is_comment = |line: &&str| ["//", "#", "*", "/*"].iter().any(|c| line.starts_with(c));
    source
        .text
        .lines()
        .map(str::trim)
        .filter(|line| !is_comment(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// `word` with nothing of a name around it, and no path behind it.
fn has_word(code: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let mut after = code[at + word.len()..].chars();
        let inside = word.starts_with("::") || !before.is_some_and(is_name);
        let (first, second) = (after.next(), after.next());
        let path = first == Some(':') && second == Some(':');
        inside && !first.is_some_and(is_name) && !path
    })
}

/// The list as it stands in the repository.
pub fn list(places: &Mentions) -> String {
    let mut text =
        "# Files outside a protocol's own folders that know it (xtask/src/tidy/protocols.rs);\n\
                    # `cargo xtask tidy --places` prints this list as it is now.\n"
            .to_owned();
    for (id, files) in places {
        text += &format!("\n{id} {}\n", files.len());
        files.iter().for_each(|file| text += &format!("  {file}\n"));
    }
    text
}

/// The list is true, and short enough.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let places = places(sources);
    let mut findings = Vec::new();
    let mut add = |what: String| {
        findings.push(Finding { path: LIST.to_owned(), line: 0, rule: "protocol-places", what });
    };
    for (id, files) in &places {
        if files.len() > PLACES_MAX {
            add(format!("{} files know {id}; {PLACES_MAX} may", files.len()));
        }
    }
    let written = sources.iter().find(|source| source.path == LIST);
    if written.is_none_or(|source| source.text != list(&places)) {
        add("the list is not what `cargo xtask tidy --places` prints".to_owned());
    }
    findings
}
