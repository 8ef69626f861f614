//! The log: what is kept, in which order, how much, and at which level.

use super::*;

fn of(service: &'static str, after: u64, limit: usize) -> Vec<String> {
    let wanted = LogQuery { after, service: Some(service), level: Level::Debug, limit };
    lines(&wanted).into_iter().map(|line| line.text).collect()
}

#[test]
fn lines_are_kept_in_order_and_the_oldest_go() {
    // The log is the process's: other tests may write lines, but not as these services.
    let before = newest();
    crate::info!("log-test", "{} of {}", 1, 2);
    keep("log-other", Level::Info, "something else");
    keep("log-test", Level::Info, "two");
    assert_eq!(of("log-test", before, 9), ["1 of 2", "two"]);
    assert_eq!(of("log-test", before, 1), ["two"], "the newest");
    let long = "x".repeat(LOG_LINE_MAX + 1);
    for _ in 0..LOG_LINES_MAX {
        keep("log-test", Level::Info, &long);
    }
    let all = lines(&LogQuery::newest(usize::MAX));
    assert_eq!(all.len(), LOG_LINES_MAX);
    assert!(all.windows(2).all(|pair| pair[0].number < pair[1].number));
    assert_eq!(all[9].text.len(), LOG_LINE_MAX);
}

#[test]
fn a_service_logs_what_its_level_admits() {
    let before = newest();
    let log_all = || {
        crate::error!("level-test", "error");
        crate::warning!("level-test", "warning");
        crate::info!("level-test", "info");
        crate::debug!("level-test", "debug");
    };
    log_all();
    assert_eq!(of("level-test", before, 9), ["error", "warning", "info"], "without a level");
    for (at, level) in Level::ALL.into_iter().enumerate() {
        let before = newest();
        set_level(Some("level-test"), level);
        log_all();
        let messages = ["error", "warning", "info", "debug"];
        assert_eq!(of("level-test", before, 9), messages[..=at], "{}", level.name());
        assert_eq!(Level::named(level.name()), Some(level));
    }
    let fits = |level| {
        lines(&LogQuery { after: before, service: Some("level-test"), level, limit: 99 }).len()
    };
    assert!(fits(Level::Error) > 0 && fits(Level::Error) < fits(Level::Debug));
}
