//! Tests of data transfers: residuals to the byte, faults of the initiator, damage.

use std::sync::atomic::Ordering::Relaxed;

use wire::iscsi::command::Residual;
use wire::iscsi::data::DataOut;
use wire::iscsi::{Digests, RESERVED_TAG, Request, Serial};
use wire::scsi::{Asc, Cdb, SenseKey, Status};

use super::client::{Client, Got, How, read, write};
use super::{BLOCK, Bench};
use crate::targets::SignIn;

fn ready(bench: &Bench, wishes: impl FnOnce(&mut How)) -> Client {
    let mut how = How::default();
    wishes(&mut how);
    let mut client = Client::new(bench, &how);
    client.settle(0);
    client
}

#[test]
fn residuals_are_exact() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = ready(&bench, |_| {});
    let block = BLOCK as u32;
    client.write(0, 0, &[1; 4 * BLOCK]);
    for (count, expected, residual) in [
        (1, block, Residual::None),
        (1, 2 * block, Residual::Underflow(block)),
        (2, block, Residual::Overflow(block)),
        (1, 10_000, Residual::Underflow(10_000 - block)),
        (1, 200, Residual::Overflow(block - 200)),
        (1, 0, Residual::Overflow(block)),
    ] {
        let answer = client.run(0, read(0, count), false, expected, &[]);
        assert_eq!((answer.status, answer.residual), (Status::GOOD, residual), "{expected}");
        assert_eq!(answer.data.len() as u32, expected.min(count * block));
        let data = vec![7; expected as usize];
        let answer = client.run(0, write(0, count), true, expected, &data);
        assert_eq!((answer.status, answer.residual), (Status::GOOD, residual), "{expected}");
    }
    let answer = client.run(0, Cdb::TestUnitReady, false, 100, &[]);
    assert_eq!(answer.residual, Residual::Underflow(100));
    let answer = client.run(0, Cdb::Inquiry { page: None, allocation: 36 }, false, 255, &[]);
    assert_eq!((answer.data.len(), answer.residual), (36, Residual::Underflow(219)));
}

#[test]
fn data_that_is_wrong_fails_its_command_only() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = ready(&bench, |how| how.wishes.immediate_data = false);
    let data = vec![5; 4 * BLOCK];
    for (number, offset) in [(1, 0), (27, 0), (u32::MAX, 0), (0, BLOCK as u32)] {
        let itt = client.start(0, write(0, 4), true, data.len() as u32, &[]);
        let Some(Got::R2t(ask)) = client.next() else { panic!("it is asked for") };
        let start = offset as usize;
        client.data_out(DataOut {
            is_final: true,
            lun: ask.lun,
            itt,
            ttt: ask.ttt,
            exp_stat_sn: Serial(0),
            data_sn: Serial(number),
            offset,
            data: &data[start..],
        });
        let Some(Got::Answer(tag, answer)) = client.next() else { panic!("it fails") };
        assert_eq!(answer.asked, 1, "ExpDataSN");
        let sense = answer.sense.expect("sense data");
        let expect = (itt, SenseKey::ABORTED_COMMAND, Asc::DATA_PHASE_ERROR);
        assert_eq!((tag, sense.key, sense.asc), expect);
    }
    assert_eq!(client.read(0, 0, 4).data, vec![0; 4 * BLOCK], "nothing was written");
    // What belongs to no command is not used.
    client.data_out(DataOut {
        is_final: true,
        lun: 0,
        itt: 4711,
        ttt: RESERVED_TAG,
        exp_stat_sn: Serial(0),
        data_sn: Serial(0),
        offset: 0,
        data: &data,
    });
    assert_eq!(client.write(0, 0, &data).status, Status::GOOD);
}

#[test]
fn damage_on_the_way_is_found_and_never_written() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = ready(&bench, |how| how.wishes.digests = Digests { header: true, data: true });
    let data = vec![5; BLOCK];
    let cdb = write(0, 1).encode().expect("a CDB");
    let command = client.command(0, cdb.bytes(), &data);
    client.send_damaged(&Request::ScsiCommand(command));
    assert_eq!(client.next(), Some(Got::Reject(2)), "data digest error");
    let Some(Got::Answer(_, answer)) = client.next() else { panic!("it fails") };
    let sense = answer.sense.expect("sense data");
    assert_eq!((sense.key, sense.asc), (SenseKey::ABORTED_COMMAND, Asc::PROTOCOL_CRC_ERROR));
    assert_eq!(client.read(0, 0, 1).data, vec![0; BLOCK]);
    assert_eq!(client.write(0, 0, &data).status, Status::GOOD, "and it goes on");
    assert_eq!(bench.iscsi.digest_errors.load(Relaxed), 1);
}

#[test]
fn numbers_outside_of_the_window_are_met_with_silence() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = ready(&bench, |_| {});
    let cdb = Cdb::TestUnitReady.encode().expect("a CDB");
    let before = client.max_cmd_sn;
    for number in [before.next(), before.plus(1000)] {
        let mut command = client.command(0, cdb.bytes(), &[]);
        (command.write, command.sn.cmd_sn) = (false, number);
        client.resend(&Request::ScsiCommand(command));
    }
    let pong = client.ping(b"are you there");
    assert!(matches!(pong, Some(Got::Pong(_, data)) if data == b"are you there"));
}

#[test]
fn a_missing_unit_is_reported() {
    let bench = Bench::new(2, SignIn::default());
    let mut client = ready(&bench, |_| {});
    let answer = client.run(9, read(0, 1), false, BLOCK as u32, &[]);
    let expect = Some((SenseKey::ILLEGAL_REQUEST, Asc::LUN_NOT_SUPPORTED));
    assert_eq!(answer.sense.map(|sense| (sense.key, sense.asc)), expect);
    assert_eq!(answer.residual, Residual::Underflow(BLOCK as u32));
    let answer = client.run(9, Cdb::Inquiry { page: None, allocation: 36 }, false, 36, &[]);
    assert_eq!(answer.data.first(), Some(&0x7f));
    for lun in [0, 9] {
        let list = Cdb::ReportLuns { select: 0, allocation: 256 };
        let answer = client.run(lun, list, false, 256, &[]);
        let (luns, _) = wire::scsi::lun::report(&answer.data).expect("a list");
        assert_eq!(luns.len(), 2);
    }
    // It goes while it is used: the others learn that something has changed.
    bench.target.remove(0);
    let answer = client.run(0, read(0, 1), false, BLOCK as u32, &[]);
    assert_eq!(answer.sense.map(|sense| (sense.key, sense.asc)), expect);
}

#[test]
fn a_slow_medium_answers_many_at_once() {
    let bench = Bench::new(1, SignIn::default());
    bench.media[0].faults.slow.store(true, Relaxed);
    let mut client = ready(&bench, |_| {});
    let mut open = std::collections::HashMap::new();
    for n in 0..32_u64 {
        let data = vec![n as u8; BLOCK];
        let itt = client.start(0, write(n, 1), true, BLOCK as u32, &data);
        open.insert(itt, n);
    }
    while !open.is_empty() {
        let Some(Got::Answer(itt, answer)) = client.next() else { panic!("an answer") };
        assert_eq!(answer.status, Status::GOOD);
        assert!(open.remove(&itt).is_some());
    }
    let all = client.read(0, 0, 32).data;
    assert!((0..32).all(|n| all[n * BLOCK..(n + 1) * BLOCK] == [n as u8; BLOCK]));
}
