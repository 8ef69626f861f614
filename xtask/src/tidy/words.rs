//! Words that a room may not use, each with the invariant behind it.

use super::{Finding, Source};

/// Where a rule holds.
enum Where {
    /// Below one of these folders, tests excepted.
    In(&'static [&'static str]),
    /// Everywhere but below these folders, tests excepted.
    NotIn(&'static [&'static str]),
    /// Everywhere, tests included.
    All,
}

/// A rule: words, where they are forbidden, and why.
struct Rule {
    name: &'static str,
    place: Where,
    words: &'static [&'static str],
    /// Whether comments and literals count as well.
    raw: bool,
    why: &'static str,
}

/// The rules. Words that this file itself must not contain are put together by `concat!`.
const RULES: &[Rule] = &[
    Rule {
        name: "wire-io",
        place: Where::In(&["crates/wire/src"]),
        words: &["std::net", "std::fs", "std::io", "std::time", "std::thread", "tokio", "unsafe {"],
        raw: false,
        why: "wire does no I/O, reads no clock and holds no unsafe code",
    },
    Rule {
        name: "clock",
        // The lab's agents and the commands measure people's time, too, but through base.
        place: Where::NotIn(&["crates/base/src", "xtask", "ui"]),
        words: &["Instant::now", "SystemTime::now", "UNIX_EPOCH"],
        raw: false,
        why: "time comes in through base::clock, so that a test can hand in its own",
    },
    Rule {
        name: "randomness",
        place: Where::NotIn(&["crates/base/src"]),
        words: &["getrandom(", "thread_rng", "rand::random"],
        raw: false,
        why: "randomness comes in through base::random, so that a seed repeats a run",
    },
    Rule {
        name: "peer-panic",
        place: Where::In(&["crates/wire/src", "crates/serve"]),
        words: &[".unwrap()", ".expect(", "panic!(", "unreachable!(", "unimplemented!("],
        raw: false,
        why: "data from a peer never panics",
    },
    Rule {
        name: "vfs-wire",
        place: Where::In(&["crates/vfs/src"]),
        words: &["std::net", "tokio"],
        raw: false,
        why: "vfs knows nothing of wire formats and connections",
    },
    Rule {
        name: "attempt",
        place: Where::NotIn(&ATTEMPTS),
        words: &["engine.attempt(", "engine.attempt_async("],
        raw: false,
        why: "steps of operations are tried in one file for each kind of connection (ATTEMPTS)",
    },
    Rule {
        name: "log",
        place: Where::In(&[
            "crates/serve",
            "crates/wire/src",
            "crates/vfs/src",
            "crates/probe/src",
        ]),
        words: &["println!(", "eprintln!(", "print!(", "eprint!("],
        raw: false,
        why: "nothing on the request path logs per operation",
    },
    Rule {
        name: "fetch",
        place: Where::In(&["ui/src"]),
        words: &["fetch(", "XMLHttpRequest"],
        raw: false,
        why: "the interface speaks to the API in ui/src/api only",
    },
    Rule {
        name: "marker",
        place: Where::All,
        words: &[
            concat!("TO", "DO"),
            concat!("FIX", "ME"),
            concat!("XX", "X:"),
            concat!("HA", "CK:"),
            concat!("dbg", "!("),
            concat!("to", "do!("),
        ],
        raw: true,
        why: "what is to be done is an issue, not a marker",
    },
    Rule {
        name: "machine-path",
        place: Where::All,
        words: &[concat!("\"/wo", "rk/"), concat!(" /wo", "rk/"), concat!("/home/", "user")],
        raw: true,
        why: "nothing here depends on one machine's folders",
    },
];

/// Where the steps of operations are tried: the engine, one file for each kind of connection, and
/// that of operations on files, which FTP, SFTP, HTTP and SMB share.
const ATTEMPTS: [&str; 12] = [
    "crates/serve/engine/src/exec/engine.rs",
    "crates/serve/engine/src/transport/small.rs",
    "crates/serve/nfs/src/rpc/conn.rs",
    "crates/serve/nfs/src/rpc/rdma/conn.rs",
    "crates/serve/smb/src/compound.rs",
    "crates/serve/iscsi/src/data_out.rs",
    "crates/serve/src/echo/conn.rs",
    "crates/serve/files/src/core.rs",
    "crates/serve/ftp/src/dispatch.rs",
    "crates/serve/sftp/src/dispatch.rs",
    "crates/serve/sftp/src/dsync/tree.rs",
    "crates/serve/web/src/dispatch.rs",
];

/// The crate below `crates/serve` that has the transports of all protocols.
const SHARED: &str = "engine";

/// Folders of the crate `nfs`: ONC RPC and the programs on it.
const RPC_PROGRAMS: [&str; 5] = ["rpc", "nfs3", "nfs4", "nlm", "portmap"];

/// Checks one file.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let own = source.is_rust() || source.is_ui();
    for rule in RULES.iter().filter(|r| applies(r, source, own)) {
        let text = if rule.raw { &source.text } else { &source.code };
        for word in rule.words {
            for (i, _) in text.lines().enumerate().filter(|(_, line)| contains(line, word)) {
                findings.push(Finding {
                    path: source.path.clone(),
                    line: i + 1,
                    rule: rule.name,
                    what: format!("`{}`: {}", word.trim(), rule.why),
                });
            }
        }
    }
    findings.extend(siblings(source));
    findings.extend(dead(source));
    findings
}

/// Whether `line` has `word` not as the tail of a longer word (`prefetch(` is not `fetch(`).
fn contains(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let first_is_word = word.starts_with(|c: char| c.is_ascii_alphanumeric());
        !(first_is_word && before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_'))
    })
}

fn applies(rule: &Rule, source: &Source, own: bool) -> bool {
    let below = |folders: &[&str]| folders.iter().any(|f| source.path.starts_with(f));
    match &rule.place {
        Where::In(["ui/src"]) => {
            source.is_ui()
                && source.path.starts_with("ui/src")
                && !source.path.starts_with("ui/src/api")
        }
        Where::In(folders) => source.is_rust() && !source.is_test() && below(folders),
        Where::NotIn(folders) => source.is_rust() && !source.is_test() && !below(folders),
        Where::All => own || [".md", ".toml", ".sh"].iter().any(|e| source.path.ends_with(e)),
    }
}

/// Which protocol of `crates/serve` a file belongs to, and its path below that protocol's folder.
fn protocol_of(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("crates/serve/")?;
    if let Some(facade) = rest.strip_prefix("src/") {
        return facade.split_once('/');
    }
    let (name, file) = rest.split_once("/src/")?;
    match file.split_once('/') {
        Some((program, file)) if RPC_PROGRAMS.contains(&program) => Some((program, file)),
        _ => Some((name, file)),
    }
}

/// Only `conn.rs` and `mod.rs` of a protocol do I/O, and no RPC program imports another. The table
/// of crates holds that crates of protocols do not import each other.
fn siblings(source: &Source) -> Vec<Finding> {
    let Some((folder, file)) = protocol_of(&source.path) else { return Vec::new() };
    if folder == SHARED || source.is_test() {
        return Vec::new();
    }
    let io = ["tokio::net", "TcpStream", "libc::send", "libc::recv"];
    let may_io = ["conn.rs", "mod.rs", "lib.rs"].contains(&file)
        || file.starts_with("conn/")
        || file.ends_with("/conn.rs");
    let mut findings = Vec::new();
    let mut add = |line: usize, rule, what| {
        findings.push(Finding { path: source.path.clone(), line, rule, what });
    };
    for (i, line) in source.code.lines().enumerate() {
        for (at, _) in line.match_indices("crate::") {
            let tail = &line[at + 7..];
            let to: String =
                tail.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let program = to != "rpc" && RPC_PROGRAMS.contains(&to.as_str());
            if program && to != folder && RPC_PROGRAMS.contains(&folder) {
                add(i + 1, "sibling", format!("{folder} imports its sibling {to}"));
            }
        }
        if !may_io && io.iter().any(|w| line.contains(w)) {
            add(i + 1, "conn-io", "only conn.rs does I/O".to_owned());
        }
    }
    findings
}

/// Left-over files.
fn dead(source: &Source) -> Vec<Finding> {
    let over = [".orig", ".old", ".bak", ".rej", "~"].iter().any(|e| source.path.ends_with(e));
    let what = "a left-over file".to_owned();
    if over {
        vec![Finding { path: source.path.clone(), line: 0, rule: "dead", what }]
    } else {
        Vec::new()
    }
}
