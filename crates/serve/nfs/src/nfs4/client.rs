//! The identity of a client: SETCLIENTID, SETCLIENTID_CONFIRM, RENEW (RFC 7530 §16.33, §16.34,
//! §16.31), EXCHANGE_ID, DESTROY_CLIENTID, RECLAIM_COMPLETE (RFC 8881 §18.35, §18.50, §18.51).

use base::text::decimal;
use std::net::{IpAddr, SocketAddr};

use wire::nfs4::{
    Clientaddr4, ClientidArgs4, ExchangeIdArgs4, ExchangeIdResOk4, Nfsstat4, Opaque4,
    ReclaimCompleteArgs4, ServerOwner4, SetclientidArgs4, SetclientidConfirmArgs4, SetclientidRes4,
    SetclientidResOk4, StateProtectA4, StateProtectR4, exchgid4,
};
use wire::xdr::Encode;

use super::run::{CompoundContext, Fail, Handled};
use super::state::channel::Callback;
use super::state::{By, State};
use super::stateful::Stateful;

/// What may end a client strikes it out of the records: not on a connection's thread.
pub(super) fn wait_for_records(run: &CompoundContext<'_>) -> Handled {
    if run.may_block { Ok(()) } else { Err(Fail::WouldBlock) }
}

/// The principal and address of the caller.
pub(super) fn by(run: &CompoundContext<'_>) -> By {
    By { principal: run.peer.cred.uid, address: run.peer.address.0 }
}

pub(super) fn setclientid(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &SetclientidArgs4<'_>,
) -> Handled {
    let now = keeper.now();
    let (id, verifier) = (args.client.id.0, args.client.verifier);
    match keeper.state.setclientid(id, verifier, by(run), now) {
        Ok((clientid, confirm)) => {
            let address = callback_address(&args.callback.location, run.peer.address.0);
            let (program, ident) = (args.callback.program, args.callback_ident);
            let callback = Callback { address, program, ident };
            keeper.state.propose_callback(clientid, confirm, callback);
            run.ok(&SetclientidResOk4 { clientid, confirm })
        }
        Err(Nfsstat4::CLID_INUSE) => {
            SetclientidRes4::IN_USE.encode(&mut run.writer());
            Err(Fail::Written(Nfsstat4::CLID_INUSE))
        }
        Err(status) => Err(status.into()),
    }
}

/// The address for callbacks to a client: a universal address (RFC 5665 §5.2.3.3) on the machine
/// that it calls from, so that a client cannot make this server connect to other machines.
fn callback_address(location: &Clientaddr4<'_>, from: IpAddr) -> Option<SocketAddr> {
    if !matches!(location.netid.0, b"tcp" | b"tcp6") {
        return None;
    }
    let mut parts = std::str::from_utf8(location.addr.0).ok()?.rsplitn(3, '.');
    let low: u8 = decimal(parts.next()?)?;
    let high: u8 = decimal(parts.next()?)?;
    let host: IpAddr = parts.next()?.parse().ok()?;
    let port = u16::from_be_bytes([high, low]);
    (host.to_canonical() == from && port != 0).then_some(SocketAddr::new(from, port))
}

pub(super) fn confirm(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &SetclientidConfirmArgs4,
) -> Handled {
    wait_for_records(run)?;
    let principal = run.peer.cred.uid;
    keeper.state.setclientid_confirm(args.clientid, args.confirm, principal, keeper.now())?;
    if let Some(client) = keeper.state.confirm_callback(args.clientid, args.confirm) {
        keeper.state.recalls.probe(&client);
    }
    run.ok(&())
}

pub(super) fn renew(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &ClientidArgs4,
) -> Handled {
    let now = keeper.now();
    let client = keeper.state.renew(args.clientid, now)?;
    let down = keeper.state.path_is_down(&client);
    if keeper.state.should_probe(&client, now) {
        keeper.state.recalls.probe(&client);
    }
    if down { Err(Nfsstat4::CB_PATH_DOWN.into()) } else { run.ok(&()) }
}

pub(super) fn exchange_id(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &ExchangeIdArgs4<'_>,
) -> Handled {
    if args.flags & !exchgid4::MASK_A != 0 {
        return Err(Nfsstat4::INVAL.into());
    }
    wait_for_records(run)?;
    match args.state_protect {
        StateProtectA4::None(()) => {}
        // Both need a flavour with integrity, which there is not.
        StateProtectA4::MachCred(_) => return Err(Nfsstat4::INVAL.into()),
        StateProtectA4::Ssv(_) => return Err(Nfsstat4::ENCR_ALG_UNSUPP.into()),
    }
    let update = args.flags & exchgid4::UPD_CONFIRMED_REC_A != 0;
    let owner = &args.clientowner;
    let (by, now) = (by(run), keeper.now());
    let answer = keeper.state.exchange_id(owner.ownerid.0, owner.verifier, update, by, now)?;
    let (client, was_confirmed) = answer;
    let confirmed = if was_confirmed { exchgid4::CONFIRMED_R } else { 0 };
    let server = Opaque4(&keeper.server_owner);
    run.ok(&ExchangeIdResOk4 {
        clientid: client.id,
        sequenceid: State::next_create(&client),
        flags: exchgid4::USE_NON_PNFS | confirmed,
        state_protect: StateProtectR4::None(()),
        server_owner: ServerOwner4 { minor_id: 0, major_id: server },
        server_scope: server,
        server_impl_id: None,
    })
}

pub(super) fn destroy(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &ClientidArgs4,
) -> Handled {
    wait_for_records(run)?;
    keeper.state.destroy_clientid(args.clientid)?;
    run.ok(&())
}

pub(super) fn reclaim_complete(
    keeper: &Stateful,
    run: &mut CompoundContext<'_>,
    args: &ReclaimCompleteArgs4,
) -> Handled {
    let client = keeper.of_session(run)?;
    wait_for_records(run)?;
    if args.one_fs {
        // File systems do not move, so there is nothing to reclaim of one alone.
        run.current()?;
    } else {
        keeper.state.record_reclaimed(&client)?;
        keeper.state.reclaim_complete(&client)?;
        // It may have been the last one.
        keeper.state.end_grace_if_due(keeper.now());
    }
    run.ok(&())
}
