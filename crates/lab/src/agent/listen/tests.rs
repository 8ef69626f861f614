//! An agent that listens, with peers that send nothing, too much, or something wrong.

use super::*;
use crate::agent::proto::{FromAgent, Prepare};
use crate::workload::Shape;
use base::random::{Random, SystemRandom};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Instant;

/// How long anything may take on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

struct Listening {
    address: SocketAddr,
    token: Token,
}

impl Listening {
    fn new(allowed: Allowed) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, token) = (listener.local_addr().unwrap(), Token::made());
        let its = token.clone();
        std::thread::spawn(move || serve(listener, its, allowed, None));
        Self { address, token }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(WAIT)).unwrap();
        stream
    }

    fn hello(&self, token: Option<&str>) -> (TcpStream, FromAgent) {
        let mut stream = self.connect();
        let (versions, token) = (proto::VERSIONS, token.map(str::to_owned));
        proto::send(&mut stream, &ToAgent::Hello { versions, token }).unwrap();
        let answer = proto::receive(&mut stream).unwrap();
        (stream, answer)
    }

    fn controller(&self) -> TcpStream {
        let (stream, answer) = self.hello(Some(self.token.text()));
        assert!(matches!(answer, FromAgent::Hello { .. }), "{answer:?}");
        stream
    }
}

fn prepare(stream: &mut TcpStream, target: &str) -> FromAgent {
    let shape = Shape {
        kind: serde_json::from_str("\"seqread\"").unwrap(),
        block: 4096,
        files: 1,
        file_size: 65_536,
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
    !matches!(stream.read(&mut [0; 64]), Ok(1..))
}

#[test]
fn silent_peers_hold_up_no_controller() {
    let agent = Listening::new(Allowed::default());
    let mut silent: Vec<TcpStream> =
        (0..3 * LAB_AGENT_STRANGERS_MAX).map(|_| agent.connect()).collect();
    // Some that send a byte at a time.
    for stream in &mut silent {
        let _gone = stream.write_all(&[0]);
    }
    let begun = Instant::now();
    let mut controller = agent.controller();
    assert!(begun.elapsed() < LAB_AGENT_HELLO_TIME_MAX, "{:?}", begun.elapsed());
    assert!(matches!(prepare(&mut controller, "null:"), FromAgent::Prepared { .. }));
    // The oldest gave way, the others end with their time.
    assert!(silent.iter_mut().all(closed));
}

#[test]
fn the_oldest_connection_gives_way_to_a_newer_one() {
    let (token, state, left) = (Token::made(), Mutex::default(), Condvar::new());
    let admission = Admission { token, state, left };
    let mut pairs: Vec<_> = (0..=LAB_AGENT_STRANGERS_MAX)
        .map(|_| {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            let ours = Connection::Inherited(ours);
            admission.enter(&ours).unwrap();
            (ours, theirs)
        })
        .collect();
    assert_eq!(admission.state().strangers.len(), LAB_AGENT_STRANGERS_MAX);
    let ends = |theirs: &mut std::os::unix::net::UnixStream| {
        theirs.set_nonblocking(true).unwrap();
        matches!(theirs.read(&mut [0]), Ok(0))
    };
    let ended: Vec<bool> = pairs.iter_mut().map(|(_, theirs)| ends(theirs)).collect();
    assert!(ended[0] && !ended[1..].contains(&true), "{ended:?}");
}

#[test]
fn a_first_message_in_pieces_does_not_last_longer() {
    let agent = Listening::new(Allowed::default());
    let mut slow = agent.connect();
    slow.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (begun, mut ended) = (Instant::now(), false);
    while !ended && begun.elapsed() < WAIT {
        let sent = slow.write_all(&[0]);
        let read = slow.read(&mut [0; 8]);
        ended = sent.is_err() || matches!(read, Ok(0));
    }
    assert!(ended, "the deadline is for the whole message");
}

#[test]
fn wrong_first_messages_are_refused_and_learn_nothing() {
    let agent = Listening::new(Allowed::default());
    let half = &agent.token.text()[..32];
    for token in [None, Some(""), Some("wrong"), Some(half)] {
        let (mut stream, answer) = agent.hello(token);
        let FromAgent::Failed { what } = answer else { panic!("{answer:?}") };
        assert!(what.contains("wrong token"), "{what}");
        assert!(closed(&mut stream));
    }
    // No token, whatever the version: it is not named.
    let mut stream = agent.connect();
    let hello = ToAgent::Hello { versions: (77, 78), token: None };
    proto::send(&mut stream, &hello).unwrap();
    let answer: FromAgent = proto::receive(&mut stream).unwrap();
    assert!(format!("{answer:?}").contains("wrong token"), "{answer:?}");
    // Another first message, one that is no message, one that is too long.
    let long = [&8_000_u32.to_be_bytes()[..], &[b' '; 8_000]].concat();
    for bytes in [&[0, 0, 0, 2, b'{', b'}'][..], &[0xff; 64], b"GET / HTTP/1.0\r\n\r\n", &long] {
        let mut stream = agent.connect();
        let _gone = stream.write_all(bytes);
        assert!(closed(&mut stream));
    }
    let mut stream = agent.connect();
    proto::send(&mut stream, &ToAgent::Clean).unwrap();
    let answer: FromAgent = proto::receive(&mut stream).unwrap();
    assert!(matches!(answer, FromAgent::Failed { .. }));
    drop(agent.controller());
}

#[test]
fn one_controller_at_a_time_is_served_and_others_are_refused_in_words() {
    let agent = Listening::new(Allowed::default());
    let first = agent.controller();
    let (_second, answer) = agent.hello(Some(agent.token.text()));
    let FromAgent::Failed { what } = answer else { panic!("{answer:?}") };
    assert!(what.contains("in use by another controller"), "{what}");
    drop(first);
    // The next one gets the place as soon as it is free.
    drop(agent.controller());
    drop(agent.controller());
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

    let agent = Listening::new(Allowed::default());
    let mut controller = agent.controller();
    for target in [target("path", &listed), target("path", &top), target("block", &disk)] {
        let answer = prepare(&mut controller, &target);
        let FromAgent::Failed { what } = answer else { panic!("{target}: {answer:?}") };
        assert!(what.contains("--allow-"), "{what}");
    }
    assert_eq!(std::fs::read_dir(&listed).unwrap().count(), 0);
    assert_eq!(std::fs::read(&disk).unwrap(), vec![7; 1 << 20]);

    let allowed =
        Allowed::open(std::slice::from_ref(&listed), std::slice::from_ref(&disk)).unwrap();
    let mut controller = Listening::new(allowed).controller();
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
