//! Sentences of takeovers, and records of other versions.

use super::*;

#[test]
fn a_takeover_is_a_sentence_with_each_phase() {
    let phases = Phases { hand_over: 300, claim: 20, lock: 5, start: 400, address: 1 };
    let mut one = Takeover {
        from: "left".to_owned(),
        to: "right".to_owned(),
        cause: Cause::HeadLost,
        ..Takeover::default()
    };
    let said = "taken over by right from left (the lease of the former owner is over)";
    assert_eq!(one.to_string(), format!("{said}; it is not served yet"));
    one.phases = Some(phases);
    let times = "hand-over 300 ms, claim 20 ms, fence and lock 5 ms, start 400 ms, address 1 ms";
    assert_eq!(one.to_string(), format!("{said} in 726 ms: {times}"));
    one.from.clear();
    assert!(one.to_string().starts_with("served by right ("), "{one}");
}

#[test]
fn each_cause_has_a_name_that_is_stored_and_a_sentence() {
    let all = [
        Cause::Start,
        Cause::Command,
        Cause::Drain,
        Cause::HeadLost,
        Cause::ServerEnded,
        Cause::Unreachable,
        Cause::Unknown,
    ];
    assert_eq!(all.len(), Cause::CHOICES.len());
    for cause in all {
        assert_eq!(serde_json::to_value(cause).expect("JSON"), cause.name());
        assert_ne!(cause.sentence(), "");
    }
}

#[test]
fn a_record_of_another_version_is_read() {
    let record: crate::keys::Record =
        serde_json::from_str(r#"{"number":7,"target":"left"}"#).expect("a record");
    assert_eq!((record.number, record.last), (7, None));
    let later = r#"{"from":"left","to":"right","cause":"eclipse","at":1,"more":2}"#;
    let later: Takeover = serde_json::from_str(later).expect("a takeover");
    assert_eq!(later.cause, Cause::Unknown);
}
