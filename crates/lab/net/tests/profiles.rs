//! Profiles from outside: the own corpus, seeded mutations of it, and the profiles that uperf
//! ships, if a checkout is given.

use base::random::{Random, SeededRandom};
use lab_net::read::{Variables, read};
use std::path::{Path, PathBuf};

/// Mutated texts.
const MUTATIONS: usize = 20_000;
/// A checkout of uperf, for [`the_shipped_profiles_are_read`].
const CHECKOUT: &str = "UPERF_CHECKOUT";

fn texts(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("entry").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ext| ext == "xml")).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().expect("name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).expect("text"))).collect()
}

fn corpus() -> Vec<(String, String)> {
    texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"))
}

fn variables() -> Variables {
    let set = ["threads=4", "nthr=4", "iter=10", "conn=4", "nth=4", "dur=1s", "proto=tcp"];
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Variables { local_hosts: true, ..Variables::of(&set).expect("variables") }
}

#[test]
fn the_corpus_is_read() {
    let corpus = corpus();
    assert_eq!(corpus.len(), 3);
    for (name, text) in corpus {
        let profile = read(&name, &text, &variables()).unwrap_or_else(|e| panic!("{e}"));
        assert!(profile.flowops().count() >= 3, "{name}");
    }
}

/// Words of the corpus put where they do not belong, and bytes changed: a fault or a profile.
#[test]
fn mutated_texts_do_not_panic() {
    let (corpus, variables) = (corpus(), variables());
    let words: Vec<&str> =
        corpus.iter().flat_map(|(_, text)| text.split_inclusive([' ', '=', '>', '\n'])).collect();
    let mut random = SeededRandom::new(0x786d_6c00);
    let (mut profiles, mut refused) = (0, 0);
    for _ in 0..MUTATIONS {
        let (_, text) = &corpus[random.below(corpus.len() as u64) as usize];
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(3) {
            bytes.extend_from_slice(b"\n");
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(5) {
                0 => bytes[at] = random.next_u64() as u8,
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at.max(1)),
                3 => {
                    let end = (at + random.below(40) as usize).min(bytes.len());
                    bytes.extend_from_within(at..end);
                }
                _ => {
                    let word = words[random.below(words.len() as u64) as usize];
                    bytes.splice(at..at, word.bytes());
                }
            }
        }
        match read("mutated.xml", &String::from_utf8_lossy(&bytes), &variables) {
            Ok(_) => profiles += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(profiles > MUTATIONS / 50 && refused > MUTATIONS / 4, "{profiles} {refused}");
}

/// The files of `workloads` that are refused.
const REFUSED: [&str; 7] = [
    "oraclerac.xml",
    "rdstest.xml",
    "sctp-over-udp.xml",
    "sctp.xml",
    "sctp_flowop_test.xml",
    "ssl.xml",
    "vsock.xml",
];

#[test]
fn the_shipped_profiles_are_read() {
    let Some(checkout) = std::env::var_os(CHECKOUT) else {
        println!("SKIP uperf-profiles: {CHECKOUT} names no checkout of uperf/uperf");
        return;
    };
    let (checkout, variables) = (Path::new(&checkout), variables());
    let files = texts(&checkout.join("workloads"));
    assert_eq!(files.len(), 24);
    let mut refused = Vec::new();
    for (name, text) in &files {
        match read(name, text, &variables) {
            Ok(profile) => println!("{name}: {} threads, {:?}", profile.threads(), profile.notes),
            Err(error) => {
                println!("{error}");
                refused.push((name.as_str(), error));
            }
        }
    }
    let names: Vec<&str> = refused.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, REFUSED);
    for (name, error) in &refused {
        let line = error.line as usize;
        let text = files.iter().find(|(n, _)| n == name).expect("text").1.lines().nth(line - 1);
        let flowop = error.flowop.as_deref().expect("flowop");
        assert!(text.expect("line").contains(&format!("\"{flowop}\"")), "{error}");
        assert!(error.what.contains("is not supported"), "{error}");
    }
    let whole = |path: &str| std::fs::read_to_string(checkout.join(path)).expect(path);
    let error = read("parse_err.xml", &whole("tests/parse_err.xml"), &variables);
    assert_eq!(error.expect_err("goup").line, 3);
    let profile = read("throughput", &whole("manual/throughput.xml"), &variables).expect("profile");
    assert_eq!((profile.threads(), profile.hosts().len()), (16, 1));
    let specweb = read("s", &whole("workloads/SpecWebSupport.xml"), &variables).expect("profile");
    let threads: Vec<u32> = specweb.groups.iter().map(|group| group.threads).collect();
    assert_eq!((threads, specweb.hosts().len()), (vec![750; 4], 4));
}
