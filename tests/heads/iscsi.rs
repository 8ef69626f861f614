//! iSCSI over a takeover: registrations and the reservation of a unit stand, and are enforced at
//! the next owner as they were before.

use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use e2e::iscsi::{Access, BLOCK, Initiator, io, reserve, reserved};
use e2e::{is_root, patience, process, skip};
use serde_json::json;
use wire::scsi::cdb::{ReserveIn, ReserveOut};
use wire::scsi::reserve::{keys, reservation};
use wire::scsi::{Cdb, Status};

use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT};

const PORT: u16 = 3260;
/// Keys of the two that register.
const KEYS: [u64; 2] = [0x11, 0x22];
/// Initiators that are registered may write, no others.
const REGISTRANTS: u8 = 5;

/// An initiator with this number, from the host of the clients. It tries again while the resource
/// is not served.
fn initiator(cluster: &Cluster, access: &Access, number: u16) -> Initiator {
    let at = SocketAddr::new(ACCOUNTS.address().ip(), PORT);
    let (access, until) = (access.clone(), Instant::now() + patience(30));
    let connect = move || loop {
        let opened = TcpStream::connect_timeout(&at, patience(1))
            .and_then(|stream| Initiator::over(stream, &access, number));
        match opened {
            Ok(initiator) => return initiator,
            Err(e) => assert!(Instant::now() < until, "initiator {number}: {e}"),
        }
    };
    cluster.switch.spawn(connect).join().expect("an initiator")
}

fn write(initiator: &mut Initiator, fill: u8) -> Status {
    let write = Cdb::Write(io(8, 1, true));
    initiator.run(&write, &[fill; BLOCK], 0).expect("a response").status
}

/// All of it is as it was: the keys, the reservation, and for which initiators writes are refused.
fn stands(cluster: &Cluster, access: &Access, what: &str, fill: u8) {
    let mut registered = [1, 2].map(|number| initiator(cluster, access, number));
    let data = registered[0].good(&reserved(ReserveIn::ReadKeys), &[], 1024);
    let (_, mut found) = keys(&data).expect("keys");
    found.sort_unstable();
    assert_eq!(found, KEYS, "{what}: the keys");
    let data = registered[1].good(&reserved(ReserveIn::ReadReservation), &[], 1024);
    let held = reservation(&data).expect("an answer").1.map(|held| (held.kind, held.key));
    assert_eq!(held, Some((REGISTRANTS, KEYS[0])), "{what}: the reservation");
    for one in &mut registered {
        assert_eq!(write(one, fill), Status::GOOD, "{what}: it is registered");
    }
    let mut stranger = initiator(cluster, access, 3);
    assert_eq!(write(&mut stranger, 0xff), Status::RESERVATION_CONFLICT, "{what}: a stranger");
    let read = registered[0].good(&Cdb::Read(io(8, 1, false)), &[], BLOCK as u32);
    assert_eq!(read, [fill; BLOCK], "{what}: the data");
    println!("{what}: {found:x?} registered, {held:x?} reserved");
}

#[test]
fn registrations_stand_after_a_takeover() {
    if !is_root() {
        skip!("heads-iscsi", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-iscsi", "{why}"),
    };
    let unit = json!({ "create": "/shares/default/luns", "name": "disk",
        "properties": { "volsize": "16M" } });
    let (code, done) = cluster.api(ACCOUNTS).post("/api/v1/changes", &json!({ "changes": [unit] }));
    assert_eq!(code, 200, "{done}");
    let access = Access::of(&cluster.state(ACCOUNTS));
    for (number, key) in [1, 2].into_iter().zip(KEYS) {
        let mut one = initiator(&cluster, &access, number);
        // They persist through the loss of power, and so through that of a head.
        let (cdb, list) = reserve(ReserveOut::Register, 0, 0, key, true);
        one.good(&cdb, &list, 0);
        if number == 1 {
            let (cdb, list) = reserve(ReserveOut::Reserve, REGISTRANTS, key, 0, true);
            one.good(&cdb, &list, 0);
        }
    }
    stands(&cluster, &access, "before", 1);
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    stands(&cluster, &access, "planned", 2);
    let server = cluster.process(ACCOUNTS, RIGHT);
    cluster.kill(RIGHT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    stands(&cluster, &access, "kill -9", 3);
    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    cluster.end();
}
