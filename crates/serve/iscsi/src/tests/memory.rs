//! Tests of what commands hold: many sessions share a small budget, each makes progress, and
//! nothing is held for what has ended.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base::limits::{LUN_BUFFER, RECEIVE_BUFFER};
use wire::iscsi::data::R2t;
use wire::iscsi::tmf::{Function, TmfOutcome};
use wire::scsi::Status;

use super::client::{Client, Got, How, read, write};
use super::{BLOCK, Bench};
use crate::scsi::tests::copy_within;
use crate::targets::SignIn;
use engine::transport::budget::Limits;
use engine::transport::pace::SlowPeerBudget;

/// Bytes of the budget, over both cores.
const ROOM: usize = 2 << 20;
/// Bytes of a command.
const SIZE: usize = 256 << 10;
const BLOCKS: u32 = (SIZE / BLOCK) as u32;

fn small() -> Bench {
    Bench::limited(2, Limits { bytes: ROOM, ..Limits::default() }, SignIn::default())
}

fn ready(bench: &Bench, isid: u8, immediate_data: bool) -> Client {
    let mut how = How { isid, ..How::default() };
    how.wishes.immediate_data = immediate_data;
    let mut client = Client::new(bench, &how);
    (0..2).for_each(|lun| client.settle(lun));
    client
}

/// What has come before an answer to a ping: all that follows from what was sent until now.
fn asks(client: &mut Client) -> Vec<R2t> {
    let mut asks = Vec::new();
    let mut got = client.ping(b"");
    loop {
        match got {
            Some(Got::R2t(ask)) => asks.push(ask),
            Some(Got::Pong(..)) => return asks,
            other => panic!("neither asked nor answered: {other:?}"),
        }
        got = client.next();
    }
}

/// Waits until the bytes that the service holds satisfy this.
fn await_bytes(bench: &Bench, is_so: impl Fn(i64) -> bool) {
    let (budgets, end) = (&bench.iscsi.engine.budgets, Instant::now() + Duration::from_secs(30));
    while !is_so(budgets.bytes()) {
        assert!(Instant::now() < end, "{} bytes are held", budgets.bytes());
        std::thread::yield_now();
    }
}

#[test]
fn data_is_asked_for_as_far_as_there_is_room() {
    const CLIENTS: u8 = 16;
    const EACH: u8 = 8;
    let bench = small();
    let mut clients: Vec<_> = (1..=CLIENTS).map(|isid| ready(&bench, isid, false)).collect();
    let mut asked = 0;
    let mut open = Vec::new();
    for (number, client) in (0_u64..).zip(&mut clients) {
        for n in 0..u64::from(EACH) {
            let lba = (number * u64::from(EACH) + n) % 100 * u64::from(BLOCKS);
            client.start(0, write(lba, BLOCKS), true, SIZE as u32, &[]);
        }
        let asks = asks(client);
        assert!(!asks.is_empty(), "each has one at least");
        asked += asks.iter().map(|ask| ask.length as usize).sum::<usize>();
        open.push(asks);
    }
    let most = ROOM + usize::from(CLIENTS) * SIZE;
    assert!(asked <= most, "{asked} bytes were asked for at once, of {most}");
    assert!(bench.iscsi.waits.load(Relaxed) >= u64::from(CLIENTS * (EACH - 2)));
    // All of them end, in whatever order.
    let data = vec![7; SIZE];
    for (client, asks) in clients.iter_mut().zip(open) {
        asks.iter().for_each(|ask| client.answer(ask, &data, 8192));
        let mut ended = 0;
        while ended < EACH {
            match client.next() {
                Some(Got::R2t(ask)) => client.answer(&ask, &data, 8192),
                Some(Got::Answer(_, answer)) => {
                    assert_eq!(answer.status, Status::GOOD);
                    ended += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    drop(clients);
    await_bytes(&bench, |bytes| bytes == 0);
}

#[test]
fn reads_wait_for_room_before_they_wait_for_the_disk() {
    const CLIENTS: u8 = 8;
    const EACH: u8 = 16;
    let bench = small();
    let mut clients: Vec<_> = (1..=CLIENTS).map(|isid| ready(&bench, isid, true)).collect();
    bench.media[0].stick(true);
    for client in &mut clients {
        for n in 0..u64::from(EACH) {
            client.start(0, read(n, BLOCKS), false, SIZE as u32, &[]);
        }
        assert_eq!(asks(client).len(), 0);
    }
    let most = (ROOM + usize::from(CLIENTS) * (SIZE + 2 * RECEIVE_BUFFER)) as i64;
    await_bytes(&bench, |bytes| bytes >= (usize::from(CLIENTS) * SIZE) as i64);
    assert!(bench.iscsi.engine.budgets.bytes() <= most);
    assert!(bench.iscsi.waits.load(Relaxed) >= u64::from(CLIENTS));
    // The other unit is none the worse for it.
    assert_eq!(clients[0].write(1, 0, &[5; BLOCK]).status, Status::GOOD);
    bench.media[0].stick(false);
    for client in &mut clients {
        for _ in 0..EACH {
            let Some(Got::Answer(_, answer)) = client.next() else { panic!("an answer") };
            assert_eq!((answer.status, answer.data.len()), (Status::GOOD, SIZE));
        }
    }
    drop(clients);
    await_bytes(&bench, |bytes| bytes == 0);
}

#[test]
fn what_copies_work_with_is_held_until_they_end() {
    const CLIENTS: u8 = 6;
    const EACH: u8 = 4;
    let bench = small();
    let (cdb, list) = copy_within((0, 4096, 2048));
    let mut clients: Vec<_> = (1..=CLIENTS).map(|isid| ready(&bench, isid, false)).collect();
    assert_eq!(clients[0].write(0, 0, &[7; BLOCK]).status, Status::GOOD);
    bench.media[0].stick(true);
    // One command of each session is admitted in any case; no other is sent an R2T for its
    // parameters before there is room for its copy.
    for client in &mut clients {
        for _ in 0..EACH {
            client.start(0, cdb, true, list.len() as u32, &[]);
        }
        let asked = asks(client);
        assert_eq!(asked.len(), 1, "copies that have room for a buffer");
        client.answer(&asked[0], &list, 8192);
    }
    let buffers = usize::from(CLIENTS) * LUN_BUFFER;
    await_bytes(&bench, |bytes| bytes >= buffers as i64);
    let most = ROOM + buffers + usize::from(CLIENTS) * 2 * RECEIVE_BUFFER;
    assert!(bench.iscsi.engine.budgets.bytes() <= most as i64);
    assert!(bench.iscsi.waits.load(Relaxed) >= u64::from(CLIENTS * (EACH - 1)));
    // Parameters that come unasked cannot wait.
    let mut other = ready(&bench, CLIENTS + 1, true);
    other.start(0, cdb, true, list.len() as u32, &list);
    let refused = other.start(0, cdb, true, list.len() as u32, &list);
    let Some(Got::Answer(tag, answer)) = other.next() else { panic!("it is refused") };
    assert_eq!((tag, answer.status), (refused, Status::TASK_SET_FULL));
    bench.media[0].stick(false);
    for client in &mut clients {
        let mut ended = 0;
        while ended < EACH {
            match client.next() {
                Some(Got::R2t(ask)) => client.answer(&ask, &list, 8192),
                Some(Got::Answer(_, answer)) => {
                    assert_eq!(answer.status, Status::GOOD);
                    ended += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(clients[0].read(0, 4096, 1).data, [7; BLOCK]);
    drop((clients, other));
    await_bytes(&bench, |bytes| bytes == 0);
}

#[test]
fn what_comes_unasked_without_room_is_refused_and_goes_well_later() {
    let bench = small();
    let mut client = ready(&bench, 1, true);
    let (large, data) = (vec![1; 4 * SIZE], vec![2; SIZE]);
    let first = client.start(0, write(0, 4 * BLOCKS), true, large.len() as u32, &[]);
    let asked = asks(&mut client);
    let length: usize = asked.iter().map(|ask| ask.length as usize).sum();
    assert_eq!(length, large.len(), "one is admitted, however large it is");
    let other = client.start(0, write(9000, BLOCKS), true, SIZE as u32, &data[..8192]);
    let Some(Got::Answer(tag, answer)) = client.next() else { panic!("it is refused") };
    assert_eq!((tag, answer.status), (other, Status::TASK_SET_FULL));
    // What can end at once holds nothing.
    assert_eq!(client.write(0, 9000, &[3; BLOCK]).status, Status::GOOD);
    asked.iter().for_each(|ask| client.answer(ask, &large, 8192));
    let Some(Got::Answer(tag, answer)) = client.next() else { panic!("it ends") };
    assert_eq!((tag, answer.status), (first, Status::GOOD));
    assert_eq!(client.write(0, 9000, &data).status, Status::GOOD);
    assert_eq!(client.read(0, 9000, BLOCKS).data, data);
}

#[test]
fn a_command_that_waits_for_room_is_aborted() {
    let bench = small();
    let mut client = ready(&bench, 1, false);
    let large = vec![1; 4 * SIZE];
    let start =
        |client: &mut Client| client.start(0, write(0, 4 * BLOCKS), true, large.len() as u32, &[]);
    let first = start(&mut client);
    let asked = asks(&mut client);
    let [second, third] = [(); 2].map(|()| start(&mut client));
    assert_eq!(client.managed(0, Function::ABORT_TASK, second), TmfOutcome::COMPLETE);
    assert_eq!(client.managed(0, Function::ABORT_TASK, second), TmfOutcome::NO_TASK);
    asked.iter().for_each(|ask| client.answer(ask, &large, 8192));
    let Some(Got::Answer(tag, answer)) = client.next() else { panic!("it ends") };
    assert_eq!((tag, answer.status), (first, Status::GOOD));
    assert_eq!(client.finish(third, &large).status, Status::GOOD);
    // Those that are left when their session ends leave nothing.
    let first = [(); 3].map(|()| start(&mut client))[0];
    assert!(asks(&mut client).iter().all(|ask| ask.itt == first));
    drop(client);
    await_bytes(&bench, |bytes| bytes == 0);
}

#[test]
fn what_was_aborted_before_a_stuck_disk_began_it_holds_nothing() {
    let bench = Bench::limited(2, Limits::default(), SignIn::default());
    let mut client = ready(&bench, 1, true);
    let data = vec![9; 8192];
    bench.media[0].stick(true);
    let all: Vec<u32> = (0..64)
        .map(|n| client.start(0, write(n * 16, 16), true, data.len() as u32, &data))
        .collect();
    assert_eq!(asks(&mut client).len(), 0);
    let held = 60 * data.len() as i64;
    await_bytes(&bench, |bytes| bytes > held);
    // The window is full: another command is not taken until one has ended.
    let running = base::limits::LUN_THREADS;
    for itt in all.iter().rev().take(all.len() - running) {
        assert_eq!(client.managed(0, Function::ABORT_TASK, *itt), TmfOutcome::COMPLETE);
    }
    await_bytes(&bench, |bytes| bytes < held);
    assert_eq!(client.write(1, 0, &data).status, Status::GOOD, "there is a place in the window");
    bench.media[0].stick(false);
    for _ in 0..running {
        let Some(Got::Answer(itt, answer)) = client.next() else { panic!("an answer") };
        assert!(all[..running].contains(&itt), "{itt}");
        assert_eq!(answer.status, Status::GOOD);
    }
    let last = client.read(0, 63 * 16, 16).data;
    assert_eq!(last, vec![0; 8192], "what was aborted was not written");
}

#[test]
fn an_initiator_that_owes_data_is_disconnected() {
    let pace = SlowPeerBudget::new(Duration::from_millis(200));
    let bench = Bench::limited(2, Limits { pace, ..Limits::default() }, SignIn::default());
    let mut client = ready(&bench, 1, false);
    client.start(0, write(0, BLOCKS), true, SIZE as u32, &[]);
    assert!(matches!(client.next(), Some(Got::R2t(_))));
    assert_eq!(client.next(), None, "the session ends");
    assert_eq!(bench.iscsi.engine.budgets.timeouts.load(Relaxed), 1);
    await_bytes(&bench, |bytes| bytes == 0);
}
