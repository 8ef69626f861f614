//! PERSISTENT RESERVE IN and OUT (SPC-5 §6.16, §6.17) and RESERVE(6) (SPC-2 §7.21).

use base::refusals::Limit;
use vfs::lun::reservations::{Effect, Kind, Notice, Origin, Port, Refused, Reservations};
use wire::iscsi::login::Isid;
use wire::scsi::cdb::{PersistentReserveOut, ReserveIn, ReserveOut};
use wire::scsi::reserve::{
    Capabilities, FullStatus, More, Parameters, Reservation, put_full_status, put_keys,
    put_reservation,
};
use wire::scsi::transport_id::TransportId;
use wire::scsi::{Asc, ScsiError, Sense, SenseKey, Status};

use super::ports::PORT;
use super::{Done, Fail, Outcome, Request, answer, bad_field, illegal};
use engine::transport::buffers::ReplyBuf;

/// Scope of a reservation: the logical unit, which is the only one.
const UNIT_SCOPE: u8 = 0;
/// Key in READ RESERVATION of a reservation that all registrants hold.
const HELD_BY_ALL: u64 = 0;
/// ALLOW COMMANDS: which commands a reservation lets through, in the words of SPC-5 table 181.
const ALLOWED: u8 = 1;

/// RESERVE(6).
pub(super) fn reserve(request: &Request) -> Outcome {
    let unit = &request.unit;
    let is_free = unit.with_reservations(Reservations::is_empty);
    if !is_free || !unit.reserve_simple(&request.nexus.port) {
        return Err(Fail::Status(Status::RESERVATION_CONFLICT));
    }
    Ok(Done::good(0))
}

/// PERSISTENT RESERVE IN.
pub(super) fn report(
    request: &Request,
    action: ReserveIn,
    allocation: u16,
    out: &mut ReplyBuf,
) -> Outcome {
    let (unit, start) = (&request.unit, out.len());
    let all = unit.reservations();
    match action {
        ReserveIn::ReadKeys => {
            let keys: Vec<u64> = all.registrations().map(|(_, key)| key).collect();
            put_keys(all.generation(), &keys, out.vec());
        }
        ReserveIn::ReadReservation => {
            let held = all.holding().map(|holding| Reservation {
                key: match holding.kind.is_held_by_all() {
                    true => HELD_BY_ALL,
                    false => all.key_of(&holding.holder).unwrap_or(HELD_BY_ALL),
                },
                scope: UNIT_SCOPE,
                kind: holding.kind as u8,
            });
            put_reservation(all.generation(), held, out.vec());
        }
        ReserveIn::ReportCapabilities => Capabilities {
            compatible: false,
            initiators: true,
            all_ports: true,
            can_persist: unit.can_persist(),
            persists: all.persists(),
            allow_commands: ALLOWED,
        }
        .put(out.vec()),
        ReserveIn::ReadFullStatus => {
            let status = |(port, key): (&Port, u64)| FullStatus {
                key,
                all_ports: false,
                holds: all
                    .holding()
                    .filter(|_| all.holds(port))
                    .map(|h| (UNIT_SCOPE, h.kind as u8)),
                port: PORT,
                initiator: TransportId { name: port.name.clone(), isid: Some(Isid(port.isid)) },
            };
            let list: Vec<_> = all.registrations().map(status).collect();
            put_full_status(all.generation(), &list, out.vec());
        }
    }
    Ok(answer(out, start, allocation.into()))
}

/// PERSISTENT RESERVE OUT. What persists is on disk when it ends.
pub(super) fn change(
    request: &Request,
    command: PersistentReserveOut,
    data: &[u8],
    may_block: bool,
) -> Outcome {
    let (unit, origin) = (&request.unit, request.nexus.origin());
    if unit.simple_holder().is_some() {
        return Err(Fail::Status(Status::RESERVATION_CONFLICT));
    }
    let list = data.get(..command.list_length as usize).ok_or(ScsiError::ListLength)?;
    let parameters = Parameters::parse(command.action, list)?;
    if parameters.persist && !unit.can_persist() {
        return Err(ScsiError::list(20, 0).into());
    }
    if !may_block {
        return Err(Fail::WouldBlock);
    }
    let kept = Fail::Sense(Sense::new(SenseKey::HARDWARE_ERROR, Asc::INTERNAL_TARGET_FAILURE));
    let effect = unit.change_reservations(kept, |before| {
        // Others may have held it up, and a disk them.
        request.check_aborted()?;
        let effect = act(before, origin, command, &parameters)?;
        Ok((effect.state.clone(), effect))
    })?;
    for (port, notice) in &effect.notices {
        unit.establish(port, attention(*notice));
    }
    let aborts = match command.action {
        ReserveOut::PreemptAndAbort => effect.removed,
        _ => Vec::new(),
    };
    Ok(Done { aborts, ..Done::good(command.list_length.into()) })
}

fn act(
    before: &Reservations,
    origin: Origin<'_>,
    command: PersistentReserveOut,
    parameters: &Parameters,
) -> Result<Effect, Fail> {
    let port = origin.port;
    let (key, new, persist) = (parameters.key, parameters.action_key, parameters.persist);
    let kind = || match Kind::of(command.kind) {
        Some(kind) if command.scope == UNIT_SCOPE => Ok(kind),
        _ => Err(bad_field(2)),
    };
    let effect = match (command.action, &parameters.more) {
        (ReserveOut::Register, More::Plain { initiators, .. }) => {
            let others = initiators.iter().map(as_port).collect::<Result<Vec<_>, _>>()?;
            before.register(origin, Some(key), new, &others, persist)
        }
        (ReserveOut::RegisterAndIgnore, _) => before.register(origin, None, new, &[], persist),
        (ReserveOut::Reserve, _) => before.reserve(port, key, kind()?),
        (ReserveOut::Release, _) => before.release(port, key, kind()?),
        (ReserveOut::Clear, _) => before.clear(port, key),
        (ReserveOut::Preempt | ReserveOut::PreemptAndAbort, _) => {
            before.preempt(port, key, new, kind()?)
        }
        (ReserveOut::RegisterAndMove, More::Move { unregister, port: to_port, initiator }) => {
            if *to_port != PORT {
                return Err(ScsiError::list(18, 7).into());
            }
            let to = as_port(initiator)?;
            before.transfer(origin, (key, new), &to, *unregister, persist)
        }
        (ReserveOut::Register | ReserveOut::RegisterAndMove, _) => Err(Refused::InvalidAction),
    };
    effect.map_err(refused)
}

/// The initiator port of a TransportID: a whole initiator is none.
fn as_port(id: &TransportId) -> Result<Port, Fail> {
    let Some(Isid(isid)) = id.isid else { return Err(ScsiError::list(24, 7).into()) };
    Ok(Port { name: id.name.clone(), isid })
}

fn refused(why: Refused) -> Fail {
    match why {
        Refused::Conflict => Fail::Status(Status::RESERVATION_CONFLICT),
        Refused::InvalidRelease => illegal(Asc::INVALID_RELEASE),
        Refused::InvalidParameter => ScsiError::list(8, 7).into(),
        Refused::InvalidAction => bad_field(1),
        Refused::Full => {
            Limit::Registrations.count();
            illegal(Asc::INSUFFICIENT_REGISTRATIONS)
        }
    }
}

const fn attention(notice: Notice) -> Asc {
    match notice {
        Notice::ReservationsPreempted => Asc::RESERVATIONS_PREEMPTED,
        Notice::ReservationsReleased => Asc::RESERVATIONS_RELEASED,
        Notice::RegistrationsPreempted => Asc::REGISTRATIONS_PREEMPTED,
    }
}
