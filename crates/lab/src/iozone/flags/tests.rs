//! What options state.

use super::*;

fn settings(tests: &[u8]) -> Settings {
    Settings {
        threads: 4,
        size: 1 << 20,
        record: 1 << 16,
        tests: tests.to_vec(),
        no_retest: false,
        flush: false,
        close: false,
        sync: false,
        keep: false,
        no_stonewall: false,
        stride: STRIDE,
    }
}

fn titles(settings: &Settings) -> Vec<&'static str> {
    settings.blocks().iter().map(|block| block.title).collect()
}

#[test]
fn sizes_are_kilobytes_without_a_unit() {
    for (text, bytes) in [("64", 65536), ("64k", 65536), ("2M", 2 << 20), ("3g", 3 << 30)] {
        assert_eq!(size(text), Ok(bytes), "{text}");
    }
    for text in ["", "k", "-1", "1.5m", "99999999999999999g"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn tests_are_blocks_in_the_order_of_iozone() {
    assert_eq!(settings(&[]).blocks().len(), 13);
    assert_eq!(
        titles(&settings(&[2, 0])),
        ["initial writers", "rewriters", "random readers", "random writers"]
    );
    let only = Settings { no_retest: true, ..settings(&[0, 1]) };
    assert_eq!(titles(&only), ["initial writers", "readers"]);
    assert!(settings(&[1]).needs_files() && !settings(&[0, 1]).needs_files());
}

#[test]
fn what_does_not_fit_is_refused() {
    assert_eq!(settings(&[0]).check(), Ok(()));
    let wrong = [
        Settings { threads: 0, ..settings(&[]) },
        Settings { record: 3000, ..settings(&[]) },
        Settings { record: 128 << 20, size: 128 << 20, ..settings(&[]) },
        Settings { size: 4096, ..settings(&[]) },
        Settings { stride: 0, ..settings(&[]) },
        settings(&[4]),
        settings(&[13]),
    ];
    for settings in wrong {
        assert!(settings.check().is_err(), "{settings:?}");
    }
}
