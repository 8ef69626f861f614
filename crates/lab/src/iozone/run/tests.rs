//! Runs of all tests on a directory.

use super::*;
use crate::conduct::RunEvent;
use crate::conduct::agents::lab_command;
use crate::iozone::children::Child;
use std::path::Path;

fn settings() -> Settings {
    Settings {
        threads: 2,
        size: 64 << 10,
        record: 16 << 10,
        tests: vec![0],
        no_retest: false,
        flush: false,
        close: false,
        sync: false,
        keep: false,
        no_stonewall: true,
        stride: 17,
    }
}

#[test]
fn files_that_cannot_be_removed_degrade_the_result() {
    let name = format!("plimsoll-test-iozone-run-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let (place, moved) = (dir.join("data"), dir.join("moved"));
    std::fs::create_dir_all(&place).expect("a directory");
    let target = Target::Path(place.clone());
    let request = IozoneRequest {
        settings: &settings(),
        target: &target,
        place: &target,
        seed: 1,
        command: Vec::new(),
        source: &Source::Local { clients: 1, command: lab_command("agent") },
    };
    // The children have opened the directory; what removes their files finds it by its name.
    let replace = |path: &Path| {
        std::fs::rename(path, &moved).expect("moved");
        std::fs::write(path, "").expect("a file");
    };
    let result = run(&request, &mut Watch::none(), &mut |event| {
        if matches!(event, RunEvent::Running) {
            replace(&place);
        }
    });
    let result = result.expect("a result");
    std::fs::remove_dir_all(&dir).expect("removed");
    let titles: Vec<&str> = result.blocks.iter().map(|block| block.title.as_str()).collect();
    assert_eq!(titles, ["initial writers", "rewriters"]);
    assert!(result.blocks.iter().all(|block| block.min_xfer_kb == 64.0), "{:?}", result.blocks);
    assert_eq!(result.failed, None);
    let [left] = result.degraded.as_slice() else { panic!("{:?}", result.degraded) };
    assert!(left.starts_with("the files were not removed: "), "{left}");
}

#[test]
fn what_the_mixed_test_moves_is_read_and_written() {
    let child = |number: u64| Child { number, bytes: 1 << number, ..Child::default() };
    let outcome = Outcome { children: (0..5).map(child).collect(), parent_ns: 1 };
    assert_eq!(moved(Test::Mixed, &outcome), [0b10101, 0b01010]);
    assert_eq!(moved(Test::RandomRead, &outcome), [0b11111, 0]);
    assert_eq!(moved(Test::Rewrite, &outcome), [0, 0b11111]);
}
