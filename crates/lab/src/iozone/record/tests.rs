//! Blocks hold the identities of their figures.

use super::*;
use crate::client::Target;
use crate::conduct::agents::{Source, lab_command};
use crate::conduct::watch::Watch;
use crate::iozone::children::Child;
use crate::iozone::flags::{BLOCKS, Settings};
use crate::iozone::run::{IozoneRequest, run};
use crate::report::{self, Figures, tests::schema::all_faults};

const SCHEMA: &str = include_str!("../../../../../docs/formats/iozone.schema.json");

fn block() -> BlockResult {
    let child = |kb: u64, ms: u64, end_ms: u64| Child {
        number: 0,
        bytes: kb << 10,
        records: kb,
        ns: ms * 1_000_000,
        end_ns: end_ms * 1_000_000,
        finished: true,
        fault: None,
        lost: false,
        wait_ns: 0,
    };
    let children = vec![child(100, 1000, 1010), child(300, 2000, 2020), child(200, 500, 505)];
    BlockResult::new(&BLOCKS[0], &Outcome { children, parent_ns: 2_100_000_000 })
}

#[test]
fn a_block_adds_up() {
    let block = block();
    assert!((block.children_kb_s - (100.0 + 150.0 + 400.0)).abs() < 1e-9);
    assert!((block.children_kb_s - 3.0 * block.avg_kb_s).abs() < 1e-9);
    assert!(block.min_kb_s <= block.avg_kb_s && block.avg_kb_s <= block.max_kb_s);
    assert!(block.parent_kb_s <= block.children_kb_s);
    assert_eq!((block.min_xfer_kb, block.first, block.last), (100.0, 2, 1));
}

#[test]
fn a_block_has_the_lines_of_iozone() {
    let mut text = String::new();
    block().text(&mut text, true, None);
    let expected = "\tChildren see throughput for  3 initial writers = ";
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    assert!(lines[0].starts_with(&words(expected)), "{text}");
    assert_eq!(lines[5], "Min xfer = 100.00 kB");
    assert!(lines[6].starts_with("Child[0] xfer count = 100.00 kB, Throughput = 100.00 kB/sec"));
    let mut text = String::new();
    block().text(&mut text, false, Some(1024.0));
    assert!(text.contains("650.00 ops/sec"), "{text}");
}

fn result() -> IozoneResult {
    let settings = Settings {
        threads: 3,
        size: 64 << 10,
        record: 4 << 10,
        tests: Vec::new(),
        no_retest: false,
        flush: true,
        close: false,
        sync: false,
        keep: false,
        no_stonewall: false,
        stride: 17,
    };
    let request = IozoneRequest {
        settings: &settings,
        target: &Target::Null,
        place: &Target::Null,
        seed: 1,
        command: vec!["plimsoll".into(), "lab".into(), "iozone".into()],
        source: &Source::Local { clients: 1, command: lab_command("agent") },
    };
    run(&request, &mut Watch::none(), &mut |_| {}).expect("a result")
}

#[test]
fn a_result_matches_its_schema_and_is_read_as_it_was_written() {
    let result = result();
    let value = serde_json::to_value(&result).expect("JSON");
    assert_eq!(all_faults(SCHEMA, &value), [""; 0]);
    assert_eq!(Figures::of_json(value).expect("figures"), Figures::of_iozone(&result));
    let files = report::iozone_files(&result).expect("files");
    let page = &files.iter().find(|(name, _)| *name == "report.html").expect("a page").1;
    assert!(page.contains("<td>mixed workload</td>") && page.contains("Limits"), "{page}");
    // Over nothing the generator is all that there is.
    let limit = result.blocks[0].watched.limit.as_ref().expect("a verdict");
    assert!(!limit.why.is_empty(), "{limit:?}");
}
