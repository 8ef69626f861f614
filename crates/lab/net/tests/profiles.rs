//! Profiles from outside: the own corpus, seeded mutations of it, and the profiles that uperf
//! ships, if a checkout is given.

#[path = "../../program/tests/mutations/mod.rs"]
mod mutations;

use lab_net::read::{Variables, read};
use mutations::{read_mutations, texts};
use std::path::Path;

/// A checkout of uperf, for [`the_shipped_profiles_are_read`].
const CHECKOUT: &str = "UPERF_CHECKOUT";

fn corpus() -> Vec<(String, String)> {
    texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"), "xml")
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
    let ends = [' ', '=', '>', '\n'];
    read_mutations(&corpus, &ends, 0x786d_6c00, |text| {
        read("mutated.xml", text, &variables).is_ok()
    });
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
    let files = texts(&checkout.join("workloads"), "xml");
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
