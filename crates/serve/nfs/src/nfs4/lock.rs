//! LOCK, LOCKT, LOCKU (RFC 8881 §18.10 to §18.12) and RELEASE_LOCKOWNER (RFC 7530 §16.37).

use vfs::fs::access;
use vfs::locks::{HeldRange, Kind, Protocol, Range};
use wire::nfs4::{
    LockArgs4, LockDenied4, LockRes4, Locker4, LocktArgs4, LockuArgs4, Nfsstat4, Opaque4,
    ReleaseLockownerArgs4, StateOwner4, Stateid4, StateidResOk4, locktype4,
};
use wire::xdr::Encode;

use super::run::{CompoundContext, Fail, Handled};
use super::state::{Client, LockRefused, Locking};
use super::stateful::{InTurn, Stateful, regular};
use super::target::Target;

fn range(offset: u64, length: u64) -> Result<Range, Nfsstat4> {
    Range::nfs4(offset, length).ok_or(Nfsstat4::INVAL)
}

fn kind(locktype: u32) -> Result<Kind, Nfsstat4> {
    match locktype {
        locktype4::READ | locktype4::READW => Ok(Kind::Read),
        locktype4::WRITE | locktype4::WRITEW => Ok(Kind::Write),
        _ => Err(Nfsstat4::BADXDR),
    }
}

/// The lock in the way; an owner of another protocol has no client id here.
fn denied<'a>(held: &'a HeldRange) -> LockRes4<'a, StateidResOk4> {
    let clientid = match held.owner.client.protocol {
        Protocol::Nfs4 => held.owner.client.id,
        _ => 0,
    };
    // What another protocol calls an owner may be longer than NFSv4 allows.
    let id = held.owner.id();
    let owner = Opaque4(id.get(..base::limits::NFS4_OPAQUE_LIMIT).unwrap_or(id));
    LockRes4::Denied(LockDenied4 {
        offset: held.range.start,
        length: held.range.nfs4_len(),
        locktype: if held.kind == Kind::Read { locktype4::READ } else { locktype4::WRITE },
        owner: StateOwner4 { clientid, owner },
    })
}

fn put_denied(run: &mut CompoundContext<'_>, held: &HeldRange) -> Handled {
    denied(held).encode(&mut run.writer());
    Err(Fail::Written(Nfsstat4::DENIED))
}

fn answer(run: &mut CompoundContext<'_>, outcome: Result<Stateid4, LockRefused>) -> Handled {
    match outcome {
        Ok(stateid) => {
            if run.minor() > 0 {
                run.progress.current_stateid = Some(stateid);
            }
            run.ok(&StateidResOk4 { stateid })
        }
        Err(LockRefused::Denied(held)) => put_denied(run, &held),
        Err(LockRefused::Status(status)) => Err(status.into()),
    }
}

pub(super) fn lock(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &LockArgs4<'_>,
) -> Handled {
    may_end_others(run)?;
    match &args.locker {
        Locker4::New(new) => {
            let open = run.stateid(&new.open_stateid)?;
            let client = keeper.of_stateid(run, &open)?;
            // From 4.1 on the session identifies the client, and the field is ignored.
            if run.minor() == 0 && new.lock_owner.clientid != client.id {
                return Err(Nfsstat4::STALE_CLIENTID.into());
            }
            let owner = keeper.state.owner_of(&client, &open)?;
            let turn = turn(false, owner.id(), new.open_seqid);
            keeper.in_turn(run, &client, &turn, |run, _| {
                // A repeat of this request has been detected by the open owner's sequence.
                client.renew_lock_owner(new.lock_owner.owner.0);
                let turn = InTurn {
                    may_start: true,
                    ..turn_of_lock(new.lock_owner.owner.0, new.lock_seqid)
                };
                keeper.in_turn(run, &client, &turn, |run, _| {
                    let (_, key) = regular(run)?;
                    admit(keeper, &client, args)?;
                    let want = Locking {
                        owner: client.owner(new.lock_owner.owner.0)?,
                        range: range(args.offset, args.length)?,
                        kind: kind(args.locktype)?,
                    };
                    let done = keeper.state.lock_new(&client, &open, key, &want, keeper.now());
                    answer(run, done)
                })
            })
        }
        Locker4::Existing(old) => {
            let id = run.stateid(&old.lock_stateid)?;
            let client = keeper.of_stateid(run, &id)?;
            let owner = keeper.state.owner_of(&client, &id)?;
            keeper.in_turn(run, &client, &turn_of_lock(owner.id(), old.lock_seqid), |run, _| {
                let (_, key) = regular(run)?;
                admit(keeper, &client, args)?;
                let (range, kind) = (range(args.offset, args.length)?, kind(args.locktype)?);
                let done = keeper.state.lock_more(&client, &id, key, range, kind, keeper.now());
                answer(run, done)
            })
        }
    }
}

/// An expired client with a conflicting lock is removed, and its record with it: not on a
/// connection's thread.
fn may_end_others(run: &CompoundContext<'_>) -> Handled {
    if run.may_block { Ok(()) } else { Err(Fail::WouldBlock) }
}

/// Whether a lock may be taken now: reclaimed in the grace period, new ones after it.
fn admit(keeper: &Stateful, client: &Client, args: &LockArgs4<'_>) -> Result<(), Nfsstat4> {
    match args.reclaim {
        true => keeper.state.may_reclaim(client),
        false => keeper.state.may_take(client),
    }
}

fn turn(locks: bool, owner: &[u8], seqid: u32) -> InTurn<'_> {
    InTurn { locks, owner, seqid, may_start: false, confirms: false, opens: false }
}

fn turn_of_lock(owner: &[u8], seqid: u32) -> InTurn<'_> {
    InTurn { confirms: true, ..turn(true, owner, seqid) }
}

/// Whether the caller may learn the owners of locks on a file: LOCKT needs no open, so its rights
/// have not been checked before. As with NLM, they are the right to read the file, or its
/// ownership.
fn check_may_see(run: &CompoundContext<'_>, target: &Target) -> Result<(), Fail> {
    let cx = run.cx();
    let asked = access::READ | access::EXECUTE;
    let (granted, attr) = target.share.fs.access(cx, &target.handle, asked)?;
    let may = granted != 0 || attr.uid == cx.cred.uid;
    if may { Ok(()) } else { Err(Nfsstat4::ACCESS.into()) }
}

pub(super) fn lockt(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &LocktArgs4<'_>,
) -> Handled {
    may_end_others(run)?;
    let client = keeper.of_clientid(run, args.owner.clientid)?;
    let (target, key) = regular(run)?;
    check_may_see(run, &target)?;
    let want = Locking {
        owner: client.owner(args.owner.owner.0)?,
        range: range(args.offset, args.length)?,
        kind: kind(args.locktype)?,
    };
    if keeper.state.in_grace() {
        return Err(Nfsstat4::GRACE.into());
    }
    let test = || keeper.state.lock_test(key, &want, keeper.now());
    if let Some(held) = test() {
        return put_denied(run, &held);
    }
    // Under a delegation its holder may lock without a request.
    if !keeper.state.locks.may_test(key, client.key(), want.kind) {
        return Err(Nfsstat4::DELAY.into());
    }
    match test() {
        Some(held) => put_denied(run, &held),
        None => run.ok(&()),
    }
}

pub(super) fn locku(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &LockuArgs4,
) -> Handled {
    let id = run.stateid(&args.lock_stateid)?;
    let client = keeper.of_stateid(run, &id)?;
    let owner = keeper.state.owner_of(&client, &id)?;
    keeper.in_turn(run, &client, &turn_of_lock(owner.id(), args.seqid), |run, _| {
        let key = keeper.given_back(run, &client, &id)?;
        kind(args.locktype)?;
        let range = range(args.offset, args.length)?;
        let done = keeper.state.unlock(&client, &id, key, range);
        answer(run, done.map_err(LockRefused::Status))
    })
}

pub(super) fn release(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &ReleaseLockownerArgs4<'_>,
) -> Handled {
    let client = keeper.of_clientid(run, args.lock_owner.clientid)?;
    keeper.state.release_lockowner(&client, &client.owner(args.lock_owner.owner.0)?)?;
    run.ok(&())
}
