//! Sessions: CREATE_SESSION, DESTROY_SESSION, SEQUENCE, BIND_CONN_TO_SESSION (RFC 8881 §18.36,
//! §18.37, §18.46, §18.34), and TEST_STATEID, FREE_STATEID (§18.48, §18.38).

use wire::nfs4::{
    BackchannelCtlArgs4, BindConnArgs4, BindConnResOk4, CreateSessionArgs4, DestroySessionArgs4,
    FreeStateidArgs4, Nfsstat4, SequenceArgs4, SequenceResOk4, TestStateidArgs4, TestStateidResOk4,
    channel_dir4, create_session4,
};
use wire::xdr::Seq;

use super::Slot;
use super::client::{by, wait_for_records};
use super::run::{CompoundContext, Fail, Handled};
use super::state::channel::CallbackCred;
use super::state::{NewSession, SlotDecision};
use super::stateful::Stateful;

/// Bytes of an RPC call's header without credentials: a request is counted with it (RFC 8881
/// §18.36.3), and credentials are given to the client for nothing.
const RPC_HEADER_MIN: usize = 40;
/// All flags of CREATE_SESSION.
const CREATE_FLAGS: u32 =
    create_session4::PERSIST | create_session4::CONN_BACK_CHAN | create_session4::CONN_RDMA;

pub(super) fn create(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &CreateSessionArgs4<'_>,
) -> Handled {
    if args.flags & !CREATE_FLAGS != 0 {
        return Err(Nfsstat4::INVAL.into());
    }
    // Callbacks with a flavour that we do not have could not be made.
    let cred = CallbackCred::choose(&args.sec_parms.0).ok();
    let asked = args.flags & create_session4::CONN_BACK_CHAN != 0 && cred.is_some();
    let back = run.peer.back.filter(|_| asked);
    let new = NewSession {
        clientid: args.clientid,
        sequence: args.sequence,
        // Replies are not kept over a restart.
        flags: if back.is_some() { create_session4::CONN_BACK_CHAN } else { 0 },
        fore: args.fore_chan_attrs,
        back: args.back_chan_attrs,
        cb_program: args.cb_program,
    };
    wait_for_records(run)?;
    let done = keeper.state.create_session(&new, by(run), keeper.now())?;
    let session = keeper.state.session(&done.sessionid)?;
    let minor = run.minor();
    keeper.state.with_channel(&session, |channel| {
        channel.set_minor(minor);
        if let Some(cred) = cred {
            channel.set(args.cb_program, cred);
        }
        if let Some(back) = back {
            channel.bind(back);
        }
    });
    run.ok(&done)
}

pub(super) fn destroy(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &DestroySessionArgs4,
) -> Handled {
    let own = run.progress.slot.is_some_and(|slot| slot.session == args.sessionid);
    if own && run.progress.done + 1 != run.progress.count {
        return Err(Nfsstat4::NOT_ONLY_OP.into());
    }
    keeper.state.destroy_session(&args.sessionid, own)?;
    run.ok(&())
}

pub(super) fn sequence(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &SequenceArgs4,
) -> Handled {
    let session = keeper.state.session(&args.sessionid)?;
    if run.progress.count > session.fore.maxoperations {
        return Err(Nfsstat4::TOO_MANY_OPS.into());
    }
    if run.progress.message + RPC_HEADER_MIN > session.fore.maxrequestsize as usize {
        return Err(Nfsstat4::REQ_TOO_BIG.into());
    }
    let asked = (run.peer.cred.uid, run.progress.count);
    if let SlotDecision::Again(results) = session.sequence(args, asked, keeper.now())? {
        return Err(Fail::Replay(results));
    }
    run.progress.acting.set(Some(session.client.key()));
    let kept = session.fore.maxresponsesize_cached as usize;
    run.hold_slot(
        Slot { session: args.sessionid, slot: args.slotid },
        session.fore.maxresponsesize as usize,
        args.cachethis.then_some(kept),
    );
    let highest = session.slots() - 1;
    let status_flags = keeper.state.status_flags(&session);
    // The client may be removed meanwhile: further operations on its state then fail.
    run.progress.session = Some(session);
    run.ok(&SequenceResOk4 {
        sessionid: args.sessionid,
        sequenceid: args.sequenceid,
        slotid: args.slotid,
        highest_slotid: highest,
        target_highest_slotid: highest,
        status_flags,
    })
}

/// Any connection serves any session (SP4_NONE), so only the back channel is to be remembered.
pub(super) fn bind(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &BindConnArgs4,
) -> Handled {
    let session = keeper.state.session(&args.sessid)?;
    session.client.renew(keeper.now());
    let back = match args.dir {
        channel_dir4::FORE => None,
        channel_dir4::BACK | channel_dir4::FORE_OR_BOTH | channel_dir4::BACK_OR_BOTH => {
            run.peer.back
        }
        _ => return Err(Nfsstat4::INVAL.into()),
    };
    let connection = run.peer.connection;
    keeper.state.with_channel(&session, |channel| match back {
        Some(back) => channel.bind(back),
        None => channel.unbind(connection),
    });
    let dir = match (args.dir, back) {
        (channel_dir4::BACK, Some(_)) => channel_dir4::BACK,
        (_, Some(_)) => channel_dir4::BOTH,
        (_, None) => channel_dir4::FORE,
    };
    run.ok(&BindConnResOk4 { sessid: args.sessid, dir, use_rdma: false })
}

/// BACKCHANNEL_CTL (RFC 8881 §18.33).
pub(super) fn backchannel_ctl(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &BackchannelCtlArgs4<'_>,
) -> Handled {
    let slot = run.progress.slot.ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    let session = keeper.state.session(&slot.session)?;
    let cred = CallbackCred::choose(&args.sec_parms.0)?;
    keeper.state.with_channel(&session, |channel| channel.set(args.cb_program, cred));
    run.ok(&())
}

pub(super) fn test_stateid(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &TestStateidArgs4,
) -> Handled {
    let client = keeper.of_session(run)?;
    let codes = args.stateids.0.iter().map(|id| keeper.state.test_stateid(&client, id)).collect();
    run.ok(&TestStateidResOk4 { status_codes: Seq(codes) })
}

pub(super) fn free_stateid(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &FreeStateidArgs4,
) -> Handled {
    let client = keeper.of_session(run)?;
    let id = run.stateid(&args.stateid)?;
    keeper.state.free_stateid(&client, &id)?;
    run.ok(&())
}
