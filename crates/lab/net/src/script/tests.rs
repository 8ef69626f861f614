//! The mirror of a profile.

use super::{End, Kind, bytes_of, scripts};
use crate::profile::{Profile, Size};
use crate::read::{Variables, read};

fn profile(body: &str) -> Profile {
    let text = format!("<profile><group nthreads='2'>{body}</group></profile>");
    read("p.xml", &text, &Variables::default()).expect("profile")
}

fn names(profile: &Profile, end: End) -> Vec<Vec<&'static str>> {
    let all = scripts(profile, end);
    let each = |t: &super::TransactionScript| t.acts.iter().map(|act| act.name).collect();
    all.iter().flat_map(|script| script.transactions.iter().map(each)).collect()
}

#[test]
fn a_far_end_mirrors_the_connections_of_its_host() {
    let profile = profile(
        "<transaction><flowop type='connect' options='remotehost=a protocol=tcp'/>\
         <flowop type='accept' options='conn=1 remotehost=b protocol=udp'/></transaction>\
         <transaction duration='1s'><flowop type='write' options='size=3'/>\
         <flowop type='recv' options='conn=1 size=4'/><flowop type='nop'/></transaction>\
         <transaction><flowop type='disconnect'/><flowop type='disconnect' options='conn=1'/>\
         </transaction>",
    );
    assert_eq!(
        names(&profile, End::Near),
        [vec!["connect", "accept"], vec!["write", "recv", "nop"], vec!["disconnect", "disconnect"]]
    );
    let a = [vec!["accept"], vec!["read", "nop"], vec!["disconnect"]];
    assert_eq!(names(&profile, End::Far(0)), a);
    let b = [vec!["connect"], vec!["send", "nop"], vec!["disconnect"]];
    assert_eq!(names(&profile, End::Far(1)), b);
}

#[test]
fn the_far_end_transfers_rsize_a_call() {
    let profile = profile(
        "<transaction><flowop type='connect' options='remotehost=a protocol=tcp'/></transaction>\
         <transaction><flowop type='write' options='count=10 size=8k rsize=16k'/></transaction>\
         <transaction iterations='6'><flowop type='read' options='size=1k rsize=3k'/>\
         </transaction>",
    );
    let far = scripts(&profile, End::Far(0));
    let transactions = &far[0].transactions;
    assert_eq!(transactions[1].acts[0].count, 5);
    assert_eq!(transactions[1].acts[0].kind, Kind::Receive(Size::fixed(16_384)));
    assert_eq!((transactions[2].iterations, transactions[2].acts[0].count), (2, 1));
    assert_eq!(transactions[2].acts[0].kind, Kind::Send(Size::fixed(3_072)));
}

#[test]
fn random_sizes_are_the_same_at_both_ends() {
    let size = Size { min: 10, max: 20 };
    let draw = |thread, n| bytes_of(size, 7, thread, (1, 0), n);
    let drawn: Vec<u32> = (0..1_000).map(|n| draw(3, n)).collect();
    assert!(drawn.iter().all(|bytes| (10..=20).contains(bytes)));
    assert!((10..=20).all(|bytes| drawn.contains(&bytes)));
    assert_eq!(drawn, (0..1_000).map(|n| draw(3, n)).collect::<Vec<_>>());
    assert_ne!(drawn, (0..1_000).map(|n| draw(4, n)).collect::<Vec<_>>());
}
