//! Accepts connections, within the budget, and deals them to the cores in turn. A device that is
//! removed ends its connections, and is listened on again; others are not affected.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::stamp;
use base::limits::RDMA_LISTEN_AGAIN;
use base::refusals::Limit;
use verbs::{Listener, Request};

use super::super::RdmaConfig;
use super::super::core::Core;
use super::super::node;
use super::conn;
use super::permits::RdmaPermits;
use super::room::Shared;
use super::stats::RdmaStats;
use engine::exec::accept::Joins;
use engine::transport::tasks::Ending;
use engine::transport::{Budgets, Runtimes, Tasks};

/// Listens from now on, until `tasks` end. If that fails, [`RdmaStats::problem`] has the reason,
/// and it is retried periodically.
pub(in super::super) fn serve(
    config: RdmaConfig,
    (tasks, joins): (&mut Tasks, Joins<Core>),
    runtimes: &Runtimes,
    budgets: &Arc<Budgets>,
) {
    let first = listen(&config);
    let open = RdmaPermits::new(config.idle_min);
    let taker = Acceptor { config, joins, budgets: Arc::clone(budgets), open };
    // If the runtimes have ended, so has the service.
    let _ = tasks.spawn(runtimes, 0, move |ending| taker.run(first, ending));
}

fn listen(config: &RdmaConfig) -> Option<Box<dyn Listener>> {
    match config.verbs.listen(config.at) {
        Ok(listener) => {
            config.stats.set_problem(None);
            Some(listener)
        }
        Err(why) => {
            config.stats.set_problem(Some(with_sources(&why)));
            None
        }
    }
}

/// An error with its sources, in one sentence.
fn with_sources(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_sources(source)),
        None => error.to_string(),
    }
}

struct Acceptor {
    config: RdmaConfig,
    joins: Joins<Core>,
    budgets: Arc<Budgets>,
    /// Connections: each registers memory, so that there are few.
    open: Arc<RdmaPermits>,
}

impl Acceptor {
    async fn run(mut self, mut listener: Option<Box<dyn Listener>>, mut ending: Ending) -> bool {
        let mut looks = tokio::time::interval(RDMA_LISTEN_AGAIN);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        looks.reset();
        loop {
            let request = async {
                match &mut listener {
                    Some(listener) => poll_fn(|cx| listener.poll_request(cx)).await,
                    None => std::future::pending().await,
                }
            };
            let took = tokio::select! {
                request = request => request.map(Some),
                _ = looks.tick() => Ok(None),
                _ = ending.wait_for(|end| *end) => {
                    self.config.stats.ended();
                    return true;
                }
            };
            match took {
                Ok(Some(request)) => self.take(request),
                Ok(None) if listener.is_none() => listener = listen(&self.config),
                Ok(None) => self.config.verbs.look(),
                Err(why) => {
                    base::warning!(node::NODE.name, "no connections are taken by RDMA: {why}");
                    self.config.stats.set_problem(Some(why.to_string()));
                    listener = None;
                }
            }
        }
    }

    /// Hands a client to a core; one for which there is no room is refused.
    fn take(&mut self, request: Box<dyn Request>) {
        let stats = Arc::clone(&self.config.stats);
        let from = request.peer().ip().to_canonical();
        // No connection is evicted for one that is refused otherwise.
        let Some(permit) = self.budgets.connect(from) else {
            stats.refuse();
            return;
        };
        let open = self.open.take(from, stamp());
        if open.as_ref().is_none_or(|open| open.has_evicted) {
            stats.refuse();
            Limit::RdmaConnections.count();
        }
        let Some(open) = open else { return };
        let registered = Arc::clone(self.config.verbs.account().limit());
        let shared = Shared { of_address: Arc::clone(&open.data), registered };
        let counted = Counted::new(stats);
        let served = self.joins.deal(Box::new(move |core, _| {
            let budget = Rc::clone(&core.budget);
            Box::pin(budget.scoped(from, None, async move {
                // All are held to the end.
                let _held = permit;
                conn::serve(core, request, (&counted.0, &open.activity, shared)).await;
                drop(open);
            }))
        }));
        if !served {
            self.budgets.refuse();
        }
    }
}

/// A connection that is shown.
struct Counted(Arc<RdmaStats>);

impl Counted {
    fn new(stats: Arc<RdmaStats>) -> Self {
        stats.connections.fetch_add(1, Relaxed);
        Self(stats)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}
