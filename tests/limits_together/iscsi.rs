//! Limits of iSCSI: sessions, commands, data, a unit that stands still, flushes, registrations.

use base::limits::{
    ISCSI_COMMANDS_MAX, ISCSI_TRANSFER_MAX, LUN_FLUSHES_BEHIND_MAX, LUN_REGISTRATIONS_ADDRESS_MAX,
    LUN_REGISTRATIONS_INITIATOR_MAX, LUN_UNSETTLED_MAX,
};
use e2e::iscsi::{Access, BLOCK, Initiator, blocks, io, reserve};
use wire::scsi::Cdb;
use wire::scsi::cdb::{CacheRange, ReserveOut};

use super::{Attack, Got};

/// iSCSI.
const PORT: u16 = 3260;
/// The unit that stands still.
const BAD: u16 = 1;

fn log_in(attack: &Attack<'_>, number: usize) -> std::io::Result<Initiator> {
    let stream = attack.connect(attack.world.server.at(PORT))?;
    Initiator::over(stream, &attack.world.access, number as u16)
}

/// Commands, as many as a session may have: reads that are not taken, writes without their data.
pub(crate) fn commands(attack: &Attack<'_>) -> Got {
    let (mut held, blocks) = (Vec::new(), (ISCSI_TRANSFER_MAX / BLOCK) as u32);
    for n in 0..attack.count(1, 8) {
        let mut initiator = log_in(attack, 100 + n).expect("a session");
        for _ in 1..ISCSI_COMMANDS_MAX {
            let read = Cdb::Read(io(0, blocks, false));
            initiator.start(&read, &[], ISCSI_TRANSFER_MAX as u32).expect("sent");
        }
        held.push(initiator);
        let mut initiator = log_in(attack, 200 + n).expect("a session");
        // What is sent with the command is all that comes.
        let data = vec![3; 1 << 20];
        for _ in 0..8 {
            let write = Cdb::Write(io(0, (data.len() / BLOCK) as u32, false));
            initiator.start(&write, &data, 0).expect("sent");
        }
        held.push(initiator);
    }
    Got::new(format!("{} sessions with commands", held.len()), held)
}

/// Commands of a unit that stands still, flushes among them.
pub(crate) fn queue(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    for n in 0..attack.count(1, 72) {
        let mut initiator = log_in(attack, 300 + n).expect("a session");
        if initiator.select(BAD).is_err() {
            return Got::new("no file system of FUSE", ());
        }
        held.push(initiator);
    }
    if !attack.world.stand_still(true) {
        return Got::new("no file system of FUSE", ());
    }
    for initiator in &mut held {
        let flush = Cdb::SynchronizeCache(CacheRange { blocks: blocks(0, 0), immediate: true });
        for _ in 0..LUN_FLUSHES_BEHIND_MAX.div_ceil(4) {
            initiator.start(&flush, &[], 0).expect("sent");
        }
        for n in LUN_FLUSHES_BEHIND_MAX as u32..ISCSI_COMMANDS_MAX {
            let write = Cdb::Write(io(u64::from(n), 1, true));
            initiator.start(&write, &[4; BLOCK], 0).expect("sent");
        }
    }
    Got::new(format!("{} sessions with commands that stand still", held.len()), held)
}

/// Ends all registrations when it is dropped: they outlive their sessions.
struct Registered(Option<(Initiator, u64)>);

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some((mut first, key)) = self.0.take() {
            let (cdb, list) = reserve(ReserveOut::Clear, 0, key, 0, false);
            let cleared = first.run(&cdb, &list, 0);
            assert!(std::thread::panicking() || cleared.is_ok_and(|answer| answer.is_good()));
        }
    }
}

/// Ports of one initiator, or initiators, that register, write and leave.
pub(crate) fn registrations(attack: &Attack<'_>) -> Got {
    let (mut registered, mut refused, mut first) = (0, 0, None);
    let most =
        if attack.all { LUN_REGISTRATIONS_ADDRESS_MAX } else { LUN_REGISTRATIONS_INITIATOR_MAX };
    let count = attack.count(most + 8, LUN_UNSETTLED_MAX + 8);
    for n in 0..count {
        let stream = attack.connect(attack.world.server.at(PORT)).expect("a connection");
        let (name, port) = (if attack.all { 1_000 + n } else { 1_000 }, 1_000 + n);
        let port = (name as u16, port as u16);
        let mut initiator =
            Initiator::with_port(stream, &attack.world.access, port).expect("a session");
        let write = Cdb::Write(io(64, 1, false));
        initiator.run(&write, &[6; BLOCK], 0).expect("a response");
        let key = 1 + n as u64;
        let (cdb, list) = reserve(ReserveOut::Register, 0, 0, key, false);
        match initiator.run(&cdb, &list, 0).expect("a response").is_good() {
            true => registered += 1,
            false => refused += 1,
        }
        first.get_or_insert((initiator, key));
    }
    assert_eq!((registered, refused), (most, count - most));
    Got::new(format!("{registered} of {count} registered"), Registered(first))
}

/// Logins with a wrong secret.
pub(crate) fn guesses(attack: &Attack<'_>) -> Got {
    let access =
        Access { secret: "not the right secret".to_owned(), ..attack.world.access.clone() };
    let mut refused = 0;
    for n in 0..attack.count(8, 32) {
        let stream = attack.connect(attack.world.server.at(PORT)).expect("a connection");
        refused += usize::from(Initiator::over(stream, &access, 2_000 + n as u16).is_err());
    }
    Got::new(format!("{refused} wrong secrets"), ())
}

/// Sessions that do nothing, and connections.
pub(crate) fn connections(attack: &Attack<'_>) -> Got {
    let sessions: Vec<_> =
        (0..attack.count(8, 128)).map_while(|n| log_in(attack, 3_000 + n).ok()).collect();
    let idle = attack.idle(attack.world.server.at(PORT), 2_000);
    Got::new(format!("{} sessions, {}", sessions.len(), idle.amount), (sessions, idle))
}
