//! Tests of data that comes: by example, and against every way to cut it.

use proptest::prelude::*;
use wire::iscsi::data::DataOut;
use wire::iscsi::{RESERVED_TAG, Serial};

use super::{Bounds, Fault, Gather};

const BOUNDS: Bounds = Bounds { first: 1000, burst: 2000, asks: 2 };

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|n| ((n * 31) >> 3) as u8).collect()
}

fn out(ttt: u32, data_sn: u32, offset: u32, data: &[u8], is_final: bool) -> DataOut<'_> {
    let (lun, itt, exp_stat_sn) = (0, 1, Serial(0));
    DataOut { is_final, lun, itt, ttt, exp_stat_sn, data_sn: Serial(data_sn), offset, data }
}

fn gather(lengths: (u32, u32), immediate: &[u8], goes_on: bool) -> Gather {
    Gather::new(lengths, immediate, goes_on, BOUNDS, Vec::new()).expect("it may come")
}

#[test]
fn immediate_data_may_be_all() {
    let data = pattern(512);
    let whole = gather((512, 512), &data, false);
    assert!(whole.is_whole() && whole.asked() == 0);
    assert_eq!(whole.into_data(), data);
    let more = Gather::new((512, 5000), &pattern(1001), false, BOUNDS, Vec::new());
    assert_eq!(more.err(), Some(Fault::Offset), "more than FirstBurstLength");
}

#[test]
fn what_is_missing_is_asked_for() {
    let data = pattern(5000);
    let mut task = gather((5000, 5000), &data[..100], true);
    assert_eq!(task.ask(BOUNDS, 7), None, "unsolicited data comes first");
    task.take(&out(RESERVED_TAG, 0, 100, &data[100..600], false)).expect("in order");
    task.take(&out(RESERVED_TAG, 1, 600, &data[600..1000], true)).expect("in order");
    let first = task.ask(BOUNDS, 7).expect("more is needed");
    assert_eq!((first.offset, first.length, first.number), (1000, 2000, Serial(0)));
    let second = task.ask(BOUNDS, 8).expect("two at once");
    assert_eq!((second.offset, second.length, second.number), (3000, 2000, Serial(1)));
    assert_eq!(task.ask(BOUNDS, 9), None);
    task.take(&out(7, 0, 1000, &data[1000..3000], true)).expect("the first");
    assert!(!task.is_whole());
    task.take(&out(8, 0, 3000, &data[3000..], true)).expect("the second");
    assert!(task.is_whole() && task.asked() == 2);
    assert_eq!(task.into_data(), data);
}

#[test]
fn unsolicited_data_may_end_early() {
    let data = pattern(900);
    let mut task = gather((900, 900), &[], true);
    task.take(&out(RESERVED_TAG, 0, 0, &data[..10], true)).expect("in order");
    let ask = task.ask(BOUNDS, 3).expect("the rest");
    assert_eq!((ask.offset, ask.length), (10, 890));
}

#[test]
fn what_is_wrong_is_named() {
    let data = pattern(2000);
    let ready = || {
        let mut task = gather((2000, 2000), &[], false);
        assert!(task.ask(BOUNDS, 7).is_some());
        task
    };
    let fault = |pdu: &DataOut<'_>| ready().take(pdu).expect_err("it is wrong");
    assert_eq!(fault(&out(8, 0, 0, &data, true)), Fault::Unexpected, "another tag");
    assert_eq!(fault(&out(RESERVED_TAG, 0, 0, &data, true)), Fault::Unexpected);
    assert_eq!(fault(&out(7, 1, 0, &data, true)), Fault::Number);
    assert_eq!(fault(&out(7, 27, 0, &data, true)), Fault::Number);
    assert_eq!(fault(&out(7, 0, 1, &data[1..], true)), Fault::Offset);
    assert_eq!(fault(&out(7, 0, 0, &pattern(2001), true)), Fault::Offset);
    assert_eq!(fault(&out(7, 0, 0, &data[..1999], true)), Fault::Short);
    assert_eq!(fault(&out(7, 0, 0, &data, false)), Fault::Short, "whole, and not said so");
    let mut task = ready();
    task.take(&out(7, 0, 0, &data[..1000], false)).expect("in order");
    assert_eq!(task.take(&out(7, 0, 1000, &data[1000..], true)), Err(Fault::Number));
}

#[test]
fn no_more_is_asked_for_than_either_side_has() {
    // The command needs less than the initiator has: the rest is not wanted.
    let data = pattern(512);
    let mut task = gather((512, 4096), &[], false);
    let ask = task.ask(BOUNDS, 1).expect("it");
    assert_eq!((ask.offset, ask.length), (0, 512));
    task.take(&out(1, 0, 0, &data, true)).expect("it");
    assert_eq!(task.into_data(), data);
    // It needs more than the initiator has.
    let mut task = gather((512, 200), &[], false);
    assert_eq!(task.ask(BOUNDS, 1).map(|ask| ask.length), Some(200));
    // What came unasked beyond what is needed is left out.
    let task = gather((512, 4096), &pattern(1000), false);
    assert!(task.is_whole());
    assert_eq!(task.into_data(), pattern(1000)[..512]);
    // Nothing is needed, but something comes: it is waited for.
    let mut task = gather((0, 1000), &[], true);
    assert!(!task.is_whole() && task.expects_data());
    task.take(&out(RESERVED_TAG, 0, 0, &pattern(1000), true)).expect("it may come");
    assert!(task.is_whole() && task.into_data().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn data_arrives_whole_however_it_is_cut(
        wanted in 0..20_000_u32,
        extra in 0..2_000_u32,
        immediate in 0..1_000_u32,
        goes_on: bool,
        pieces in prop::collection::vec(1..3_000_u32, 1..40),
        asks in 1..5_usize,
    ) {
        let bounds = Bounds { asks, ..BOUNDS };
        let expected = wanted + extra;
        let data = pattern(expected as usize);
        let immediate = immediate.min(expected) as usize;
        let mut task =
            Gather::new((wanted, expected), &data[..immediate], goes_on, bounds, Vec::new())
                .expect("it may come");
        let mut pieces = pieces.iter().cycle();
        let mut send = |task: &mut Gather, tag, mut at: u32, end: u32| {
            let mut number = 0;
            loop {
                let to = end.min(at + pieces.next().copied().unwrap_or(1));
                let part = &data[at as usize..to as usize];
                task.take(&out(tag, number, at, part, to == end)).expect("in order");
                (at, number) = (to, number + 1);
                if to == end {
                    return;
                }
            }
        };
        if goes_on {
            send(&mut task, RESERVED_TAG, immediate as u32, expected.min(bounds.first));
        }
        let (mut tag, mut open) = (0, std::collections::VecDeque::new());
        while !task.is_whole() {
            while let Some(ask) = task.ask(bounds, tag) {
                prop_assert!(ask.length <= bounds.burst && ask.length > 0);
                open.push_back(ask);
                tag += 1;
            }
            prop_assert!(open.len() <= asks);
            let ask = open.pop_front().expect("something is asked for");
            send(&mut task, ask.tag, ask.offset, ask.offset + ask.length);
        }
        prop_assert_eq!(task.into_data(), &data[..wanted as usize]);
    }
}
