//! Ids are read as they are printed, and bad ones are refused with a reason.

use proptest::prelude::*;

use super::*;

fn parse(id: &str) -> StatId {
    id.parse().unwrap_or_else(|e| panic!("{id}: {e}"))
}

#[test]
fn the_parts_of_an_id() {
    let stat = parse("nfs3.ops[op=read][client=10.0.0.7][latency]");
    assert_eq!((stat.group.as_str(), stat.metric.as_str()), ("nfs3", "ops"));
    let filters = [("op".into(), "read".into()), ("client".into(), "10.0.0.7".into())];
    assert_eq!(stat.filters, filters);
    assert_eq!(stat.breakdown.as_deref(), Some("latency"));
    assert_eq!(parse("cpu.utilization"), StatId::raw("cpu", "utilization"));
    assert_eq!(parse(r"nfs3.ops[file=a\]b\\c\=d]").filters[0].1, r"a]b\c=d");
    assert_eq!(parse("nfs3.ops[client=fe80::1]").filters[0].1, "fe80::1");
}

#[test]
fn bad_ids_are_refused() {
    for id in
        ["", "nfs3", ".ops", "nfs3.", "nfs3.ops[", "nfs3.ops[op", "nfs3.ops]", "nfs3.ops[op]x"]
    {
        assert!(id.parse::<StatId>().is_err(), "{id}");
    }
    for id in ["nfs3.ops[op][client]", "nfs3.ops[]", "nfs3.ops[=x]", r"nfs3.ops[a=\", "a b.c"] {
        assert!(id.parse::<StatId>().is_err(), "{id}");
    }
    assert!(format!("nfs3.ops{}", "[op=read]".repeat(17)).parse::<StatId>().is_err());
    assert!(format!("nfs3.ops[file={}]", "x".repeat(ID_MAX)).parse::<StatId>().is_err());
}

#[test]
fn ranges() {
    assert_eq!(range("latency", "1000-2000"), Ok((1000, 2000)));
    assert_eq!(range("latency", "1000-"), Ok((1000, u64::MAX)));
    assert_eq!(range("latency", "-7"), Ok((0, 7)));
    for value in ["7", "a-b", "5-5", "9-8", "1-2-3"] {
        assert!(range("latency", value).is_err(), "{value}");
    }
}

proptest! {
    #[test]
    fn any_id_is_read_as_it_is_printed(
        filters in prop::collection::vec(("[a-z0-9_]{1,8}", ".{0,20}"), 0..6),
        breakdown in prop::option::of("[a-z]{1,8}"),
    ) {
        let stat = StatId { filters, breakdown, ..StatId::raw("nfs3", "ops") };
        prop_assert_eq!(stat.to_string().parse::<StatId>(), Ok(stat));
    }

    #[test]
    fn any_text_is_refused_or_read(text in ".{0,60}") {
        if let Ok(stat) = text.parse::<StatId>() {
            prop_assert_eq!(stat.to_string().parse::<StatId>(), Ok(stat));
        }
    }
}
