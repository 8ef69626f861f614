//! Agents that call and that are called: several runs of one controller with one code, and those
//! that are refused.

use super::*;
use crate::agent::allow::Owner;
use crate::agent::{AgentError, AgentOptions, Meeting as At};
use crate::conduct::agents::{Agents, AgentsError, Source};
use std::thread::JoinHandle;

const LIFE: Duration = Duration::from_secs(600);

fn file(name: &str) -> PathBuf {
    let name = format!("plimsoll-roster-{name}-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    drop(std::fs::remove_file(&file));
    file
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn options(meeting: At, file: &Path) -> AgentOptions {
    AgentOptions {
        meeting,
        code_file: Some(file.to_owned()),
        code_life: LIFE,
        owner: Owner::default(),
        once: false,
        announce: false,
    }
}

/// An agent that calls.
fn calls(at: SocketAddr, file: &Path) -> JoinHandle<Result<(), AgentError>> {
    let options = options(At::Call(at.to_string()), file);
    std::thread::spawn(move || crate::agent::run(&options))
}

#[test]
fn agents_call_a_controller_that_starts_later_and_end_with_it() {
    let (file, at) = (file("later"), free_port());
    let agents: Vec<_> = (0..3).map(|_| calls(at, &file)).collect();
    let (roster, code) = Roster::listen(at, 3, Some(&file), LIFE).unwrap();
    assert_eq!(code.written.as_deref(), Some(&*file));
    let roster = Arc::new(roster);
    let source = Source::Remote(Arc::clone(&roster));
    let order = || {
        let Meeting::Listen(listening) = &roster.meeting else { panic!("it listens") };
        lock(&listening.codes).admitted().collect::<Vec<_>>()
    };
    let mut first = None;
    for _ in 0..3 {
        let gathered = Agents::gather(&source, false).unwrap();
        assert_eq!(gathered.all.len(), 3);
        // The file goes with the code, and the agents of later runs are the same.
        assert!(!file.exists());
        assert_eq!(*first.get_or_insert_with(order), order());
    }
    drop((source, roster));
    for agent in agents {
        agent.join().unwrap().unwrap();
    }
}

#[test]
fn one_agent_too_many_is_refused() {
    let (file, at) = (file("many"), free_port());
    std::fs::write(&file, JoinCode::made().text()).unwrap();
    let (roster, _) = Roster::listen(at, 1, Some(&file), LIFE).unwrap();
    let first = calls(at, &file);
    let source = Source::Remote(Arc::new(roster));
    let gathered = Agents::gather(&source, false).unwrap();
    let error = calls(at, &file).join().unwrap().unwrap_err();
    assert!(error.to_string().contains("used by as many agents as the run has"), "{error}");
    assert!(file.exists(), "a file of the user is retained");
    drop((gathered, source));
    first.join().unwrap().unwrap();
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn agents_that_are_called_need_their_code_once() {
    let (file, at) = (file("called"), free_port());
    let agent = options(At::Listen(at), &file);
    std::thread::spawn(move || crate::agent::run(&agent));
    let deadline = Deadline::after(Duration::from_secs(60));
    while !file.exists() {
        assert!(!deadline.passed(), "no code");
        std::thread::yield_now();
    }
    let (addresses, codes) = ([at.to_string()], CodeFile::read(&file).unwrap());
    let source = Source::Remote(Arc::new(Roster::call(&addresses, &codes).unwrap()));
    for _ in 0..3 {
        assert_eq!(Agents::gather(&source, false).unwrap().all.len(), 1);
    }
    // Another controller with the same code comes too late.
    let other = Source::Remote(Arc::new(Roster::call(&addresses, &codes).unwrap()));
    let refused = Agents::gather(&other, false).err().unwrap();
    let AgentsError::Roster(RosterError::Join(0, JoinError::Refused { why, .. })) = &refused else {
        panic!("{refused}")
    };
    assert_eq!(*why, Refusal::UsedCode);
}

#[test]
fn the_number_of_agents_has_a_limit() {
    for number in [0, LAB_AGENTS_MAX + 1] {
        let roster = Roster::listen(free_port(), number, None, LIFE);
        assert!(matches!(roster, Err(RosterError::Number)));
    }
}
