//! Counts of both ends.

use super::{alike, both_ends, evenness, interface, windows};
use crate::agent::net::Interface;
use crate::record::SteadyVerdict;
use lab_net::count::{ConnCount, Key, Sums};
use lab_net::read::{Variables, read};
use lab_net::script::{End, scripts};

fn count(thread: u32, sent: u64, received: u64) -> ConnCount {
    ConnCount { key: Key { host: 0, thread, conn: 0 }, sent, received }
}

#[test]
fn the_planted_loss_of_one_connection_is_named() {
    let near: Vec<_> = (0..400).map(|thread| count(thread, 1_000_000, 64)).collect();
    let mut far: Vec<_> = (0..400).map(|thread| count(thread, 64, 1_000_000)).collect();
    let both = both_ends(&near, &far);
    assert_eq!((both.difference_percent, both.missing_count), (0.0, 0));
    far[17].received -= 500_000;
    let both = both_ends(&near, &far);
    assert!((0.12..0.13).contains(&both.difference_percent), "{both:?}");
    assert_eq!((both.missing_count, both.missing[0].key.thread), (1, 17));
    far.remove(3);
    assert_eq!(both_ends(&near, &far).missing[0].key.thread, 3);
}

#[test]
fn connections_are_even_or_one_is_named() {
    assert_eq!(evenness(&[count(1, 5, 0)]), None);
    let even = evenness(&[count(1, 10, 0), count(2, 10, 0)]).expect("evenness");
    assert_eq!((even.min_over_mean, even.jain), (1.0, 1.0));
    let uneven = evenness(&[count(1, 10, 0), count(2, 0, 30)]).expect("evenness");
    assert_eq!((uneven.min_over_mean, uneven.jain), (0.5, 0.8));
    assert_eq!((uneven.least.thread, uneven.most_bytes), (1, 30));
}

#[test]
fn hosts_are_compared_where_they_do_the_same() {
    let group = |host: &str, threads: u32, size: &str| {
        format!(
            "<group nthreads=\"{threads}\"><transaction>\n\
             <flowop type=\"connect\" options=\"remotehost={host} protocol=tcp\"/>\n\
             </transaction><transaction duration=\"1s\">\n\
             <flowop type=\"write\" options=\"size={size}\"/>\n\
             </transaction></group>"
        )
    };
    let alike_in = |groups: [String; 2], transaction| {
        let text = format!("<profile name=\"p\">{}</profile>", groups.concat());
        let profile = read("p.xml", &text, &Variables::default()).expect("a profile");
        let far: Vec<_> = (0..2).map(|host| scripts(&profile, End::Far(host))).collect();
        alike(&far, transaction)
    };
    let one = || group("a", 4, "8k");
    assert!((0..2).all(|n| alike_in([one(), group("b", 4, "8k")], n)));
    assert!(!alike_in([one(), group("b", 1, "8k")], 1), "other threads");
    let other_size = |n| alike_in([one(), group("b", 4, "1k")], n);
    assert!(other_size(0) && !other_size(1), "the same to connect, another size to write");
}

#[test]
fn warm_up_does_not_count() {
    let sums = |sent| Sums { sent, received: 0, calls: 1 };
    let mut all = vec![sums(1), sums(3), sums(5), sums(7)];
    all.extend(vec![sums(10); 8]);
    let (used, steady) = windows(&all, 0.25);
    assert_eq!((used, steady.verdict), ((4, 12), SteadyVerdict::Steady));
    assert_eq!(windows(&[], 0.25).0, (0, 0));
}

#[test]
fn headers_are_added_to_the_payload() {
    let counted = Interface {
        name: "veth0".into(),
        rx_bytes: 6_600,
        rx_packets: 100,
        tx_bytes: 1_013_200,
        tx_packets: 200,
    };
    let record = interface("near", counted.clone(), (1_000_000, 0));
    assert_eq!((record.expected, record.ratio), (Some(1_019_800), Some(1.0)));
    let lo = Interface { name: "lo".into(), ..counted };
    assert_eq!(interface("near", lo, (1_000_000, 0)).expected, None);
}
