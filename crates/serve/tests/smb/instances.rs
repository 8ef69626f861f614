//! Applications that move to another client: what is closed of the client before, and what is not.

use e2e::smb::{Offer, Smb};
use e2e::tcp::HERE;
use wire::smb::codec::Field as _;
use wire::smb::contexts;
use wire::smb::create::FileId;
use wire::smb::durable::{AppInstance, AppVersion};
use wire::smb::negotiate::Dialect;
use wire::smb::status::NtStatus;

use crate::durable::{Create, RWH, client, opened, parked};
use crate::running::Running;

const APPLICATION: [u8; 16] = [3; 16];

impl Create<'_> {
    fn by(mut self, application: [u8; 16]) -> Self {
        let mut data = Vec::new();
        AppInstance::new(application).put(&mut data);
        self.contexts.push((contexts::APP_INSTANCE, data));
        self
    }

    fn version(mut self, high: u64, low: u64) -> Self {
        let mut data = Vec::new();
        AppVersion::new(high, low).put(&mut data);
        self.contexts.push((contexts::APP_VERSION, data));
        self
    }
}

/// A durable open that denies everything, of this client.
fn of_client(name: &str, number: u8) -> Create<'_> {
    Create::of(name).leased([number; 16], RWH).durable(0, [number; 16])
}

fn is_closed(smb: &mut Smb, file: FileId) -> bool {
    match smb.write(file, 0, b"x", 0).expect("an answer") {
        NtStatus::FILE_CLOSED => true,
        NtStatus::SUCCESS => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_application_opens_at_another_client_what_it_has_open() {
    let running = Running::new();
    let (mut one, mut two) =
        (client(&running, "alice", [1; 16]), client(&running, "alice", [2; 16]));
    let (first, _) = opened(&of_client("f", 1).by(APPLICATION).send(&mut one));
    let (second, _) = opened(&of_client("f", 2).by(APPLICATION).send(&mut two));
    // The first thing that comes to the first client is this answer, and no break.
    assert!(is_closed(&mut one, first));
    assert!(!is_closed(&mut two, second));
    assert_eq!(running.server.files_open(), 1);
    drop(two);
    parked(&running, 1);
    let (third, _) = opened(&of_client("f", 3).by(APPLICATION).send(&mut one));
    parked(&running, 0);
    assert!(!is_closed(&mut one, third), "what has waited for its client is closed too");
}

#[test]
fn opens_of_others_stay() {
    let running = Running::new();
    let (mut one, mut two) =
        (client(&running, "alice", [1; 16]), client(&running, "alice", [2; 16]));
    let none = [0; 16];
    for (name, held, asked) in [
        ("other", APPLICATION, Create::of("other").by([4; 16])),
        ("plain", APPLICATION, Create::of("plain")),
        ("zero", none, Create::of("zero").by(none)),
    ] {
        let (file, _) = opened(&Create::of(name).by(held).send(&mut one));
        assert_eq!(asked.send(&mut two).status(), NtStatus::SHARING_VIOLATION, "{name}");
        assert!(!is_closed(&mut one, file), "{name}");
    }
    let (file, _) = opened(&Create::of("own").by(APPLICATION).send(&mut one));
    let own = Create::of("own").by(APPLICATION);
    assert_eq!(own.send(&mut one).status(), NtStatus::SHARING_VIOLATION, "the same client");
    opened(&Create::of("elsewhere").by(APPLICATION).send(&mut two));
    assert!(!is_closed(&mut one, file), "another file");
    let offer = Offer { client: [3; 16], ..Offer::only(Dialect::SMB210) };
    let to = (HERE, running.at);
    let mut old = Smb::open(to, &offer, ("alice", "secret"), "share").expect("a client");
    assert_eq!(own.send(&mut old).status(), NtStatus::SHARING_VIOLATION, "SMB 2.1 has none");
    assert!(!is_closed(&mut one, file));
}

#[test]
fn an_application_follows_to_higher_versions_only() {
    let running = Running::new();
    let (mut one, mut two) =
        (client(&running, "alice", [1; 16]), client(&running, "alice", [2; 16]));
    let by = || Create::of("f").by(APPLICATION);
    let (first, _) = opened(&by().version(1, 5).send(&mut one));
    for asked in [by(), by().version(0, 9), by().version(1, 4), by().version(1, 5)] {
        assert_eq!(asked.send(&mut two).status(), NtStatus::FILE_FORCED_CLOSED);
    }
    assert!(!is_closed(&mut one, first));
    let (second, _) = opened(&by().version(1, 6).send(&mut two));
    assert!(is_closed(&mut one, first));
    assert_eq!(by().version(1, 5).send(&mut one).status(), NtStatus::FILE_FORCED_CLOSED);
    assert!(!is_closed(&mut two, second));
}
