//! Locks that are waited for: the callbacks, and the effect of their replies.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;

use socket2::{Domain, Socket, Type};
use vfs::handle::Handle;
use wire::nlm4::*;

use crate::client::stream::Stream;
use crate::client::{Client, PATIENCE};
use crate::host::{COOKIE, Host, Services, args};
use crate::server::{Server, World, wait_for};

/// A world with hosts that reply, a server, and two of the hosts.
fn stage() -> (Services, World, Server, Host, Host) {
    let services = Services::start();
    let world = World::new(services.portmap);
    let server = Server::start(&world);
    let (one, two) = (Host::new(server.addr, "one"), Host::new(server.addr, "two"));
    (services, world, server, one, two)
}

fn nothing_waits(server: &Server) {
    wait_for("nothing is under way", || (server.nlm.blocked() == 0).then_some(()));
}

/// A lock that its client does not take is removed after its request is.
fn nothing_is_locked(server: &Server) {
    let none = || (server.locks.counts().locks == 0).then_some(());
    wait_for("no lock is held", none);
}

/// The first host has a lock that the second one waits for, and gives it back.
fn hand_over(file: &Handle, one: &mut Host, two: &mut Host) {
    one.lock(file, 0, 0);
    two.lock_waiting(file, 0, 0);
    one.unlock(file, 0, 0);
}

#[test]
fn a_waiting_client_is_called() {
    let (services, world, server, mut one, mut two) = stage();
    let file = world.file("f", 0o644);
    assert_eq!(one.lock(&file, 5, 10), Nlm4Stat::GRANTED);
    two.svid = 99;
    assert_eq!(two.lock_waiting(&file, 0, 0), Nlm4Stat::BLOCKED);
    assert_eq!(two.lock_waiting(&file, 0, 0), Nlm4Stat::BLOCKED, "asked again");
    assert_eq!(server.nlm.blocked(), 1);
    assert_eq!(one.unlock(&file, 5, 10), Nlm4Stat::GRANTED);
    let heard = services.receive();
    assert_eq!((heard.prog, heard.proc), (NLM_PROGRAM, Proc::GRANTED.0));
    let call: TestArgs<'_> = heard.decode();
    assert!(call.exclusive);
    assert_eq!(call.alock, two.alock(&file, 0, 0));
    nothing_waits(&server);
    assert_eq!(one.lock_shared(&file, 5, 1), Nlm4Stat::DENIED, "it has it");
    assert_eq!(two.unlock(&file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(server.locks.counts().locks, 0);
}

#[test]
fn a_client_that_no_longer_wants_it_loses_it() {
    let (services, world, server, mut one, mut two) = stage();
    let file = world.file("f", 0o644);
    *services.answer.lock().unwrap() = Nlm4Stat::DENIED;
    hand_over(&file, &mut one, &mut two);
    services.receive();
    nothing_waits(&server);
    nothing_is_locked(&server);
}

#[test]
fn a_client_without_a_reply_is_called_again() {
    let (services, world, server, mut one, mut two) = stage();
    let file = world.file("f", 0o644);
    services.deaf.store(2, Ordering::SeqCst);
    hand_over(&file, &mut one, &mut two);
    let calls = [services.receive(), services.receive(), services.receive()];
    assert!(calls.iter().all(|call| *call == calls[0]), "the same each time");
    nothing_waits(&server);
    assert_eq!(one.lock(&file, 0, 0), Nlm4Stat::DENIED);
}

#[test]
fn a_client_that_may_have_been_notified_retains_it() {
    let (services, world, server, mut one, mut two) = stage();
    let file = world.file("f", 0o644);
    services.deaf.store(1, Ordering::SeqCst);
    *services.answer.lock().unwrap() = Nlm4Stat::DENIED;
    hand_over(&file, &mut one, &mut two);
    // It took the lock at the first call, and waits no more at the second.
    services.receive();
    services.receive();
    assert_eq!(one.lock(&file, 0, 0), Nlm4Stat::DENIED);
    // If it did not, it cancels.
    assert_eq!(two.cancel(&file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(server.locks.counts().locks, 0);
    assert_eq!(server.nlm.blocked(), 0);
}

#[test]
fn an_unreachable_client_loses_it() {
    // Nothing listens on this port.
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut one = Host::new(server.addr, "one");
    let mut two = Host::new(server.addr, "two");
    hand_over(&file, &mut one, &mut two);
    assert_eq!(server.nlm.blocked(), 1);
    nothing_waits(&server);
    nothing_is_locked(&server);
}

#[test]
fn a_repeated_request_ends_the_callbacks() {
    let (services, world, server, mut one, mut two) = stage();
    let file = world.file("f", 0o644);
    services.deaf.store(usize::MAX, Ordering::SeqCst);
    hand_over(&file, &mut one, &mut two);
    services.receive();
    assert_eq!(two.lock_waiting(&file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(server.nlm.blocked(), 0);
    assert_eq!(one.lock(&file, 0, 0), Nlm4Stat::DENIED);
}

#[test]
fn waiting_is_cancelled() {
    let (services, world, server, mut one, mut two) = stage();
    let file = world.file("f", 0o644);
    one.lock(&file, 0, 0);
    assert_eq!(two.cancel(&file, 0, 0), Nlm4Stat::DENIED, "nothing waits");
    two.lock_waiting(&file, 0, 0);
    assert_eq!(two.cancel(&file, 1, 0), Nlm4Stat::DENIED, "not for these bytes");
    assert_eq!(two.cancel(&file, 0, 0), Nlm4Stat::GRANTED);
    one.unlock(&file, 0, 0);
    assert_eq!(server.locks.counts().locks, 0);
    // Cancelled when it was granted already, and the client does not know yet.
    services.deaf.store(usize::MAX, Ordering::SeqCst);
    hand_over(&file, &mut one, &mut two);
    services.receive();
    assert_eq!(two.cancel(&file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(server.locks.counts().locks, 0);
    assert_eq!(server.nlm.blocked(), 0);
}

#[test]
fn to_wait_for_oneself_is_refused() {
    let (_services, world, server, mut one, mut two) = stage();
    let (a, b) = (world.file("a", 0o644), world.file("b", 0o644));
    one.lock(&a, 0, 0);
    two.lock(&b, 0, 0);
    assert_eq!(one.lock_waiting(&b, 0, 0), Nlm4Stat::BLOCKED);
    assert_eq!(two.lock_waiting(&a, 0, 0), Nlm4Stat::DEADLCK);
    assert_eq!(server.nlm.blocked(), 1);
}

#[test]
fn messages_are_answered_by_calls() {
    let (services, world, server, mut one, _) = stage();
    let file = world.file("f", 0o644);
    let alock = one.alock(&file, 0, 0);
    one.call(Proc::LOCK_MSG, &args(alock)).results::<()>();
    let heard = services.receive();
    assert_eq!(heard.proc, Proc::LOCK_RES.0);
    assert_eq!(heard.decode::<Nlm4Res<'_>>(), Nlm4Res { cookie: COOKIE, stat: Nlm4Stat::GRANTED });
    assert_eq!(server.locks.counts().locks, 1);
    let args = UnlockArgs { cookie: COOKIE, alock: one.alock(&file, 0, 0) };
    one.call(Proc::UNLOCK_MSG, &args).results::<()>();
    assert_eq!(services.receive().proc, Proc::UNLOCK_RES.0);
    assert_eq!(server.locks.counts().locks, 0);
}

#[test]
fn granted_may_be_answered_by_a_call() {
    let (services, world, server, mut one, mut two) = stage();
    let file = world.file("f", 0o644);
    services.deaf.store(usize::MAX, Ordering::SeqCst);
    hand_over(&file, &mut one, &mut two);
    let heard = services.receive();
    let cookie = heard.decode::<TestArgs<'_>>().cookie;
    two.call(Proc::GRANTED_RES, &Nlm4Res { cookie, stat: Nlm4Stat::GRANTED }).results::<()>();
    assert_eq!(server.nlm.blocked(), 0);
    assert_eq!(server.locks.counts().locks, 1);
}

/// Each call waits for its port mapper, and there are places for 64 calls to all hosts.
#[test]
fn an_address_that_does_not_answer_holds_up_itself_only() {
    let (services, world, server, mut one, mut two) = stage();
    let file = world.file("f", 0o644);
    let silent = TcpListener::bind(("127.0.0.2", services.portmap)).expect("its port mapper");
    silent.set_nonblocking(true).unwrap();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
    socket.connect(&server.addr.into()).unwrap();
    let client = Client::over(Stream::over(socket.into(), PATIENCE));
    let mut elsewhere = Host { client, name: "elsewhere", svid: 1 };
    for n in 0..100 {
        let alock = elsewhere.alock(&file, n, 1);
        let args = TestArgs { cookie: COOKIE, exclusive: true, alock };
        elsewhere.call(Proc::TEST_MSG, &args).results::<()>();
    }
    hand_over(&file, &mut one, &mut two);
    services.receive();
    let calls = std::iter::from_fn(|| silent.accept().ok()).count();
    assert!(calls < 32, "{calls} calls are under way");
}
