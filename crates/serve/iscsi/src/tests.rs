//! Tests of sessions over real sockets, with an initiator of our codec.

mod client;
#[path = "../../tests/costs/clock.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod clock;
mod costs;
mod disks;
mod login;
mod memory;
mod panics;
mod phases;
pub(crate) mod planted;
#[path = "../../tests/costs/search.rs"]
#[allow(dead_code, reason = "each test that includes it uses a part")]
mod search;
mod tasks;
mod transfers;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use probe::hub::{Hub, HubOptions};
use vfs::flush::FlushGroup;
use vfs::lun::Medium;
use vfs::lun::mapping::Initiators;
use vfs::lun::mem::MemMedium;

use super::settings::Settings;
use super::targets::{SignIn, Target};
use super::unit::{Identity, Unit, UnitSettings};
use super::{Iscsi, serving};
use engine::exec::Engine;
use engine::pool::{Pool, PoolLimits};
use engine::transport::budget::Limits;
use engine::transport::{Budgets, Runtimes, Tasks, listener};

/// Name of the target.
const TARGET: &str = "iqn.2026-01.test:t";
/// Bytes of a block.
const BLOCK: usize = 512;

/// A service with one target, and media in memory behind its units.
struct Bench {
    iscsi: Arc<Iscsi>,
    target: Arc<Target>,
    media: Vec<Arc<MemMedium>>,
    at: SocketAddr,
    runtimes: Option<Runtimes>,
    tasks: Option<Tasks>,
}

impl Bench {
    fn new(units: u8, sign_in: SignIn) -> Self {
        Self::limited(units, Limits::default(), sign_in)
    }

    /// The same with these limits.
    fn limited(units: u8, limits: Limits, sign_in: SignIn) -> Self {
        let media: Vec<_> = (0..units).map(|_| Arc::new(MemMedium::new(32 << 20))).collect();
        let shared = media.iter().map(|medium| Arc::clone(medium) as Arc<dyn Medium>);
        let mut bench = Self::with(shared.collect(), sign_in, limits);
        bench.media = media;
        bench
    }

    /// Over these media.
    fn over(media: Vec<Arc<dyn Medium>>, sign_in: SignIn) -> Self {
        Self::with(media, sign_in, Limits::default())
    }

    fn with(media: Vec<Arc<dyn Medium>>, sign_in: SignIn, limits: Limits) -> Self {
        let hub = Hub::new(HubOptions { cores: 2, recorder_bytes: 1 << 20 });
        let budgets = Arc::new(Budgets::new(limits));
        let pool = Pool::start(PoolLimits::default()).expect("threads");
        let flush = Arc::new(FlushGroup::start().expect("threads"));
        let engine = Engine::new(pool, flush, budgets, hub);
        let iscsi = Iscsi::new(engine, Settings::default());
        let target = Target::new(TARGET, sign_in);
        for (number, medium) in (0_u8..).zip(media) {
            let guid = [0x60 | number; 16];
            let name = format!("lun{number}");
            let identity = Identity { name, guid, block: BLOCK as u32 };
            let settings = UnitSettings { write_cache: true, read_only: false };
            let unit = Unit::new(identity, medium, settings, None);
            target.add(None, Initiators::Everybody, unit).expect("room");
        }
        assert!(iscsi.targets.add(Arc::clone(&target)));
        let runtimes = Runtimes::start(2).expect("threads");
        let at = "127.0.0.1:0".parse().expect("an address");
        let socket: TcpListener = listener::listen(at).expect("a port");
        let at = socket.local_addr().expect("bound");
        let tasks = serving::serve(&iscsi, &runtimes, vec![socket]);
        let runtimes = Some(runtimes);
        Self { iscsi, target, media: Vec::new(), at, runtimes, tasks }
    }

    fn unit(&self, number: u16) -> Arc<Unit> {
        Arc::clone(self.target.units().find("anybody", number).expect("a unit"))
    }

    /// Ends the service: whether nothing was left undone.
    fn end(mut self) -> bool {
        self.tasks.take().is_some_and(|tasks| tasks.end_blocking().expect("a timer"))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.media.iter().for_each(|medium| medium.stick(false));
        drop(self.tasks.take());
        if let Some(runtimes) = self.runtimes.take() {
            runtimes.shutdown(std::time::Duration::from_secs(10));
        }
    }
}
