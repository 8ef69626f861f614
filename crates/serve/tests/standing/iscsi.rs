//! iSCSI: the commands of a unit wait in its own queue for its own threads, in order within a
//! session and in turn among sessions; beyond that queue they are answered TASK SET FULL.

use std::net::TcpStream;
use std::sync::Arc;

use base::limits::LUN_THREADS;
use e2e::iscsi::{Access, Initiator, io};
use probe::hub::{Hub, HubOptions};
use serve::exec::Engine;
use serve::iscsi::settings::Settings;
use serve::iscsi::targets::{SignIn, Target};
use serve::iscsi::unit::{Identity, Unit, UnitSettings};
use serve::iscsi::{Iscsi, serving};
use serve::pool::{Pool, PoolLimits};
use serve::transport::budget::Limits;
use serve::transport::listener::listen;
use serve::transport::{Budgets, Runtimes};
use vfs::flush::FlushGroup;
use vfs::lun::mapping::Initiators;
use wire::iscsi::login_phase::Credentials;
use wire::scsi::Cdb;

use crate::medium::Planted;
use crate::scene::Serving;
use crate::{CONNECTIONS, assert_in_turn, assert_stands_while, offset};

const TARGET: &str = "iqn.2026-01.test:t";
const SECRET: &str = "a secret of 16 letters";
const BLOCK: usize = 512;
/// READs of each connection.
const READS: usize = 3;

#[test]
fn iscsi_wakes_nothing_while_the_medium_stands_still() {
    let hub = Hub::new(HubOptions { cores: 2, recorder_bytes: 1 << 20 });
    let pool = Pool::start(PoolLimits::default()).expect("threads");
    let flush = Arc::new(FlushGroup::start().expect("threads"));
    let engine = Engine::new(pool, flush, Arc::new(Budgets::new(Limits::default())), hub);
    let iscsi = Iscsi::new(Arc::clone(&engine), Settings::default());
    let (name, secret) = ("plimsoll".to_owned(), SECRET.as_bytes().to_vec());
    let common = Some(Credentials { name, secret });
    let target = Target::new(TARGET, SignIn { common, ..SignIn::default() });
    let medium = Planted::new(1 << 20);
    let identity = Identity { name: "lun0".to_owned(), guid: [0x60; 16], block: BLOCK as u32 };
    let settings = UnitSettings { write_cache: true, read_only: false };
    let unit = Unit::new(identity, Arc::clone(&medium) as _, settings, None);
    target.add(None, Initiators::Everybody, Arc::clone(&unit)).expect("room");
    assert!(iscsi.targets.add(target));
    let runtimes = Runtimes::start(2).expect("threads");
    let socket = listen(([127, 0, 0, 1], 0).into()).expect("a port");
    let at = socket.local_addr().expect("an address");
    let _tasks = Serving(serving::serve(&iscsi, &runtimes, vec![socket]));

    let access = Access { target: TARGET.to_owned(), secret: SECRET.to_owned() };
    let mut initiators: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let stream = TcpStream::connect(at).expect("connected");
            Initiator::over(stream, &access, number as u16 + 1).expect("signed in")
        })
        .collect();
    medium.inner.stick(true);
    for (connection, initiator) in initiators.iter_mut().enumerate() {
        for number in 0..READS {
            let read = Cdb::Read(io(offset(connection, number), 1, false));
            initiator.start(&read, &[], BLOCK as u32).expect("sent");
        }
    }
    let pool = Arc::clone(&unit.threads.engine(&engine).expect("threads").pool);
    let threads = || pool.busy();
    assert_stands_while("all wait", || {
        threads() > 0 && pool.queued() + threads() == CONNECTIONS * READS
    });
    let begun_first = threads();
    assert!(begun_first <= LUN_THREADS);
    medium.inner.stick(false);
    for initiator in &mut initiators {
        for _ in 0..READS {
            assert!(initiator.ended().expect("an answer").1.is_good());
        }
    }
    let begun = medium.reads.lock().expect("whole");
    let begun: Vec<_> = begun.iter().map(|offset| offset / BLOCK as u64).collect();
    assert_in_turn(&begun, READS, (LUN_THREADS, begun_first));
}
