//! A connection that we make, to call its peer (the callbacks of NFSv4.0): it lives as long as it
//! is used.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use base::limits::{DIAL_BUFFER_MAX, DIAL_IDLE, DIAL_TIME_MAX, DIALS_MAX, DIALS_PER_ADDRESS_MAX};
use base::peer::network;
use base::refusals::Limit;
use tokio::net::TcpStream;
use wire::rpc::{Framed, Framer};

use crate::rpc::back::Back;
use crate::rpc::caller::next_connection;
use crate::rpc::completion::Completion;
use crate::rpc::framing;
use engine::exec::CompletionQueue;
use engine::transport::tally::AddressPermits;
use engine::transport::{Runtimes, send};

/// Permits of the existing connections: each uses a descriptor, and a client can establish any
/// number of client ids with callbacks.
static DIALED: LazyLock<Arc<AddressPermits>> = LazyLock::new(Arc::default);

/// Connects to `to` on one of the runtimes. Calls may be made at once; they fail if it cannot be
/// reached, or there are too many connections of this kind.
pub fn dial(runtimes: &Runtimes, to: SocketAddr) -> Arc<Back> {
    let (connection, queue) = (next_connection(), Arc::<CompletionQueue<Completion>>::default());
    let back = Back::new(connection, Arc::clone(&queue));
    let limits = (DIALS_MAX, DIALS_PER_ADDRESS_MAX);
    let Some(permit) = DIALED.take(network(to.ip()), limits) else {
        Limit::Dials.count();
        back.close();
        return back;
    };
    let served = Arc::clone(&back);
    let started = runtimes.spawn_on(connection as usize, move || async move {
        let _permit = permit;
        // Whatever the reason, the calls in flight report that they had no reply.
        let _ = serve(&served, &queue, to).await;
        served.close();
    });
    if !started {
        back.close();
    }
    back
}

async fn serve(back: &Back, queue: &CompletionQueue<Completion>, to: SocketAddr) -> io::Result<()> {
    let connecting = TcpStream::connect(to);
    let stream = tokio::time::timeout(DIAL_TIME_MAX, connecting).await??;
    stream.set_nodelay(true)?;
    let (mut completions, mut input, mut framer) = (Vec::new(), Vec::new(), Framer::new());
    let (mut peer, mut record) = (send::Peer::default(), Vec::new());
    loop {
        tokio::select! {
            _ = poll_fn(|cx| queue.poll(cx, true)) => {
                queue.drain(&mut completions);
                for completion in completions.drain(..) {
                    if let Completion::Call { message } = completion {
                        record.clear();
                        framing::append(&mut record, &message);
                        let sent = send::bytes(&stream, &record, false, &mut peer).await;
                        sent.map_err(io::Error::other)?;
                    }
                }
            }
            ready = stream.readable() => {
                ready?;
                if !receive(&stream, &mut input)? || !answer(back, &mut framer, &mut input) {
                    return Ok(());
                }
            }
            () = tokio::time::sleep(DIAL_IDLE) => return Ok(()),
        }
    }
}

/// Room made for each read: replies of callbacks are far shorter.
const DIAL_READ: usize = 4 << 10;

/// Takes what has come. False at the end.
fn receive(stream: &TcpStream, input: &mut Vec<u8>) -> io::Result<bool> {
    input.reserve(DIAL_READ);
    match stream.try_read_buf(input) {
        Ok(0) => Ok(false),
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(e) => Err(e),
    }
}

/// Hands complete replies over. False if the peer sends what is none, or too much.
fn answer(back: &Back, framer: &mut Framer, input: &mut Vec<u8>) -> bool {
    let mut start = 0;
    loop {
        match framer.next(input.get(start..).unwrap_or_default()) {
            Ok(Framed::Need(need)) => {
                input.drain(..start);
                return need <= DIAL_BUFFER_MAX;
            }
            Ok(Framed::Record { body, consumed }) => {
                if !back.answered(body) {
                    return false;
                }
                start += consumed;
            }
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests;
