//! Takes connections, gives each to its core, and drains them when the service ends: one loop for
//! all services. Permits for connections, also per address, are taken before a core sees one
//! ([`listener`]); TLS begins on the connection ([`secure`]).

use std::future::Future;
use std::net::TcpListener;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::limits::{ACCEPT_QUEUE, CORE_TICK, DRAIN_TIME_MAX};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Core, Engine};
use crate::transport::Runtimes;
use crate::transport::listener::{self, Accepted};
use crate::transport::tasks::{Ending, Tasks};
use crate::transport::tls::TlsError;

/// What a service has on one core: the engine's [`Core`], and what is its own.
pub trait ServiceCore: Deref<Target = Core> + 'static {
    /// Shows the levels of the service: every now and then, on core 0. Those that all services
    /// share, unless it has more to show.
    fn show(&self) {
        let engine = &self.engine;
        engine.budgets.show_shared(&engine.flush, engine.hub.gauges());
    }
}

/// What runs on one core.
pub type Local = Pin<Box<dyn Future<Output = ()>>>;

/// A connection that comes by other means than a socket, to be run on a core.
pub type Join<C> = Box<dyn FnOnce(Rc<C>, Ending) -> Local + Send>;

/// Deals such connections to the cores in turn.
pub struct Joins<C> {
    cores: Vec<mpsc::Sender<Join<C>>>,
    turn: usize,
}

impl<C> Joins<C> {
    /// Hands one over to this core. False if it does not take it.
    pub fn hand_to(&self, core: usize, join: Join<C>) -> bool {
        self.cores.get(core).is_some_and(|core| core.try_send(join).is_ok())
    }

    /// Hands one over. False if its core does not take it: the service ends, or is overrun.
    pub fn deal(&mut self, join: Join<C>) -> bool {
        self.turn = (self.turn + 1) % self.cores.len().max(1);
        self.cores.get(self.turn).is_some_and(|core| core.try_send(join).is_ok())
    }
}

/// Serves what comes at `sockets`, each with a tag that is handed on (`implicit TLS`, `HTTPS`):
/// `connection` is run on a core for each, and should end soon when its [`Ending`] turns true or
/// its completion queue is closed; what has not ended after [`DRAIN_TIME_MAX`] is cut off.
/// [`Tasks::end`] drains the service.
///
/// `None` if the runtimes have ended.
pub fn serve<C, Tag, F, T>(
    engine: &Arc<Engine>,
    runtimes: &Runtimes,
    sockets: Vec<(TcpListener, Tag)>,
    new_core: impl Fn(Core) -> C + Clone + Send + 'static,
    connection: F,
) -> Option<Tasks>
where
    C: ServiceCore,
    Tag: Copy + Send + 'static,
    F: Fn(Rc<C>, Accepted, Tag, Ending) -> T + Clone + Send + 'static,
    T: Future<Output = ()> + 'static,
{
    serve_joined(engine, runtimes, sockets, new_core, connection).map(|(tasks, _)| tasks)
}

/// As [`serve`], for a service that has connections by other means as well.
pub fn serve_joined<C, Tag, F, T>(
    engine: &Arc<Engine>,
    runtimes: &Runtimes,
    sockets: Vec<(TcpListener, Tag)>,
    new_core: impl Fn(Core) -> C + Clone + Send + 'static,
    connection: F,
) -> Option<(Tasks, Joins<C>)>
where
    C: ServiceCore,
    Tag: Copy + Send + 'static,
    F: Fn(Rc<C>, Accepted, Tag, Ending) -> T + Clone + Send + 'static,
    T: Future<Output = ()> + 'static,
{
    base::clock::calibrate();
    let (count, mut tasks, mut started) = (runtimes.cores(), Tasks::default(), true);
    let (mut queues, mut cores) = (Vec::new(), Vec::new());
    for id in 0..count {
        let (queue, accepted) = mpsc::channel(ACCEPT_QUEUE);
        let (join, joins) = mpsc::channel(ACCEPT_QUEUE);
        queues.push(queue);
        cores.push(join);
        let (engine, new_core) = (Arc::clone(engine), new_core.clone());
        let connection = connection.clone();
        started &= tasks.spawn(runtimes, id, move |ending| async move {
            let core = Rc::new(new_core(Core::new(id, count, engine)));
            run(core, (accepted, joins), ending, connection).await
        });
    }
    for (socket, tag) in sockets {
        let (queues, budgets) = (queues.clone(), Arc::clone(&engine.budgets));
        started &= tasks.spawn(runtimes, 0, move |ending| async move {
            // The socket was valid a moment ago; if not, connections fail at the clients.
            listener::accept((socket, tag), queues, budgets, ending).await.is_ok()
        });
    }
    started.then_some((tasks, Joins { cores, turn: 0 }))
}

/// Runs a core until `ending` turns true and its connections have ended, or their time is up.
/// Returns whether they ended within their time.
async fn run<C, Tag, F, T>(
    core: Rc<C>,
    (mut accepted, mut joins): (mpsc::Receiver<(Accepted, Tag)>, mpsc::Receiver<Join<C>>),
    mut ending: Ending,
    connection: F,
) -> bool
where
    C: ServiceCore,
    Tag: Copy + 'static,
    F: Fn(Rc<C>, Accepted, Tag, Ending) -> T + 'static,
    T: Future<Output = ()> + 'static,
{
    let budgets = Arc::clone(&core.engine.budgets);
    let mut connections = JoinSet::new();
    let ends = ending.clone();
    let mut tick = std::pin::pin!(tokio::time::sleep(CORE_TICK));
    loop {
        tokio::select! {
            () = tick.as_mut() => {
                let next = idle(&*core);
                tick.set(tokio::time::sleep(next));
            }
            () = core.acks.due() => core.finish_arrived(),
            () = core.budget.something_returned() => core.budget.look_again(),
            () = core.stirred.notified() => tick.set(tokio::time::sleep(CORE_TICK)),
            Some((one, tag)) = accepted.recv() => {
                core.stir();
                let (of_core, ends) = (Rc::clone(&core), ends.clone());
                let run = |one| connection(of_core, one, tag, ends);
                connections.spawn_local(one.run(&core.budget, run));
            }
            Some(join) = joins.recv() => {
                core.stir();
                connections.spawn_local(join(Rc::clone(&core), ends.clone()));
            }
            Some(ended) = connections.join_next() => {
                core.stir();
                budgets.count_panic(&ended);
            }
            _ = ending.wait_for(|end| *end) => break,
        }
    }
    core.close_queues();
    drop((accepted, joins));
    let all = async {
        loop {
            tokio::select! {
                () = core.acks.due() => core.finish_arrived(),
                () = core.budget.something_returned() => core.budget.look_again(),
                ended = connections.join_next() => match ended {
                    Some(ended) => budgets.count_panic(&ended),
                    None => break,
                },
            }
        }
    };
    let drained = tokio::time::timeout(DRAIN_TIME_MAX, all).await.is_ok();
    // The core's writing end must be free when the service starts again.
    connections.shutdown().await;
    // What was cut off could not give back what it held.
    core.budget.clear();
    idle(&*core);
    drained
}

/// An idle moment; returns how long it is until the next.
fn idle(core: &impl ServiceCore) -> Duration {
    let next = Core::idle(core);
    if core.id == 0 {
        core.show();
    }
    next
}

/// Sets up TLS on a connection, by a handshake that is given this much time, and counts sessions
/// that came to be.
///
/// # Errors
/// The handshake's, or [`TlsError::TooSlow`].
pub async fn secure(
    engine: &Engine,
    handshake: impl Future<Output = Result<(), TlsError>>,
    time_max: Duration,
) -> Result<(), TlsError> {
    tokio::time::timeout(time_max, handshake).await.map_err(|_| TlsError::TooSlow)??;
    engine.budgets.tls_sessions.fetch_add(1, Relaxed);
    Ok(())
}
