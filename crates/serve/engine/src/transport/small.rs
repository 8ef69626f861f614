//! Small services in addition to the large one: each datagram, or each record of a connection, is
//! one question, answered by a function. For the port mapper and for NSM over UDP, which are asked
//! a few times in a client's life. Their engine has budgets of their own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{ACCEPT_PAUSE, SMALL_BLOCKING_MAX, SMALL_IDLE_MAX, SMALL_RECORD_MAX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use wire::rpc::{Framed, Framer, begin_record, end_record};
use wire::xdr::Writer;

use super::Runtimes;
use super::listener::Accepted;
use super::tasks::{Ending, Tasks};
use crate::exec::{Core, Engine, ServiceCore, accept};

/// Where a question comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The address of the client, unmapped from v6.
    pub address: IpAddr,
    /// From which port.
    pub port: u16,
    /// Whether it came over a connection: then the address is no one else's.
    pub connected: bool,
}

/// The response to a request.
pub enum Answer {
    /// Nothing: it is no question.
    Nothing,
    /// This.
    Now(Vec<u8>),
    /// What this gives, which may block.
    Deferred(Box<dyn FnOnce() -> Vec<u8> + Send>),
}

/// Something that answers.
pub trait Answers: Send + Sync {
    /// The answer to an RPC message.
    fn answer(&self, message: &[u8], origin: Origin) -> Answer;
}

/// A UDP socket for [`datagrams`].
///
/// # Errors
/// The error of the system call.
pub fn bind(addr: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind(addr)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The answer of a service; nothing if it panics, which is counted: clients retransmit.
fn attempted(service: &dyn Answers, engine: &Engine, message: &[u8], origin: Origin) -> Answer {
    engine.attempt(|| service.answer(message, origin)).unwrap_or(Answer::Nothing)
}

/// The result of a job on the pool; nothing if there is no place for it, or it panics. All clients
/// are one client there: their addresses need not be their own.
async fn pooled(engine: &Arc<Engine>, job: Box<dyn FnOnce() -> Vec<u8> + Send>) -> Option<Vec<u8>> {
    let (to, answer) = oneshot::channel();
    // The client may be gone.
    let is_taken = engine.run_behind(0, move || drop(to.send(job())));
    if is_taken { answer.await.ok() } else { None }
}

/// Answers datagrams for as long as the runtime lasts.
///
/// # Errors
/// When the socket cannot be registered with this runtime.
pub async fn datagrams(
    socket: std::net::UdpSocket,
    service: Arc<dyn Answers>,
    engine: Arc<Engine>,
) -> io::Result<()> {
    let socket = Rc::new(UdpSocket::from_std(socket)?);
    let places = Arc::new(Semaphore::new(SMALL_BLOCKING_MAX));
    let mut message = vec![0; SMALL_RECORD_MAX + 1];
    loop {
        let Ok((len, from)) = socket.recv_from(&mut message).await else {
            // An earlier answer was refused, or there is no memory: the socket itself is good.
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(message) = message.get(..len).filter(|m| m.len() <= SMALL_RECORD_MAX) else {
            continue;
        };
        let (address, port) = (from.ip().to_canonical(), from.port());
        let origin = Origin { address, port, connected: false };
        // A client without an answer retransmits: sending may fail.
        match attempted(&*service, &engine, message, origin) {
            Answer::Nothing => {}
            Answer::Now(answer) => drop(socket.send_to(&answer, from).await),
            Answer::Deferred(job) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let (socket, engine) = (Rc::clone(&socket), Arc::clone(&engine));
                tokio::task::spawn_local(async move {
                    if let Some(answer) = pooled(&engine, job).await {
                        drop(socket.send_to(&answer, from).await);
                    }
                    drop(place);
                });
            }
        }
    }
}

/// What the connections of a small service share on one core.
struct SmallCore {
    core: Core,
    service: Arc<dyn Answers>,
}

impl Deref for SmallCore {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl ServiceCore for SmallCore {
    fn show(&self) {}
}

/// Answers records on connections, as some of `tasks`. False if the runtimes have ended.
pub fn connections(
    listener: std::net::TcpListener,
    service: &Arc<dyn Answers>,
    engine: &Arc<Engine>,
    runtimes: &Runtimes,
    tasks: &mut Tasks,
) -> bool {
    let service = Arc::clone(service);
    let new_core = move |core| SmallCore { core, service: Arc::clone(&service) };
    let connection = |core: Rc<SmallCore>, accepted, (), ending| async move {
        // How it ended is of no interest: the client repeats its request over another one.
        let _ended = serve(&core, accepted, ending).await;
    };
    let sockets = vec![(listener, ())];
    let own = accept::serve(engine, runtimes, sockets, new_core, connection);
    let is_started = own.is_some();
    own.into_iter().for_each(|own| tasks.adopt(own));
    is_started
}

async fn serve(core: &SmallCore, accepted: Accepted, mut ending: Ending) -> io::Result<()> {
    let Accepted { stream, peer, permit: _permit } = accepted;
    let Some(_held) = core.budget.try_hold(2 * SMALL_RECORD_MAX) else {
        core.engine.budgets.refuse();
        return Ok(());
    };
    let mut stream = TcpStream::from_std(stream)?;
    let (mut framer, mut input) = (Framer::new(), Vec::new());
    let (address, port) = (peer.ip().to_canonical(), peer.port());
    let origin = Origin { address, port, connected: true };
    loop {
        let record = timeout(SMALL_IDLE_MAX, read_record(&mut stream, &mut framer, &mut input));
        let record = tokio::select! {
            biased;
            record = record => record??,
            _ = ending.wait_for(|end| *end) => return Ok(()),
        };
        let Some(record) = record else { return Ok(()) };
        let answer = match attempted(&*core.service, &core.engine, &record, origin) {
            Answer::Nothing => return Ok(()),
            Answer::Now(answer) => answer,
            Answer::Deferred(job) => match pooled(&core.engine, job).await {
                Some(answer) => answer,
                None => return Ok(()),
            },
        };
        timeout(SMALL_IDLE_MAX, stream.write_all(&framed(&answer))).await??;
    }
}

/// A message as a record of one fragment.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + 4);
    let w = &mut Writer::new(&mut bytes);
    let mark = begin_record(w);
    w.raw(message);
    end_record(w, mark);
    bytes
}

/// The next record; what came behind it stays in `input`. `None` at the end of the stream.
///
/// # Errors
/// The connection failed, or what comes is no record of at most [`SMALL_RECORD_MAX`] bytes.
pub async fn read_record(
    stream: &mut TcpStream,
    framer: &mut Framer,
    input: &mut Vec<u8>,
) -> io::Result<Option<Vec<u8>>> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    loop {
        match framer.next(input).map_err(|_| wrong())? {
            Framed::Record { body, consumed } => {
                let body = body.to_vec();
                input.drain(..consumed);
                return Ok(Some(body));
            }
            Framed::Need(bytes) if bytes > 2 * SMALL_RECORD_MAX => return Err(wrong()),
            Framed::Need(_) => {}
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests;
