//! The language of Filebench from outside: seeded mutations of the corpus, and the files that
//! Filebench ships, if a checkout is given.

mod mutations;

use lab_program::cursor::{Cursor, Done, Next};
use lab_program::program::Plan;
use lab_program::wml::read;
use mutations::{read_mutations, texts};
use std::path::Path;
use std::sync::Arc;

/// A checkout of Filebench, for [`the_shipped_files_are_read`].
const CHECKOUT: &str = "FILEBENCH_CHECKOUT";
/// How many workload files Filebench ships (22620e6).
const SHIPPED: usize = 47;

fn corpus() -> Vec<(String, String)> {
    texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"), "f")
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
    let ends = [' ', ',', '\n'];
    read_mutations(&corpus(), &ends, 0x776d_6c00, |text| read("mutated.f", text, &[]).is_ok());
}

#[test]
fn the_shipped_files_are_read() {
    let Some(checkout) = std::env::var_os(CHECKOUT) else {
        println!("SKIP filebench-files: {CHECKOUT} names no checkout of filebench/filebench");
        return;
    };
    let files = texts(&Path::new(&checkout).join("workloads"), "f");
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
