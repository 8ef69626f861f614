//! The language of Filebench from outside: seeded mutations of the corpus, and the files that
//! Filebench ships, if a checkout is given.

use base::random::{Random, SeededRandom};
use lab_program::cursor::{Cursor, Done, Next};
use lab_program::program::Plan;
use lab_program::wml::read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Mutated texts.
const MUTATIONS: usize = 20_000;
/// A checkout of Filebench, for [`the_shipped_files_are_read`].
const CHECKOUT: &str = "FILEBENCH_CHECKOUT";
/// How many workload files Filebench ships (22620e6).
const SHIPPED: usize = 47;

fn texts(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("entry").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ext| ext == "f")).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().expect("name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).expect("text"))).collect()
}

fn corpus() -> Vec<(String, String)> {
    texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"))
}

/// The first calls of each thread, as if all succeeded; how many were made.
fn walk(text: &str, settings: &[String]) -> u64 {
    let program = read("walk.f", text, settings).expect("program");
    let plan = Arc::new(Plan::new(program, 1, 0, 1).expect("plan"));
    let mut calls = 0;
    for instance in plan.instances().take(40) {
        let mut cursor = Cursor::new(&plan, instance).expect("instance");
        for _ in 0..500 {
            match cursor.next_act() {
                Next::Call(_) => {
                    calls += 1;
                    cursor.done(Done::default());
                }
                Next::Wait(_) => {}
                Next::Ended { .. } => break,
            }
        }
    }
    calls
}

#[test]
fn the_corpus_runs() {
    let corpus = corpus();
    assert_eq!(corpus.len(), 4);
    for (name, text) in corpus {
        assert!(walk(&text, &[]) > 100, "{name}");
    }
}

/// Tokens of the corpus put where they do not belong, and bytes changed: an error or a program.
#[test]
fn mutated_texts_do_not_panic() {
    let corpus = corpus();
    let words: Vec<&str> =
        corpus.iter().flat_map(|(_, text)| text.split_inclusive([' ', ',', '\n'])).collect();
    let mut random = SeededRandom::new(0x776d_6c00);
    let (mut programs, mut refused) = (0, 0);
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
        match read("mutated.f", &String::from_utf8_lossy(&bytes), &[]) {
            Ok(_) => programs += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(programs > MUTATIONS / 50 && refused > MUTATIONS / 4, "{programs} {refused}");
}

#[test]
fn the_shipped_files_are_read() {
    let Some(checkout) = std::env::var_os(CHECKOUT) else {
        println!("SKIP filebench-files: {CHECKOUT} names no checkout of filebench/filebench");
        return;
    };
    let files = texts(&Path::new(&checkout).join("workloads"));
    assert_eq!(files.len(), SHIPPED);
    let mut failed = Vec::new();
    for (name, text) in &files {
        // Fewer files than the tests have time for.
        let small = |variable: &str, to: u64| {
            text.contains(&format!("set ${variable}=")).then(|| format!("${variable}={to}"))
        };
        let settings: Vec<String> =
            [small("nfiles", 2000), small("ndirs", 2000)].into_iter().flatten().collect();
        match read(name, text, &[]) {
            Err(error) => failed.push(error.to_string()),
            Ok(_) if walk(text, &settings) < 30 => failed.push(format!("{name}: hardly any calls")),
            Ok(program) => println!("{name}: {} acts", program.acts.len()),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
