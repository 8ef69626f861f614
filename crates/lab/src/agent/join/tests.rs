//! Both sides prove the code, on this connection and no other.

use super::*;
use crate::agent::code::Codes;
use base::clock::monotonic_ns;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;

const WAIT: Duration = Duration::from_secs(60);

/// A listener that answers one peer by what `answer` makes of it.
fn listener(
    answer: impl FnOnce(Arrival) + Send + 'static,
) -> (String, std::thread::JoinHandle<io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let served = std::thread::spawn(move || {
        let (socket, _) = listener.accept()?;
        let identity = Identity::new()?;
        answer(Arrival::read(socket, &identity, Deadline::after(WAIT), || ())?);
        Ok(())
    });
    (at, served)
}

fn caller<'a>(identity: &'a Identity, code: &'a JoinCode) -> Caller<'a> {
    Caller { role: Role::Controller, identity, code, pinned: None }
}

#[test]
fn both_sides_join_by_the_code() {
    let (code, identity) = (JoinCode::made(), Identity::new().unwrap());
    let own = code.clone();
    let (at, served) = listener(move |arrival| {
        assert!(arrival.proves(&own) && arrival.unfit(Role::Agent).is_none());
        drop(arrival.welcome(Role::Agent, &own).unwrap());
    });
    let joined = caller(&identity, &code).call(&at).unwrap();
    assert_eq!(joined.program, PROGRAM);
    served.join().unwrap().unwrap();
}

#[test]
fn a_listener_without_the_code_is_an_impostor() {
    let (code, identity) = (JoinCode::made(), Identity::new().unwrap());
    let (at, _served) = listener(|arrival| {
        let _joined = arrival.welcome(Role::Agent, &JoinCode::made());
    });
    let error = caller(&identity, &code).call(&at).unwrap_err();
    assert!(matches!(error, JoinError::Impostor(_)), "{error}");
}

#[test]
fn a_listener_that_was_restarted_is_recognised() {
    let (code, identity) = (JoinCode::made(), Identity::new().unwrap());
    let own = code.clone();
    let (at, _served) = listener(move |arrival| drop(arrival.welcome(Role::Agent, &own)));
    let pinned = Some(Fingerprint([0; 32]));
    let error = Caller { pinned, ..caller(&identity, &code) }.call(&at).unwrap_err();
    assert!(matches!(error, JoinError::Changed(_)), "{error}");
}

/// A program in between that ends TLS on both sides and passes on all messages: it has a connection
/// with each, and the code of neither.
#[test]
fn a_program_in_between_is_refused() {
    let (code, identity) = (JoinCode::made(), Identity::new().unwrap());
    let mut codes = Codes::new(code.clone(), 1, WAIT, false);
    let (verdict, seen) = channel();
    let (agent, _served) = listener(move |arrival| {
        let recognised = codes.recognises(|code| arrival.proves(code));
        let redeemed =
            codes.redeem(monotonic_ns(), arrival.peer, |code| arrival.proves(code)).is_ok();
        verdict.send((recognised, redeemed)).unwrap();
        arrival.refuse_code(Refusal::WrongCode, Role::Agent);
    });
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = between.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let own = Identity::new().unwrap();
        let (socket, _) = between.accept().unwrap();
        let bound = || Bound { deadline: Deadline::after(WAIT), left: LAB_AGENT_HELLO_MAX };
        let (near, ..) = Channel::open(socket, &own, true, &mut bound()).unwrap();
        let socket = TcpStream::connect(agent).unwrap();
        let (far, ..) = Channel::open(socket, &own, false, &mut bound()).unwrap();
        let greeting: Greeting = proto::receive(&mut &near).unwrap();
        proto::send(&mut &far, &greeting).unwrap();
        let reply: Reply = proto::receive(&mut &far).unwrap();
        proto::send(&mut &near, &reply).unwrap();
        let _end = (&near).read(&mut [0]);
    });
    let error = caller(&identity, &code).call(&at).unwrap_err();
    assert!(matches!(error, JoinError::Refused { why: Refusal::WrongCode, .. }), "{error}");
    assert_eq!(seen.recv_timeout(WAIT).unwrap(), (false, false));
}

#[test]
fn another_version_is_named_with_both_programs() {
    let (code, identity) = (JoinCode::made(), Identity::new().unwrap());
    let (at, _served) = listener(|mut arrival| {
        (arrival.greeting.versions, arrival.greeting.program) = ((7, 8), "plimsoll 9".into());
        let (why, what) = arrival.unfit(Role::Agent).unwrap();
        arrival.refuse(why, what, true);
    });
    let error = caller(&identity, &code).call(&at).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, JoinError::Refused { why: Refusal::Version, .. }), "{text}");
    for part in ["plimsoll 9 speaks 7 to 8", PROGRAM, "same version"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn two_of_a_kind_do_not_join() {
    let (code, identity) = (JoinCode::made(), Identity::new().unwrap());
    let (at, _served) = listener(|arrival| {
        let (why, what) = arrival.unfit(Role::Controller).unwrap();
        arrival.refuse(why, what, true);
    });
    let error = caller(&identity, &code).call(&at).unwrap_err();
    assert!(matches!(error, JoinError::Refused { why: Refusal::Role, .. }), "{error}");
}

#[test]
fn versions_before_tls_are_recognised_in_both_directions() {
    // An earlier controller gets a message in its own form.
    let (at, served) = listener(|_| panic!("no arrival"));
    let mut socket = TcpStream::connect(&at).unwrap();
    let hello = serde_json::json!({"type": "hello", "versions": [2, 2], "token": "t"});
    proto::send(&mut socket, &hello).unwrap();
    let reply: FromAgent = proto::receive(&mut socket).unwrap();
    let FromAgent::Failed { what } = reply else { panic!("{reply:?}") };
    assert!(what.contains("requires TLS") && what.contains("update the controller"), "{what}");
    assert!(served.join().unwrap().is_err());
    // An earlier agent, and another service.
    let identity = Identity::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _read = socket.read(&mut [0; 4096]);
        let _sent = socket.write_all(b"220 FTP server\r\n");
        let _end = socket.read(&mut [0; 4096]);
    });
    let error = caller(&identity, &JoinCode::made()).call(&at).unwrap_err();
    assert!(matches!(error, JoinError::Foreign(..)), "{error}");
}

#[test]
fn an_address_without_listener_is_named() {
    let identity = Identity::new().unwrap();
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let error = caller(&identity, &JoinCode::made()).call(&at).unwrap_err();
    assert!(matches!(error, JoinError::Connect(..)), "{error}");
}
