//! The repository's own commands: `cargo xtask tidy` (rooms, sizes, forbidden words), `cargo xtask
//! deny` (licences, bans, sources), `cargo xtask tally` (adds up test output, compares skips),
//! `cargo xtask conformance` (compares a foreign suite's results with the list of known ones),
//! `cargo xtask leftovers` (removes what killed tests have left) and `cargo xtask watch` (ends
//! tests that hang).

mod conformance;
mod deny;
mod leftovers;
mod metadata;
mod tally;
mod tidy;
mod watch;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask tidy [--places|--vocabulary|--comments [PART]|--circles [FOLDER]] |
       deny | tally LOG[=GOLDEN]… | conformance SUITE RESULTS [PEER] | leftovers |
       watch COMMAND…
  tidy   import table, sizes, headers, forbidden words per room (ARCHITECTURE.md, STYLE.md)
         --places prints the files outside its folders that know each protocol
         --vocabulary prints the counts of avoided phrases and identifiers
         --comments prints the comments and names of functions with avoided phrases
         --circles prints the files that import each other, here or in another checkout
  deny   licences, banned crates and sources against deny.toml, without a network
  tally  adds up the test results in each LOG and compares its SKIP lines with GOLDEN
  conformance
         compares RESULTS of a foreign suite with tests/conformance/SUITE.toml, and with PEER, the
         results of another server
  leftovers
         removes folders, mounts and loop devices of tests that were killed
  watch  runs COMMAND, which runs nextest, and ends tests that make no progress or that use
         more processor time than any test needs [--idle SECONDS] [--busy SECONDS]";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy::run(root),
        ["tidy", "--places"] => tidy::places(root),
        ["tidy", "--vocabulary"] => tidy::vocabulary(root),
        ["tidy", "--comments"] => tidy::avoided(root, ""),
        ["tidy", "--comments", part] => tidy::avoided(root, part),
        ["tidy", "--circles"] => tidy::circles(root),
        ["tidy", "--circles", folder] => tidy::circles(Path::new(folder)),
        ["deny"] => deny::run(root),
        ["leftovers"] => leftovers::run(),
        ["watch", command @ ..] => match watch::run(command) {
            Ok(0) => Ok(()),
            Ok(code) => return ExitCode::from(u8::try_from(code).unwrap_or(1)),
            Err(why) => Err(why),
        },
        ["conformance", suite, results] => conformance::run(root, suite, (results, None)),
        ["conformance", suite, results, peer] => {
            conformance::run(root, suite, (results, Some(peer)))
        }
        ["tally", logs @ ..] if !logs.is_empty() => tally::run(logs),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
