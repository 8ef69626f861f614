//! Takes connections, gives each to its core, and ends them when the service ends.

use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{ACCEPT_QUEUE, CORE_TICK, DRAIN_TIME_MAX};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Iscsi, conn};
use crate::transport::Runtimes;
use crate::transport::budget::CoreBudget;
use crate::transport::buffers::CoreBuffers;
use crate::transport::listener::{self, Accepted};
use crate::transport::meter::Meter;
use crate::transport::tasks::{Ending, Tasks};

/// What the connections of one core share.
pub struct Core {
    /// The core's number.
    pub id: u8,
    /// The service.
    pub iscsi: Arc<Iscsi>,
    /// The core's part of what may be in use.
    pub budget: Rc<CoreBudget>,
    /// Buffers used again.
    pub buffers: CoreBuffers,
    /// Where operations are written down.
    pub meter: Meter,
}

impl Core {
    /// Core `id` of `cores`. To be called on its thread.
    fn new(id: usize, cores: usize, iscsi: Arc<Iscsi>) -> Rc<Self> {
        Rc::new(Self {
            id: id as u8,
            budget: Rc::new(CoreBudget::new(iscsi.budgets.limits(), cores)),
            buffers: CoreBuffers::default(),
            meter: Meter::of(&iscsi.hub, id),
            iscsi,
        })
    }

    fn idle(&self) {
        self.meter.idle();
        self.budget.publish(&self.iscsi.budgets);
    }
}

/// Serves what comes at `sockets`. `None` if the runtimes have ended.
pub fn serve(iscsi: &Arc<Iscsi>, runtimes: &Runtimes, sockets: Vec<TcpListener>) -> Option<Tasks> {
    base::clock::calibrate();
    let (count, mut tasks, mut started) = (runtimes.cores(), Tasks::default(), true);
    let mut senders = Vec::new();
    for id in 0..count {
        // One queue for all sockets: connections are all of one kind.
        let (sender, receiver) = mpsc::channel(ACCEPT_QUEUE);
        senders.push(sender);
        let iscsi = Arc::clone(iscsi);
        started &= tasks.spawn(runtimes, id, move |ending| async move {
            run(Core::new(id, count, iscsi), receiver, ending).await
        });
    }
    for socket in sockets {
        let (budgets, senders) = (Arc::clone(&iscsi.budgets), senders.clone());
        started &= tasks.spawn(runtimes, 0, move |ending| async move {
            listener::accept(socket, senders, budgets, ending).await.is_ok()
        });
    }
    started.then_some(tasks)
}

/// Serves a core's connections. Returns whether they ended by themselves.
async fn run(core: Rc<Core>, mut queue: mpsc::Receiver<Accepted>, mut ending: Ending) -> bool {
    let mut connections = JoinSet::new();
    let told = ending.clone();
    let mut tick = tokio::time::interval(CORE_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => core.idle(),
            Some(accepted) = queue.recv() => {
                connections.spawn_local(conn::serve(Rc::clone(&core), accepted, told.clone()));
            }
            Some(ended) = connections.join_next() => core.iscsi.budgets.count_panic(&ended),
            _ = ending.wait_for(|end| *end) => break,
        }
    }
    let all = async {
        while let Some(ended) = connections.join_next().await {
            core.iscsi.budgets.count_panic(&ended);
        }
    };
    let drained = tokio::time::timeout(DRAIN_TIME_MAX, all).await.is_ok();
    connections.shutdown().await;
    core.budget.clear();
    core.idle();
    drained
}
