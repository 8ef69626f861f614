//! Takes connections, gives each to its core, and ends them when the service ends.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{ACCEPT_QUEUE, CORE_TICK, DRAIN_TIME_MAX};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Files;
use super::core::Core;
use crate::transport::Runtimes;
use crate::transport::listener::{self, Accepted};
use crate::transport::tasks::{Ending, Tasks};

/// Serves what comes at `sockets`, each with a tag that is handed on (`implicit TLS`, `HTTPS`):
/// `connection` is run on a core for each, and should end soon when its [`Ending`] turns true; what
/// has not ended after [`DRAIN_TIME_MAX`] is cut off.
///
/// `None` if the runtimes have ended.
pub fn serve<Tag, F, T>(
    files: &Arc<Files>,
    runtimes: &Runtimes,
    sockets: Vec<(TcpListener, Tag)>,
    connection: F,
) -> Option<Tasks>
where
    Tag: Copy + Send + 'static,
    F: Fn(Rc<Core>, Accepted, Tag, Ending) -> T + Clone + Send + 'static,
    T: Future<Output = ()> + 'static,
{
    base::clock::calibrate();
    let (count, mut tasks, mut started) = (runtimes.cores(), Tasks::default(), true);
    let mut queues: Vec<Vec<mpsc::Sender<Accepted>>> = sockets.iter().map(|_| Vec::new()).collect();
    for id in 0..count {
        let mut receivers = Vec::new();
        for ((_, tag), senders) in sockets.iter().zip(&mut queues) {
            let (sender, receiver) = mpsc::channel(ACCEPT_QUEUE);
            senders.push(sender);
            receivers.push((receiver, *tag));
        }
        let (files, connection) = (Arc::clone(files), connection.clone());
        started &= tasks.spawn(runtimes, id, move |ending| async move {
            let core = Core::new(id, count, files);
            run(core, receivers, ending, connection).await
        });
    }
    for ((socket, _), senders) in sockets.into_iter().zip(queues) {
        let budgets = Arc::clone(&files.budgets);
        started &= tasks.spawn(runtimes, 0, move |ending| async move {
            listener::accept(socket, senders, budgets, ending).await.is_ok()
        });
    }
    started.then_some(tasks)
}

/// Takes from all of a core's queues. Returns whether its connections ended by themselves.
async fn run<Tag, F, T>(
    core: Rc<Core>,
    receivers: Vec<(mpsc::Receiver<Accepted>, Tag)>,
    mut ending: Ending,
    connection: F,
) -> bool
where
    Tag: Copy + 'static,
    F: Fn(Rc<Core>, Accepted, Tag, Ending) -> T + 'static,
    T: Future<Output = ()> + 'static,
{
    let (sender, mut accepted) = mpsc::channel(1);
    let mut takers = JoinSet::new();
    for (mut receiver, tag) in receivers {
        let sender = sender.clone();
        takers.spawn_local(async move {
            while let Some(one) = receiver.recv().await {
                if sender.send((one, tag)).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut connections = JoinSet::new();
    let told = ending.clone();
    let mut tick = tokio::time::interval(CORE_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => core.idle(),
            Some((one, tag)) = accepted.recv() => {
                connections.spawn_local(connection(Rc::clone(&core), one, tag, told.clone()));
            }
            Some(ended) = connections.join_next() => core.files.budgets.count_panic(&ended),
            _ = ending.wait_for(|end| *end) => break,
        }
    }
    takers.shutdown().await;
    let all = async {
        while let Some(ended) = connections.join_next().await {
            core.files.budgets.count_panic(&ended);
        }
    };
    let drained = tokio::time::timeout(DRAIN_TIME_MAX, all).await.is_ok();
    connections.shutdown().await;
    core.budget.clear();
    core.idle();
    drained
}

/// Takes an address. Port 0 takes a free one.
///
/// # Errors
/// What the kernel says.
pub fn listen(addr: SocketAddr) -> std::io::Result<TcpListener> {
    listener::listen(addr)
}
