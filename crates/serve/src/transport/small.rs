//! Small services beside the large one: each datagram, or each record of a short connection, is
//! one question, answered by a function. For the port mapper and for NSM over UDP, which are asked
//! a few times in a client's life. Their budgets are their own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{
    ACCEPT_PAUSE, LISTEN_BACKLOG, SMALL_BLOCKING_MAX, SMALL_CONNECTIONS_MAX, SMALL_IDLE_MAX,
    SMALL_RECORD_MAX,
};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use wire::rpc::{Framed, Framer, begin_record, end_record};
use wire::xdr::Writer;

use super::Budgets;

/// Where a question comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Who asks, unmapped from v6.
    pub address: IpAddr,
    /// From which port.
    pub port: u16,
    /// Whether it came over a connection: then the address is no one else's.
    pub connected: bool,
}

/// What there is to say to a question.
pub enum Answer {
    /// Nothing: it is no question.
    Nothing,
    /// This.
    Now(Vec<u8>),
    /// What this gives, which may block.
    Later(Box<dyn FnOnce() -> Vec<u8> + Send>),
}

/// Something that answers.
pub trait Answers: Send + Sync {
    /// The answer to an RPC message.
    fn answer(&self, message: &[u8], origin: Origin) -> Answer;
}

/// A UDP socket for [`datagrams`].
///
/// # Errors
/// What the kernel says.
pub fn bind(addr: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind(addr)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A listening socket for [`connections`].
///
/// # Errors
/// What the kernel says.
pub fn listen(addr: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

/// The answer of a service; nothing if it panics, which is counted: who asked asks again.
fn contained(service: &dyn Answers, budgets: &Budgets, message: &[u8], origin: Origin) -> Answer {
    budgets.contain(|| service.answer(message, origin)).unwrap_or(Answer::Nothing)
}

/// Answers datagrams for as long as the runtime lasts; panics are counted in `budgets`.
///
/// # Errors
/// When the socket cannot be registered with this runtime.
pub async fn datagrams(
    socket: std::net::UdpSocket,
    service: Arc<dyn Answers>,
    budgets: Arc<Budgets>,
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
        // Whoever does not get its answer asks again: sending may fail.
        match contained(&*service, &budgets, message, origin) {
            Answer::Nothing => {}
            Answer::Now(answer) => drop(socket.send_to(&answer, from).await),
            Answer::Later(job) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let (socket, budgets) = (Rc::clone(&socket), Arc::clone(&budgets));
                tokio::task::spawn_local(async move {
                    let answer = tokio::task::spawn_blocking(job).await;
                    budgets.count_panic(&answer);
                    if let Ok(answer) = answer {
                        drop(socket.send_to(&answer, from).await);
                    }
                    drop(place);
                });
            }
        }
    }
}

/// Answers records on connections for as long as the runtime lasts; panics are counted in
/// `budgets`.
///
/// # Errors
/// When the socket cannot be registered with this runtime.
pub async fn connections(
    listener: std::net::TcpListener,
    service: Arc<dyn Answers>,
    budgets: Arc<Budgets>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(SMALL_CONNECTIONS_MAX));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (service, budgets) = (Arc::clone(&service), Arc::clone(&budgets));
        tokio::task::spawn_local(async move {
            // How it ended is of no interest: the client asks again over another one.
            let _ended = serve(stream, peer, (&*service, &budgets)).await;
            drop(place);
        });
    }
}

async fn serve(
    mut stream: TcpStream,
    peer: SocketAddr,
    (service, budgets): (&dyn Answers, &Budgets),
) -> io::Result<()> {
    let (mut framer, mut input) = (Framer::new(), Vec::new());
    let (address, port) = (peer.ip().to_canonical(), peer.port());
    let origin = Origin { address, port, connected: true };
    loop {
        let record = timeout(SMALL_IDLE_MAX, read_record(&mut stream, &mut framer, &mut input));
        let Some(record) = record.await?? else { return Ok(()) };
        let answer = match contained(service, budgets, &record, origin) {
            Answer::Nothing => return Ok(()),
            Answer::Now(answer) => answer,
            Answer::Later(job) => {
                let answer = tokio::task::spawn_blocking(job).await;
                budgets.count_panic(&answer);
                answer?
            }
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
