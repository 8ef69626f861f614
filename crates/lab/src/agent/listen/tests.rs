//! An agent that listens, with peers that send nothing, too much, or something wrong.

use super::*;
use crate::agent::allow::Owner;
use crate::agent::join::{Caller, JoinError};
use crate::agent::proto::{self, FromAgent, Prepare, ToAgent};
use crate::workload::Shape;
use base::limits::{LAB_AGENT_HELLO_TIME_MAX, LAB_CODE_LIFE};
use base::random::{Random, SystemRandom};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// How long anything may take on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

struct Scene {
    address: SocketAddr,
    code: JoinCode,
}

impl Scene {
    fn new(allowed: Allowed) -> Self {
        Self::with(allowed, 64, LAB_CODE_LIFE)
    }

    /// An agent with a code for a number of controllers and a time.
    fn with(allowed: Allowed, uses: u32, life: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, code) = (listener.local_addr().unwrap(), JoinCode::made());
        let codes = Codes::new(code.clone(), uses, life, false);
        let identity = Identity::new().unwrap();
        let listening = Listening { identity, codes, renewed: |_| (), written: None };
        std::thread::spawn(move || serve(listener, listening, allowed, None));
        Self { address, code }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        stream
    }

    fn join(&self, code: &JoinCode) -> Result<Connection, JoinError> {
        let identity = Identity::new().unwrap();
        let caller = Caller { role: Role::Controller, identity: &identity, code, pinned: None };
        caller.call(&self.address.to_string()).map(|joined| joined.connection())
    }

    fn controller(&self) -> Connection {
        let mut connection = self.join(&self.code).unwrap();
        connection.set_read_timeout(Some(WAIT)).unwrap();
        proto::send(&mut connection, &ToAgent::Hello { versions: proto::VERSIONS }).unwrap();
        let reply: FromAgent = proto::receive(&mut connection).unwrap();
        assert!(matches!(reply, FromAgent::Hello { .. }), "{reply:?}");
        connection
    }
}

fn refusal(joined: Result<Connection, JoinError>) -> (Refusal, String) {
    match joined {
        Err(JoinError::Refused { why, what, .. }) => (why, what),
        other => panic!("{other:?}"),
    }
}

fn prepare(stream: &mut Connection, target: &str) -> FromAgent {
    let shape = Shape {
        kind: serde_json::from_str("\"seqread\"").unwrap(),
        block: 4096,
        files: 1,
        file_size: 65_536,
        own_files: false,
    };
    let prepare = Prepare {
        target: target.to_owned(),
        client: 0,
        bind: None,
        shape,
        seed: 1,
        check_one_in: 1,
        slots: 1,
    };
    proto::send(stream, &ToAgent::Prepare(Box::new(prepare))).unwrap();
    loop {
        match proto::receive(stream).unwrap() {
            FromAgent::Beat { .. } => {}
            answer => return answer,
        }
    }
}

fn closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(WAIT)).unwrap();
    // A TLS alert may come before the end.
    !matches!(stream.read_to_end(&mut Vec::new()), Err(e) if e.kind() == ErrorKind::WouldBlock)
}

#[test]
fn silent_peers_hold_up_no_controller() {
    let agent = Scene::new(Allowed::default());
    let mut silent: Vec<TcpStream> =
        (0..8 * LAB_AGENT_STRANGERS_MAX).map(|_| agent.connect()).collect();
    // Some that send a byte at a time.
    for stream in silent.iter_mut().step_by(3) {
        let _gone = stream.write_all(&[22]);
    }
    let begun = Instant::now();
    let mut controller = agent.controller();
    assert!(begun.elapsed() < LAB_AGENT_HELLO_TIME_MAX, "{:?}", begun.elapsed());
    assert!(matches!(prepare(&mut controller, "null:"), FromAgent::Prepared { .. }));
    // The oldest were disconnected, the others end with their time.
    assert!(silent.iter_mut().all(closed));
}

#[test]
fn a_first_message_in_pieces_does_not_last_longer() {
    let agent = Scene::new(Allowed::default());
    let mut slow = agent.connect();
    slow.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (begun, mut ended) = (Instant::now(), false);
    while !ended && begun.elapsed() < WAIT {
        let sent = slow.write_all(&[22]);
        let read = slow.read(&mut [0; 8]);
        ended = sent.is_err() || matches!(read, Ok(0));
    }
    assert!(ended, "the deadline is for the whole message");
}

#[test]
fn wrong_first_messages_are_refused_and_learn_nothing() {
    let agent = Scene::new(Allowed::default());
    let identity = Identity::new().unwrap();
    let code = &JoinCode::made();
    for role in [Role::Controller, Role::Agent] {
        let caller = Caller { role, identity: &identity, code, pinned: None };
        let refused = caller.call(&agent.address.to_string());
        let Err(JoinError::Refused { why: Refusal::WrongCode, what, program: None, .. }) = refused
        else {
            panic!("{refused:?}")
        };
        assert!(what.contains("wrong join code") && !what.contains(join::PROGRAM), "{what}");
    }
    // What is no handshake, or one that is too long.
    let long = [&[22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff][..], &[0; 64 << 10]].concat();
    for bytes in [&[22, 3, 3, 0, 1, 0][..], &[0xff; 64], b"GET / HTTP/1.0\r\n\r\n", &long] {
        let mut stream = agent.connect();
        let _gone = stream.write_all(bytes);
        assert!(closed(&mut stream));
    }
    drop(agent.controller());
}

#[test]
fn a_code_is_used_once_and_expires() {
    let agent = Scene::with(Allowed::default(), 1, LAB_CODE_LIFE);
    drop(agent.controller());
    let (why, what) = refusal(agent.join(&agent.code));
    assert!(why == Refusal::UsedCode && what.contains("has been used"), "{what}");
    let agent = Scene::with(Allowed::default(), 1, Duration::ZERO);
    let (why, what) = refusal(agent.join(&agent.code));
    assert!(why == Refusal::ExpiredCode && what.contains("has expired"), "{what}");
}

#[test]
fn one_controller_at_a_time_is_served_and_others_are_refused_in_words() {
    let agent = Scene::new(Allowed::default());
    let first = agent.controller();
    let (why, what) = refusal(agent.join(&agent.code));
    assert!(why == Refusal::Busy && what.contains("in use by another controller"), "{what}");
    first.shutdown();
    // The next one gets the permit as soon as it is free.
    agent.controller().shutdown();
    agent.controller().shutdown();
}

#[test]
fn a_controller_over_tcp_gets_no_file_that_is_not_listed() {
    let name = format!("plimsoll-agent-{:016x}", SystemRandom.next_u64());
    let top = std::env::temp_dir().canonicalize().unwrap().join(name);
    std::fs::create_dir_all(top.join("listed")).unwrap();
    let disk = |name: &str| -> PathBuf {
        let path = top.join(name);
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        path
    };
    let (disk, other) = (disk("disk"), disk("other"));
    let target = |scheme: &str, path: &PathBuf| format!("{scheme}:{}", path.display());
    let listed = top.join("listed");

    let agent = Scene::new(Allowed::default());
    let mut controller = agent.controller();
    for target in [target("path", &listed), target("path", &top), target("block", &disk)] {
        let answer = prepare(&mut controller, &target);
        let FromAgent::Failed { what } = answer else { panic!("{target}: {answer:?}") };
        assert!(what.contains("--allow-"), "{what}");
    }
    assert_eq!(std::fs::read_dir(&listed).unwrap().count(), 0);
    assert_eq!(std::fs::read(&disk).unwrap(), vec![7; 1 << 20]);

    let (paths, blocks) = (vec![listed.clone()], vec![disk.clone()]);
    let allowed = Allowed::open(&Owner { paths, blocks, ..Owner::default() }).unwrap();
    let mut controller = Scene::new(allowed).controller();
    for target in [target("path", &top), target("block", &other)] {
        assert!(matches!(prepare(&mut controller, &target), FromAgent::Failed { .. }), "{target}");
    }
    assert_eq!(std::fs::read(&other).unwrap(), vec![7; 1 << 20]);
    for target in [target("path", &listed), target("block", &disk)] {
        let answer = prepare(&mut controller, &target);
        assert!(matches!(answer, FromAgent::Prepared { .. }), "{target}: {answer:?}");
    }
    assert!(listed.join("plimsoll-lab.0").is_dir());
    drop(controller);
    std::fs::remove_dir_all(&top).unwrap();
}
