//! iSCSI: the commands of a unit wait in its own queue for its own threads, in order within a
//! session and in turn among sessions; beyond that queue they are answered TASK SET FULL.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};

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
use vfs::fs::Result;
use vfs::lun::ledger::Ledger;
use vfs::lun::mapping::Initiators;
use vfs::lun::mem::MemMedium;
use vfs::lun::{Extent, Medium, MediumStatus};
use wire::iscsi::login_phase::Credentials;
use wire::scsi::Cdb;

use crate::scene::Serving;
use crate::{CONNECTIONS, assert_in_turn, assert_stands_while, offset};

const TARGET: &str = "iqn.2026-01.test:t";
const SECRET: &str = "a secret of 16 letters";
const BLOCK: usize = 512;
/// READs of each connection.
const READS: usize = 3;

/// A medium that notes which READs have begun where they may wait.
struct Noted {
    inner: MemMedium,
    reads: Mutex<Vec<u64>>,
}

impl Medium for Noted {
    fn size(&self) -> u64 {
        self.inner.size()
    }
    fn is_read_only(&self) -> bool {
        false
    }
    fn read(&self, offset: u64, into: &mut [u8], may_block: bool) -> Result<()> {
        if may_block {
            self.reads.lock().expect("whole").push(offset / BLOCK as u64);
        }
        self.inner.read(offset, into, may_block)
    }
    fn write(&self, offset: u64, data: &[u8], may_block: bool) -> Result<()> {
        self.inner.write(offset, data, may_block)
    }
    fn write_durable(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.inner.write_durable(offset, data)
    }
    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.inner.discard(offset, length)
    }
    fn zero(&self, offset: u64, length: u64) -> Result<()> {
        self.inner.zero(offset, length)
    }
    fn extent(&self, offset: u64) -> Result<Extent> {
        self.inner.extent(offset)
    }
    fn resize(&self, size: u64) -> Result<()> {
        self.inner.resize(size)
    }
    fn status(&self) -> MediumStatus {
        self.inner.status()
    }
    fn ledger(&self) -> &Ledger {
        self.inner.ledger()
    }
    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }
}

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
    let medium = Arc::new(Noted { inner: MemMedium::new(1 << 20), reads: Mutex::default() });
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
    assert_in_turn(&begun, READS, (LUN_THREADS, begun_first));
}
