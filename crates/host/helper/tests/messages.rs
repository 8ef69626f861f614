//! The helper answers or refuses each message: seeded messages that are noise, cut,
//! changed in bytes, or sound, against a kernel in memory. And only two users may connect.

#[allow(dead_code, reason = "each program of tests uses a part")]
#[path = "changes/bed.rs"]
mod bed;
#[allow(dead_code, reason = "each program of tests uses a part")]
#[path = "../../network/tests/configurations/mod.rs"]
mod configurations;
#[path = "messages/paths.rs"]
mod paths;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use base::random::{Random, SeededRandom};
use e2e::api::wait_for;
use e2e::scratch::Scratch;
use e2e::{env_number, is_root, skip};
use host_helper::client::Client;
use host_helper::request::{Proposal, REQUEST_MAX, Reply, Request, receive_reply};
use host_helper::service::{HELPER_CONNECTIONS_MAX, Helper};

use bed::Bed;

/// Messages in the gate; `PLIMSOLL_HELPER_MESSAGES` sets another number.
const MESSAGES: u64 = 3_000;
/// The same of those that are only read.
const READ: u64 = 2_000;
/// A user that may not connect.
const OTHER_USER: u32 = 65_534;

fn sound(random: &mut SeededRandom) -> Request {
    let configuration = configurations::generate(random);
    let wanted = Proposal { configuration, ..Proposal::default() };
    match random.below(8) {
        0 => Request::NetworkStatus {},
        1 | 2 => Request::NetworkPlan(wanted),
        3..=5 => Request::NetworkApply { wanted, seconds: random.below(70) as u32 },
        6 => Request::NetworkConfirm { change: random.below(40) },
        _ => Request::NetworkTakeBack { change: random.below(40) },
    }
}

/// A message of one of four kinds.
fn message(random: &mut SeededRandom) -> Vec<u8> {
    if random.below(4) == 0 {
        return (0..random.below(200)).map(|_| random.below(256) as u8).collect();
    }
    let bytes = serde_json::to_vec(&sound(random)).expect("JSON");
    changed(bytes, random)
}

/// As it is, cut, or with other bytes in a few places.
fn changed(mut bytes: Vec<u8>, random: &mut SeededRandom) -> Vec<u8> {
    match random.below(3) {
        0 => {}
        1 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
        _ => {
            for _ in 0..=random.below(6) {
                // Digits in place of digits most of the time: what still parses goes further.
                let mut places = (0..9).map(|_| random.below(bytes.len() as u64) as usize);
                let at = places.find(|at| bytes[*at].is_ascii_digit()).unwrap_or(0);
                bytes[at] = match bytes[at] {
                    b'0'..=b'9' => b'0' + random.below(10) as u8,
                    b'a'..=b'z' => b'a' + random.below(26) as u8,
                    _ => random.below(256) as u8,
                };
            }
        }
    }
    bytes
}

#[test]
fn seeded_messages_are_answered_or_refused() {
    let count = env_number("PLIMSOLL_HELPER_MESSAGES", MESSAGES);
    let bed = Bed::new(11);
    let helper = Helper::new(bed.keeper(&bed.kernel(), "this boot"), OTHER_USER);
    let mut random = SeededRandom::new(12);
    let (mut done, mut wrong, mut failed) = (0, 0, 0);
    for _ in 0..count {
        match helper.answer(&message(&mut random)) {
            Reply::Failed { .. } => failed += 1,
            Reply::Wrong(_) => wrong += 1,
            _ => done += 1,
        }
    }
    println!("{count} messages: {done} done, {wrong} wrong configurations, {failed} refused");
    assert!(done > count / 20 && wrong > count / 200 && failed > count / 10);
}

/// A disk is named as the kernel names it: nothing else reaches a program.
#[test]
fn only_disks_are_queried() {
    let bed = Bed::new(13);
    let helper = Helper::new(bed.keeper(&bed.kernel(), "this boot"), OTHER_USER);
    for disk in ["", "nodisk", "../sda", "-a", "sda -s off", "/dev/sda", "sda\0", &"a".repeat(99)] {
        let request = Request::DiskHealth { disk: disk.to_owned() };
        let reply = helper.answer(&serde_json::to_vec(&request).expect("JSON"));
        let Reply::Failed { why } = reply else { panic!("{disk:?}: {reply:?}") };
        assert!(why.ends_with("is not a disk of this machine"), "{disk:?}: {why}");
    }
}

/// What is read is within the limits, and is the same when it is written and read again.
#[test]
fn many_seeded_messages_are_read_or_refused() {
    let count = env_number("PLIMSOLL_HELPER_MESSAGES", READ);
    let mut random = SeededRandom::new(15);
    let sound: Vec<Vec<u8>> =
        (0..64).map(|_| serde_json::to_vec(&sound(&mut random)).expect("JSON")).collect();
    let mut read = 0;
    for _ in 0..count {
        let bytes = sound[random.below(64) as usize].clone();
        let Ok(request) = Request::parse(&changed(bytes, &mut random)) else { continue };
        read += 1;
        // Writing each again takes longer than all the rest.
        if read % 64 == 0 {
            let bytes = serde_json::to_vec(&request).expect("JSON");
            assert_eq!(Request::parse(&bytes), Ok(request));
        }
    }
    println!("{count} messages: {read} read");
    assert!(read > count / 4 && read < count, "{read}");
}

/// As many as may be have answers; a further one is closed, and is accepted when one has ended.
#[test]
fn connections_are_limited() {
    let scratch = Scratch::new("helper-connections");
    let socket = scratch.path().join("socket");
    let bed = Bed::new(16);
    // SAFETY: no arguments, cannot fail.
    let user = unsafe { libc::geteuid() };
    let helper = Helper::new(bed.keeper(&bed.kernel(), "this boot"), user);
    let listener = helper.bind(&socket).expect("a socket");
    std::thread::spawn(move || helper.listen(&listener));
    let is_answered = |client: &mut Client| client.ask(&Request::NetworkStatus {}).is_ok();
    let connect = || Client::connect(&socket).expect("the socket");
    let mut clients: Vec<Client> = (0..HELPER_CONNECTIONS_MAX).map(|_| connect()).collect();
    assert!(clients.iter_mut().all(is_answered));
    assert!(!is_answered(&mut connect()), "one too many");
    clients.pop();
    let again = || is_answered(&mut connect()).then_some(());
    wait_for("a connection is accepted again", std::time::Duration::from_secs(10), again);
    assert!(clients.iter_mut().all(is_answered));
}

#[test]
fn a_message_over_its_length_ends_the_connection() {
    let bed = Bed::new(13);
    let helper = Helper::new(bed.keeper(&bed.kernel(), "this boot"), OTHER_USER);
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    let served = std::thread::spawn(move || helper.serve(theirs));
    ours.write_all(&(REQUEST_MAX as u32 + 1).to_be_bytes()).expect("a head");
    assert!(receive_reply::<Reply>(&mut ours).is_err());
    served.join().expect("it is served to its end");
}

/// What connects as another user, when this program runs itself as that one.
const CONNECT: &str = "PLIMSOLL_HELPER_CONNECT";

#[test]
fn another_user_is_refused() {
    if let Ok(socket) = std::env::var(CONNECT) {
        let mut client = Client::connect(socket.as_ref()).expect("the socket");
        let answer = client.ask(&Request::NetworkStatus {});
        println!("{}", if answer.is_ok() { "answered" } else { "refused" });
        return;
    }
    if !is_root() {
        skip!("helper-users", "needs root to act as other users");
    }
    let scratch = Scratch::new("helper-users");
    let socket = scratch.path().join("socket");
    let bed = Bed::new(14);
    let user = OTHER_USER - 1;
    let helper = Helper::new(bed.keeper(&bed.kernel(), "this boot"), user);
    let listener = helper.bind(&socket).expect("a socket");
    // Its mode permits all users: only the check of the peer refuses.
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    for path in [scratch.path(), socket.as_path()] {
        std::fs::set_permissions(path, std::fs::Permissions::clone(&everyone)).expect("a mode");
    }
    std::thread::spawn(move || helper.listen(&listener));
    let program = scratch.path().join("program");
    std::fs::copy(std::env::current_exe().expect("this program"), &program).expect("a copy");
    let as_user = |uid: u32| {
        let mut command = Command::new(&program);
        command.args(["--exact", "another_user_is_refused", "--nocapture"]).uid(uid);
        let output = command.env(CONNECT, &socket).output().expect("this program again");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(as_user(0).contains("answered"), "{}", as_user(0));
    assert!(as_user(user).contains("answered"), "{}", as_user(user));
    assert!(as_user(OTHER_USER).contains("refused"), "{}", as_user(OTHER_USER));
}
