//! Alerts by a table of seconds, and their sentences.

use std::collections::BTreeMap;

use base::node::Value;

use super::*;

const TIMING: Timing = Timing { lasting: 3, clear: 2, repeat: 0 };

/// The results of a machine for seconds from 100 on: `+` met, `-` not met, `?` no data, `o` met
/// outside of its hours. `F` fired, `A` again, `C` cleared.
fn play(timing: Timing, seconds: &str) -> String {
    let mut machine = Machine::default();
    let step = |(at, mark): (usize, char)| {
        let met = match mark {
            '+' | 'o' => Some(true),
            '-' => Some(false),
            _ => None,
        };
        let reading = Reading { second: 100 + at as u64, met, open: mark != 'o' };
        match machine.step(timing, reading) {
            None => '.',
            Some(Happening::Fired) => 'F',
            Some(Happening::Again) => 'A',
            Some(Happening::Cleared) => 'C',
        }
    };
    seconds.chars().enumerate().map(step).collect()
}

#[test]
fn it_fires_once_for_each_crossing() {
    let cases = [
        ("--------", "........"),
        ("++-++-++", "........"),
        ("+++++++", "..F...."),
        ("++++-++++", "..F......"),
        ("+++--+++", "..F.C..F"),
        ("+++--++-+++--", "..F.C.....F.C"),
    ];
    for (seconds, told) in cases {
        assert_eq!(play(TIMING, seconds), told, "{seconds}");
    }
}

#[test]
fn seconds_without_data_change_nothing_until_they_are_many() {
    assert_eq!(play(TIMING, "++?+"), "...F");
    assert_eq!(play(TIMING, "+++-??-"), "..F...C");
    let gap = "?".repeat(base::limits::ALERT_GAP_MAX_S as usize);
    let quiet = ".".repeat(gap.len());
    assert_eq!(play(TIMING, &format!("++{gap}+++")), format!("..{quiet}..F"));
}

#[test]
fn outside_of_its_hours_nothing_builds_up_but_what_fired_clears() {
    assert_eq!(play(TIMING, "oooo+++"), "......F");
    assert_eq!(play(TIMING, "++o+++"), ".....F");
    assert_eq!(play(TIMING, "+++ooo--"), "..F....C");
    let repeat = Timing { repeat: 2, ..TIMING };
    assert_eq!(play(repeat, "+++oooo+"), "..F....A", "and is not repeated");
}

#[test]
fn what_lasts_is_repeated_as_often_as_wanted() {
    let repeat = Timing { repeat: 4, ..TIMING };
    assert_eq!(play(repeat, "+++++++++++--"), "..F...A...A.C");
}

#[test]
fn a_clock_that_was_set_back_starts_again() {
    let mut machine = Machine::default();
    let mut at = |second| machine.step(TIMING, Reading { second, met: Some(true), open: true });
    assert_eq!(
        [at(100), at(101), at(50), at(51), at(52)],
        [None, None, None, None, Some(Happening::Fired)]
    );
    // Repetitions do not wait until the clock catches up.
    let timing = Timing { repeat: 2, ..TIMING };
    let mut at = |second| machine.step(timing, Reading { second, met: Some(true), open: true });
    assert_eq!([at(20), at(21), at(22)], [None, None, Some(Happening::Again)]);
}

#[test]
fn it_reports_since_when() {
    let mut machine = Machine::default();
    for second in 100..102 {
        machine.step(TIMING, Reading { second, met: Some(true), open: true });
    }
    assert_eq!((machine.waiting_since(), machine.firing_since()), (Some(100), None));
    machine.step(TIMING, Reading { second: 102, met: Some(true), open: true });
    assert_eq!((machine.waiting_since(), machine.firing_since()), (None, Some(102)));
}

/// An alert of these properties, the rest as declared.
fn rule(set: &[(&str, Value)]) -> Result<Rule, Wrong> {
    let set: BTreeMap<&str, Value> = set.iter().cloned().collect();
    let context = node::ALERTS.items.expect("alerts").context;
    Rule::read(&|name| {
        let declared = context.property(name).expect("a declared property");
        set.get(name).cloned().or(declared.default.value())
    })
}

fn reads() -> Vec<(&'static str, Value)> {
    vec![("statistic", Value::text("nfs3.ops[op=read]")), ("limit", Value::Integer(10_000))]
}

#[test]
fn an_alert_reads_as_a_sentence() {
    let mut set = reads();
    let sentence = |set: &[(&'static str, Value)]| rule(set).expect("a rule").sentence();
    assert_eq!(
        sentence(&set),
        "When NFSv3 operations per second of type read is above 10\u{a0}000 ops/s for \
         30 s, log it."
    );
    set.extend([
        ("from", Value::text("08:00")),
        ("until", Value::text("18:00")),
        ("mail", Value::texts(["ops@example.org"])),
        ("syslog", Value::text("udp://10.0.0.5")),
        ("repeat", Value::Integer(3_600)),
    ]);
    assert_eq!(
        sentence(&set),
        "When NFSv3 operations per second of type read is above 10\u{a0}000 ops/s for \
         30 s, every day 08:00–18:00, mail to ops@example.org and send syslog to udp://10.0.0.5, \
         every 1 h while firing."
    );
    let any = [
        ("statistic", Value::text("nfs.ops[client]")),
        ("limit", Value::Integer(500)),
        ("for", Value::Integer(1)),
        ("days", Value::text("weekends")),
    ];
    assert_eq!(
        sentence(&any),
        "When NFS operations per second of any one client is above 500 ops/s, on \
         weekends, log it."
    );
    let event = [("when", Value::text("store")), ("for", Value::Integer(300))];
    assert_eq!(sentence(&event), "When statistics cannot be stored for 5 min, log it.");
}

#[test]
fn an_invalid_rule_is_refused_at_its_property() {
    let with = |name: &'static str, value: Value| {
        let mut set = reads();
        set.retain(|(known, _)| *known != name);
        set.push((name, value));
        rule(&set).expect_err("a refusal").property
    };
    assert_eq!(with("statistic", Value::text("")), "statistic");
    assert_eq!(with("statistic", Value::text("nfs3.nothing")), "statistic");
    assert_eq!(with("statistic", Value::text("nfs3.ops[latency]")), "statistic");
    assert_eq!(with("from", Value::text("8 o'clock")), "from");
    assert_eq!(with("until", Value::text("25:00")), "until");
    assert_eq!(with("syslog", Value::text("http://10.0.0.5")), "syslog");
    assert_eq!(rule(&reads()[..1]).expect_err("no limit").property, "limit");
    let below = [
        ("statistic", Value::text("nfs3.ops[client]")),
        ("condition", Value::text("below")),
        ("limit", Value::Integer(1)),
    ];
    assert_eq!(rule(&below).expect_err("below of any").property, "statistic");
}

#[test]
fn hours_may_reach_over_midnight() {
    let hours = |from, until, days| Hours { days, from, until };
    let at = |weekday, hour: u16| Local { weekday, minute: hour * 60 };
    let night = hours(22 * 60, 6 * 60, Days::All);
    assert!(night.contains(at(0, 23)) && night.contains(at(0, 5)));
    assert!(!night.contains(at(0, 6)) && !night.contains(at(0, 12)));
    let office = hours(8 * 60, 18 * 60, Days::Weekdays);
    assert!(office.contains(at(4, 8)) && !office.contains(at(4, 18)) && !office.contains(at(5, 9)));
    assert!(hours(0, 24 * 60, Days::All).contains(at(6, 23)));
    assert!(hours(0, 0, Days::Weekends).contains(at(6, 0)));
}

#[test]
fn places_for_syslog() {
    let parsed = |text| Syslog::parse(text);
    assert_eq!(parsed("udp://log.example.org"), Some(Syslog::Udp("log.example.org".into(), 514)));
    assert_eq!(parsed("tcp://[fd00::7]:601"), Some(Syslog::Tcp("fd00::7".into(), 601)));
    assert_eq!(parsed("unix:/dev/log"), Some(Syslog::Unix("/dev/log".into())));
    for bad in ["10.0.0.5", "udp://", "udp://a b", "unix:log", "tcp://x:port"] {
        assert_eq!(parsed(bad), None, "{bad}");
    }
}

#[test]
fn events_are_declared_as_they_are_known() {
    let context = node::ALERTS.items.expect("alerts").context;
    let base::node::Kind::Choice(choices) = context.property("when").expect("when").kind else {
        panic!("a choice");
    };
    let known: Vec<_> = Event::ALL.iter().map(|(_, name, sentence)| (*name, *sentence)).collect();
    assert_eq!(choices[1..], known);
}

#[test]
fn days_before_a_certificate_ends_are_a_word_of_the_sentence() {
    let certificate = |days: Option<i64>| {
        let mut properties = vec![("when", Value::text("certificate"))];
        properties.extend(days.map(|days| ("days_left", Value::Integer(days))));
        rule(&properties).expect("a rule").condition()
    };
    let sentence = "a certificate expires within 30 days, or issue or renewal failed";
    assert_eq!(certificate(Some(30)), sentence);
    assert!(certificate(Some(1)).contains("within a day,"));
    assert!(certificate(None).contains("within 14 days,"));
}
