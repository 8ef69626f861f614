//! iSCSI: commands begin in the order of their numbers. A unit has a pool of its own; one that is
//! full is answered TASK SET FULL.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::limits::LUN_QUEUE_MAX;
use e2e::iscsi::{Access, Initiator, io as blocks_of};
use probe::hub::{Hub, HubOptions};
use serve::exec::Engine;
use serve::iscsi::settings::Settings;
use serve::iscsi::targets::{SignIn, Target as Name};
use serve::iscsi::unit::{Identity, Unit, UnitSettings};
use serve::iscsi::{Iscsi, serving};
use serve::pool::{Pool, Slot};
use serve::transport::budget::Limits;
use serve::transport::listener::listen;
use serve::transport::{Budgets, Runtimes};
use vfs::flush::FlushGroup;
use vfs::lun::Medium as _;
use vfs::lun::mapping::Initiators;
use vfs::lun::mem::MemMedium;
use wire::iscsi::login_phase::Credentials;
use wire::scsi::{Cdb, Status};

use crate::scene::Serving;
use crate::{BLOCK, BLOCKS, Dice, OTHERS, Op, Outcome, POOL, Serves, Session};

const TARGET: &str = "iqn.2026-01.test:t";
const SECRET: &str = "a secret of 16 letters";

/// The service, with a unit in memory.
pub struct Target {
    _tasks: Serving,
    _runtimes: Runtimes,
    engine: Arc<Engine>,
    medium: Arc<MemMedium>,
    unit: Arc<Unit>,
    at: SocketAddr,
}

impl Target {
    /// Starts it.
    pub fn start() -> Self {
        let medium = Arc::new(MemMedium::new(1 << 20));
        let hub = Hub::new(HubOptions { cores: 2, recorder_bytes: 1 << 20 });
        let pool = Pool::start(POOL).expect("threads");
        let flush = Arc::new(FlushGroup::start().expect("threads"));
        let engine = Engine::new(pool, flush, Arc::new(Budgets::new(Limits::default())), hub);
        let iscsi = Iscsi::new(Arc::clone(&engine), Settings::default());
        let (name, secret) = ("plimsoll".to_owned(), SECRET.as_bytes().to_vec());
        let common = Some(Credentials { name, secret });
        let target = Name::new(TARGET, SignIn { common, ..SignIn::default() });
        let identity = Identity { name: "lun0".to_owned(), guid: [0x60; 16], block: BLOCK as u32 };
        let settings = UnitSettings { write_cache: true, read_only: false };
        let unit = Unit::new(identity, Arc::clone(&medium) as _, settings, None);
        target.add(None, Initiators::Everybody, Arc::clone(&unit)).expect("room");
        assert!(iscsi.targets.add(target));
        let runtimes = Runtimes::start(2).expect("threads");
        let socket = listen(([127, 0, 0, 1], 0).into()).expect("a port");
        let at = socket.local_addr().expect("an address");
        let tasks = Serving(serving::serve(&iscsi, &runtimes, vec![socket]));
        Self { _tasks: tasks, _runtimes: runtimes, engine, medium, unit, at }
    }
}

impl Serves for Target {
    fn at(&self) -> SocketAddr {
        self.at
    }

    fn open(&self, at: SocketAddr) -> io::Result<Box<dyn Session>> {
        let access = Access { target: TARGET.to_owned(), secret: SECRET.to_owned() };
        let initiator = Initiator::over(TcpStream::connect(at)?, &access, 1)?;
        Ok(Box::new(Commands { initiator, tags: Vec::new() }))
    }

    fn budgets(&self) -> Arc<Budgets> {
        Arc::clone(&self.engine.budgets)
    }

    fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.unit.threads.engine(&self.engine).expect("threads").pool)
    }

    fn set_blocks(&self, blocks: bool) {
        self.medium.faults.slow.store(blocks, Relaxed);
    }

    /// The unit's queue is long: all of it is taken, or nothing.
    fn take_places(&self, dice: &mut Dice) -> Vec<Slot> {
        let (pool, count) = (self.pool(), LUN_QUEUE_MAX as u64 * u64::from(dice.below(2)));
        (0..count).filter_map(|n| pool.reserve(OTHERS + n)).collect()
    }

    fn content(&self) -> Option<Vec<u8>> {
        let mut content = vec![0; BLOCKS as usize * BLOCK];
        self.medium.read(0, &mut content, true).expect("data");
        Some(content)
    }
}

struct Commands {
    initiator: Initiator,
    tags: Vec<u32>,
}

impl Session for Commands {
    fn send(&mut self, ops: &[Op]) -> io::Result<()> {
        self.tags.clear();
        for op in ops {
            let tag = match *op {
                Op::Read(block) => {
                    let read = Cdb::Read(blocks_of(block.into(), 1, false));
                    self.initiator.start(&read, &[], BLOCK as u32)?
                }
                Op::Write(block, value) => {
                    let write = Cdb::Write(blocks_of(block.into(), 1, false));
                    self.initiator.start(&write, &[value; BLOCK], 0)?
                }
            };
            self.tags.push(tag);
        }
        Ok(())
    }

    fn answer(&mut self) -> io::Result<(usize, Outcome)> {
        let (tag, answer) = self.initiator.ended()?;
        let number = self.tags.iter().position(|sent| *sent == tag).expect("a command");
        match answer.status {
            Status::GOOD => Ok((number, Some(answer.data))),
            Status::TASK_SET_FULL | Status::BUSY => Ok((number, None)),
            status => panic!("{status:?}"),
        }
    }
}
