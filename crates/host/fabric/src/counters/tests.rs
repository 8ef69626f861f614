//! Counters of a simulated fabric over several readings.

use super::*;
use crate::attribute::ERRORS;
use crate::fake::{Fake, host, switch};
use crate::walk::walk;

const TEN: Duration = Duration::from_secs(10);

struct Bed {
    exchange: Exchange<Fake>,
    counters: Counters,
}

impl Bed {
    fn new(fake: Fake) -> Self {
        Self { exchange: Exchange::new(fake), counters: Counters::default() }
    }

    fn fake(&mut self) -> &mut Fake {
        self.exchange.transport()
    }

    /// Another reading, ten seconds after the last.
    fn read(&mut self) {
        self.fake().advance(TEN);
        let fabric = walk(&mut self.exchange).expect("a transport");
        self.counters.read(&mut self.exchange, &fabric).expect("a transport");
    }

    fn counted(&self, id: PortId) -> &Counted {
        &self.counters.ports[&id]
    }
}

#[test]
fn words_are_shown_in_bytes() {
    let mut bed = Bed::new(Fake::new(1, 2, 1));
    bed.read();
    let port = bed.fake().port((host(2), 1)).expect("a port");
    port.counters.words = [100, 2_500_000_000];
    port.counters.packets = [1, 2];
    bed.read();
    let counted = bed.counted((host(2), 1));
    assert_eq!(counted.totals.bytes, [400, 10_000_000_000]);
    assert_eq!(counted.totals.packets, [1, 2]);
    let rate = counted.rates.expect("two readings").bytes[1];
    assert!((0.99e9..=1e9).contains(&rate), "{rate}");
}

#[test]
fn each_error_appears_under_its_name() {
    let mut bed = Bed::new(Fake::new(1, 2, 1));
    bed.read();
    for (n, error) in ERRORS.iter().enumerate() {
        let narrow = &mut bed.fake().port((switch(1), 2)).expect("a port").narrow;
        narrow.errors[n] += 3;
        bed.read();
        let counted = bed.counted((switch(1), 2));
        let mut expected = [0; ERRORS.len()];
        expected[n] = 3;
        assert_eq!(counted.errors, expected, "{}", error.name);
    }
}

#[test]
fn a_narrow_counter_wraps() {
    let mut fake = Fake::new(1, 2, 1);
    fake.nodes.get_mut(&host(2)).expect("a node").wide = false;
    let mut bed = Bed::new(fake);
    let set = |bed: &mut Bed, words| {
        bed.fake().port((host(2), 1)).expect("a port").counters.words = [0, words];
        bed.read();
    };
    set(&mut bed, (1 << 32) - 10);
    // The narrow counter shows 90.
    set(&mut bed, (1 << 32) + 90);
    assert_eq!(bed.counted((host(2), 1)).totals.bytes, [0, 400]);
    // Set to 5 by something else: the link cannot have carried nearly 2^32 words.
    set(&mut bed, 5);
    let counted = bed.counted((host(2), 1));
    assert!(counted.last.is_some_and(|last| !last.wide));
    assert_eq!(counted.totals.bytes, [0, 400 + 4 * ((1 << 32) - 85)]);
}

#[test]
fn a_reset_on_a_slow_link_is_not_a_wrap() {
    assert_eq!(difference(90, 5, false, 1_000), 5);
    assert_eq!(difference((1 << 32) - 10, 90, false, 1_000), 100);
    assert_eq!(difference(1 << 40, 5, true, u64::MAX), 5);
    assert_eq!(difference(3, 10, true, 0), 7);
}

#[test]
fn a_port_that_is_back_continues() {
    let mut bed = Bed::new(Fake::new(1, 3, 1));
    bed.read();
    let set = |bed: &mut Bed, words| {
        bed.fake().port((host(2), 1)).expect("a port").counters.words = [words, 0];
    };
    set(&mut bed, 100);
    bed.read();
    bed.fake().unlink((host(2), 1));
    set(&mut bed, 200);
    bed.read();
    assert!(bed.counted((host(2), 1)).rates.is_none());
    assert!(bed.counted((host(3), 1)).rates.is_some(), "others are counted");
    bed.fake().link((host(2), 1), (switch(1), 2));
    set(&mut bed, 300);
    bed.read();
    assert_eq!(bed.counted((host(2), 1)).totals.bytes, [1_200, 0]);
}

#[test]
fn a_port_that_does_not_reply_is_data() {
    let mut bed = Bed::new(Fake::new(1, 3, 1));
    bed.read();
    let fabric = walk(&mut bed.exchange).expect("a transport");
    bed.fake().silent.insert(host(2));
    bed.fake().advance(TEN);
    bed.counters.read(&mut bed.exchange, &fabric).expect("a transport");
    assert_eq!(bed.counted((host(2), 1)).lack, Some(QueryError::Timeout));
    assert!(bed.counted((host(3), 1)).rates.is_some());
}
