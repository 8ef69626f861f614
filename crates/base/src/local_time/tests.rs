//! What people write, and how it is shown.

use super::*;

/// 2026-11-26 01:30:00 UTC.
const NOW: i64 = 1_795_656_600;
/// 2026-11-26 00:00:00 UTC.
const TODAY: i64 = NOW - 90 * 60;

const UTC: LocalClock = LocalClock { now: NOW, offset: |_| 0 };
/// Central Europe: two hours ahead of UTC from 2026-03-29 01:00 UTC to 2026-10-25 01:00 UTC.
const BERLIN: LocalClock = LocalClock {
    now: NOW,
    offset: |second| if (1_774_746_000..1_792_890_000).contains(&second) { 7200 } else { 3600 },
};
/// Behind UTC, where today is still the day before.
const LIMA: LocalClock = LocalClock { now: NOW, offset: |_| -5 * 3600 };

#[test]
fn points_of_time_that_users_write() {
    let nine = TODAY + 9 * 3600;
    let cases = [
        ("now", NOW),
        ("0", 0),
        ("1795656600", NOW),
        ("-90", NOW - 90),
        ("-90s", NOW - 90),
        ("-15m", NOW - 900),
        ("-2h", NOW - 7200),
        ("-7d", NOW - 7 * DAY),
        ("+1w", NOW + 7 * DAY),
        ("09:00", nine),
        ("9:00", nine),
        (" today 09:00 ", nine),
        ("today", TODAY),
        ("yesterday", TODAY - DAY),
        ("yesterday 09:00", nine - DAY),
        ("yesterday 9:00:30", nine - DAY + 30),
        ("2026-11-25", TODAY - DAY),
        ("2026-11-25 09:00", nine - DAY),
        ("2026-11-25T09:00", nine - DAY),
        ("2026-11-25 09:00 UTC", nine - DAY),
        ("2026-11-25T09:00:00Z", nine - DAY),
        ("2026-11-25T09:00:00z", nine - DAY),
        ("2026-11-25T09:00:00.123Z", nine - DAY),
        ("2026-11-25T09:00:00+01:00", nine - DAY - 3600),
        ("2026-11-25 09:00 -0530", nine - DAY + 5 * 3600 + 1800),
        ("2016-12-31T23:59:60Z", 1_483_228_800),
        ("2024-02-29", 1_709_164_800),
    ];
    for (text, second) in cases {
        assert_eq!(UTC.parse(text), Some(second), "{text}");
    }
}

#[test]
fn anything_else_is_refused() {
    let cases = [
        "",
        "-",
        "+",
        "--5",
        "-+5",
        "-0",
        "-m",
        "-5y",
        "1.5",
        "tomorrow",
        "yesterdays",
        "noon",
        "Z",
        "yesterday 9",
        "24:00",
        "09:60",
        "09:00:61",
        "09:00:00.",
        "09:00:00.x",
        "09:+5",
        "2026-13-01",
        "2026-02-29",
        "2026-00-10",
        "2026-1",
        "02026-01-01",
        "2026-11-25 09:00 CET",
        "2026-11-25T09:00:00+1",
        "2026-11-25T09:00:00+25:00",
        "2026-11-25T09:00:00+é",
        "-é",
        "-9223372036854775807d",
        "99999999999999999999",
        "2026-11-25T09:00:00ZZ",
    ];
    for text in cases {
        assert_eq!(UTC.parse(text), None, "{text}");
    }
}

#[test]
fn times_without_a_zone_are_local() {
    let nine = TODAY - DAY + 9 * 3600;
    assert_eq!(BERLIN.parse("yesterday 09:00"), Some(nine - 3600));
    assert_eq!(BERLIN.parse("2026-11-25T09:00:00Z"), Some(nine));
    // In summer, and on both sides of the change.
    assert_eq!(BERLIN.parse("2026-07-01 12:00"), UTC.parse("2026-07-01 10:00"));
    assert_eq!(BERLIN.parse("2026-03-29 01:59"), UTC.parse("2026-03-29 00:59"));
    assert_eq!(BERLIN.parse("2026-03-29 03:00"), UTC.parse("2026-03-29 01:00"));
    assert_eq!(BERLIN.parse("2026-10-25 03:00"), UTC.parse("2026-10-25 02:00"));
    // Skipped by the clocks, and shown twice.
    assert_eq!(BERLIN.parse("2026-03-29 02:30"), UTC.parse("2026-03-29 01:30"));
    assert_eq!(BERLIN.parse("2026-10-25 02:30"), UTC.parse("2026-10-25 00:30"));
    // It is 20:30 of the day before.
    assert_eq!(LIMA.parse("today"), Some(TODAY - DAY + 5 * 3600));
    assert_eq!(LIMA.parse("yesterday 09:00"), Some(nine - DAY + 5 * 3600));
}

#[test]
fn what_is_shown_has_its_zone_and_is_read_again() {
    assert_eq!(UTC.show(NOW), "2026-11-26 01:30:00 UTC");
    assert_eq!(BERLIN.show(NOW), "2026-11-26 02:30:00 +01:00");
    assert_eq!(LIMA.show(NOW), "2026-11-25 20:30:00 -05:00");
    for clock in [UTC, BERLIN, LIMA] {
        for second in [NOW, 0, 1_774_745_999, 1_774_746_000, 1_792_889_999, 1_792_890_000] {
            assert_eq!(clock.parse(&clock.show(second)), Some(second));
        }
    }
    assert_eq!(UTC.show_interval(NOW, NOW + 60), "2026-11-26 01:30:00 to 2026-11-26 01:31:00 UTC");
    assert_eq!(
        BERLIN.show_interval(1_792_889_999, 1_792_890_000),
        "2026-10-25 02:59:59 +02:00 to 2026-10-25 02:00:00 +01:00"
    );
}

#[test]
fn the_forms_of_the_hint_are_accepted() {
    let forms = FORMS.split(", ").filter(|form| !form.contains("epoch"));
    for form in forms {
        assert!(UTC.parse(form.trim_matches('\'')).is_some(), "{form}");
    }
}

/// Changes of the clocks: their name, seconds ahead of UTC before and after, and the moment.
const CHANGES: [(&str, i64, i64, i64); 12] = [
    ("Europe/Berlin in spring", 3600, 7200, 1_774_746_000),
    ("Europe/Berlin in autumn", 7200, 3600, 1_792_890_000),
    ("America/New_York in spring", -18_000, -14_400, 1_772_953_200),
    ("America/New_York in autumn", -14_400, -18_000, 1_793_512_800),
    ("Australia/Lord_Howe in spring", 37_800, 39_600, 1_791_041_400),
    ("Australia/Lord_Howe in autumn", 39_600, 37_800, 1_775_314_800),
    ("Antarctica/Troll in spring", 0, 7200, 1_774_746_000),
    ("Pacific/Apia skips a day", -36_000, 50_400, 1_325_239_200),
    ("America/Juneau shows a day twice", 54_139, -32_261, -3_225_223_727),
    ("Asia/Pyongyang", 30_600, 32_400, 1_525_446_000),
    ("Africa/Monrovia", -2_670, 0, 63_593_070),
    ("Europe/Dublin in winter", 3600, 0, 1_792_890_000),
];

#[test]
fn a_local_time_that_is_skipped_is_later_and_one_shown_twice_is_the_first() {
    for (zone, before, after, moment) in CHANGES {
        let offset = |second: i64| if second < moment { before } else { after };
        let local = moment + before.min(after);
        for second in (local - 2 * DAY..local + 2 * DAY).step_by(450) {
            let shown = [second - before, second - after];
            let first = shown.iter().filter(|at| **at + offset(**at) == second).min();
            let found = utc_of(second, &offset).expect("a moment");
            match first {
                Some(first) => assert_eq!(found, *first, "{zone}: {second}"),
                None => {
                    assert!(found >= moment, "{zone}: {second}");
                    assert_eq!(found + offset(found) - second, after - before, "{zone}: {second}");
                }
            }
        }
    }
}

#[test]
fn every_moment_has_a_local_time_that_leads_back() {
    for (zone, before, after, moment) in CHANGES {
        let offset = |second: i64| if second < moment { before } else { after };
        for at in (moment - 2 * DAY..moment + 2 * DAY).step_by(450) {
            let found = utc_of(at + offset(at), &offset).expect("a moment");
            // The second of two that clocks show alike leads to the first.
            let is_second = at >= moment && found < moment && before > after;
            assert!(found == at || is_second, "{zone}: {at}");
        }
    }
}

#[test]
fn moments_at_the_ends_of_the_numbers() {
    let borders = [0, -1, 1 << 31, (1 << 31) - 1, 1 << 32, 253_402_300_799, i64::MIN, i64::MAX];
    for second in borders {
        assert!(!BERLIN.show(second).is_empty() && !LIMA.show(second).is_empty());
        assert!(!BERLIN.show_interval(second, i64::MAX).is_empty());
        let _ = utc_of(second, &|_| 3600);
    }
    assert_eq!(utc_of(i64::MAX, &|_| 0), None);
    assert_eq!(utc_of(i64::MIN, &|_| 0), None);
    assert_eq!(BERLIN.parse("9999-12-31 23:59:59"), UTC.parse("9999-12-31 22:59:59"));
    assert_eq!(UTC.parse("0000-01-01"), Some(-62_167_219_200));
    assert_eq!(UTC.parse("1601-01-01 00:00"), Some(-11_644_473_600));
    assert_eq!(UTC.parse("2038-01-19 03:14:08"), Some(1 << 31));
    assert_eq!(UTC.parse("2106-02-07 06:28:16"), Some(1 << 32));
    assert_eq!(UTC.parse("9223372036854775807"), Some(i64::MAX));
    assert_eq!(UTC.parse("9223372036854775808"), None);
    assert_eq!(LocalClock { now: i64::MAX, ..UTC }.parse("+1s"), None);
}
