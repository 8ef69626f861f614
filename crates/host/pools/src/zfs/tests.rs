//! Recorded outputs of all versions, and mutations of them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use base::random::{Random, SeededRandom};

use super::{Pool, json, table, text};

/// Mutated outputs of the gate; `PLIMSOLL_ZFS_OUTPUTS` is their number in the long test.
const SMOKE: u64 = 2_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zfs")
}

/// Recorded outputs by name, without the comment at their head.
fn recorded() -> Vec<(String, String)> {
    let entries = fs::read_dir(folder()).expect("listed").map(|entry| entry.expect("read").path());
    let mut all: Vec<(String, String)> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "txt" || end == "json"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("read");
            assert!(text.starts_with("# zpool"), "{} has no origin", path.display());
            let body: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            (path.file_name().expect("a name").to_string_lossy().into_owned(), body.join("\n"))
        })
        .collect();
    all.sort();
    all
}

fn parse(name: &str, body: &str) -> Vec<Pool> {
    if name.ends_with(".json") {
        json::pools(body.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"))
    } else {
        text::pools(body)
    }
}

/// Pools in lines.
fn render(pools: &[Pool]) -> String {
    let mut out = String::new();
    for pool in pools {
        let Pool { name, guid, health, status, errors, scan, leaves } = pool;
        let _ = writeln!(out, "pool {name}, {}, guid {guid:?}, {errors} errors", health.name());
        let _ = writeln!(out, "  status: {status}");
        let _ = writeln!(out, "  {scan:?}");
        for leaf in leaves {
            let _ = writeln!(
                out,
                "  {} {:?} {} {} {}/{}/{} {:?} was {:?}",
                leaf.role.name(),
                leaf.groups,
                leaf.name,
                leaf.health.name(),
                leaf.read,
                leaf.write,
                leaf.checksum,
                leaf.note,
                leaf.was
            );
        }
    }
    out
}

/// A difference is a change of the parsers: with `UPDATE_GOLDEN=1` the file follows them.
#[test]
fn recorded_outputs_of_all_versions() {
    let all = recorded();
    assert!(all.len() >= 12, "{}", all.len());
    let out: String = all
        .iter()
        .map(|(name, body)| format!("== {name}\n{}", render(&parse(name, body))))
        .collect();
    let golden = folder().join("parsed");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &out).expect("written");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    for (line, expected) in out.lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(out.lines().count(), expected.lines().count());
}

/// Changes some bytes of an output: replaces, removes, repeats and cuts.
fn mutate(bytes: &mut Vec<u8>, random: &mut impl Random) {
    const TOKENS: [&[u8]; 10] = [
        b"\t",
        b"\n",
        b"  ",
        b"pool: ",
        b"config:",
        b"99999999999999999999",
        b"% done, ",
        b"was",
        b"\"vdevs\": {",
        b"mirror-18446744073709551615",
    ];
    for _ in 0..1 + random.next_u64() % 6 {
        let length = bytes.len().max(1) as u64;
        let at = ((random.next_u64() % length) as usize).min(bytes.len());
        let to = (at + (random.next_u64() % 64) as usize).min(bytes.len());
        match random.next_u64() % 6 {
            0 if at < bytes.len() => bytes[at] = random.next_u64() as u8,
            1 => drop(bytes.drain(at..to)),
            2 => {
                let part = bytes[at..to].to_vec();
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(at),
            _ => {
                let token = TOKENS[(random.next_u64() % TOKENS.len() as u64) as usize];
                bytes.splice(at..at, token.iter().copied());
            }
        }
    }
}

#[test]
fn mutated_outputs_cause_no_panic() {
    let count = std::env::var("PLIMSOLL_ZFS_OUTPUTS").ok();
    let count = count.map_or(SMOKE, |count| count.parse().expect("a number"));
    let all = recorded();
    let mut random = SeededRandom::new(41);
    let mut parsed = 0;
    for round in 0..count {
        let (_, body) = &all[(random.next_u64() % all.len() as u64) as usize];
        let mut bytes = body.clone().into_bytes();
        mutate(&mut bytes, &mut random);
        let lossy = String::from_utf8_lossy(&bytes);
        let pools = text::pools(&lossy);
        let _ = table::properties(&lossy);
        let of_json = json::pools(&bytes).unwrap_or_default();
        for pool in pools.iter().chain(&of_json) {
            assert!(pool.leaves.len() <= super::LEAVES_MAX, "round {round}");
            parsed += usize::from(!pool.leaves.is_empty());
        }
    }
    // Most mutations leave a pool with devices: otherwise they would test nothing.
    assert!(parsed as u64 > count / 3, "{parsed} of {count}");
}

#[test]
fn a_pool_that_is_named_as_a_heading() {
    let status = "  pool: logs\n state: ONLINE\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n\tlogs \
                  ONLINE 0 0 0\n\t  sda ONLINE 0 0 0\n\tlogs\n\t  sdb ONLINE 0 0 0\n";
    let pools = text::pools(status);
    let roles: Vec<_> =
        pools[0].leaves.iter().map(|leaf| (leaf.role.name(), leaf.name.as_str())).collect();
    assert_eq!(roles, [("data", "sda"), ("log", "sdb")]);
}
