//! A connection of HTTP/1.1: requests come in order, and are answered in order.
//!
//! A body is read only as far as its handler requests it, straight from the socket into the
//! handler's buffer. Small answers to requests that came together leave together; large parts of
//! files leave from where they are in the page cache, if nothing encrypts them.

mod incoming;
mod wire;

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::clock::{Deadline, stamp};
use base::limits::{
    HTTP_DRAIN_MAX, HTTP_END_LOOK, HTTP_HEAD_TIME_MAX, HTTP_LINGER_MAX, HTTP_PIECE, SEND_FILE_MIN,
    TLS_HANDSHAKE_MAX, TRANSFER_PIECE, TRANSFER_SEND_PIECE,
};
use tokio::net::TcpStream;

use self::incoming::Http1Body;
use self::wire::Wire;
use super::dispatch::{self, Answer};
use super::ended::{Ended, TOO_SLOW};
use super::exchange::{Exchange, Peer};
use super::head::{self, Framing, Head, HeadError};
use super::request::{Body, Method, Request};
use super::response::{FileParts, Payload, Response};
use super::{Http, Port, date, h2, status};
use engine::exec::{accept, timed};
use engine::transport::link::{EndWatch, Link};
use engine::transport::listener::Accepted;
use engine::transport::send::SendError;
use engine::transport::tasks::Ending;
use engine::transport::tls::TlsError;
use files::{Core, Span};

/// Serves an accepted connection until it ends.
pub(super) async fn serve(
    http: Arc<Http>,
    core: Rc<Core>,
    accepted: Accepted,
    port: Port,
    ending: Ending,
) {
    // Held to the end, then given back.
    let _permit = accepted.permit;
    let Ok(stream) = TcpStream::from_std(accepted.stream) else { return };
    let client = core.engine.hub.clients().intern(accepted.peer.ip().to_canonical());
    let mut link = Link::new(stream, core.engine.budgets.limits().pace);
    let secure = port == Port::Secure;
    let budgets = Arc::clone(&core.engine.budgets);
    if secure && let Err(why) = handshake(&http, &core, &mut link).await {
        budgets.tls_failures.fetch_add(1, Relaxed);
        base::debug!("http", "TLS handshake with {} failed: {why}", accepted.peer);
        link.close((&core.buffers, &*core.budget));
        return;
    }
    let settings = http.settings();
    let (security, webdav) = (link.security(), Rc::default());
    let address = accepted.peer;
    let core_of_peer = Rc::clone(&core);
    let peer =
        Peer { core: core_of_peer, http, settings, address, client, secure, security, webdav };
    let ended = if link.alpn() == Some(b"h2") {
        Box::pin(h2::serve(peer, link, ending)).await
    } else {
        let mut conn =
            Conn { wire: Wire::new(link, Rc::clone(&core)), peer, ending, spans: Vec::new() };
        let ended = conn.run().await;
        conn.settle();
        conn.wire.close();
        ended
    };
    match &ended {
        Ok(()) | Err(Ended::Closed) => {}
        Err(Ended::Malformed(_)) => drop(budgets.bad_records.fetch_add(1, Relaxed)),
        Err(Ended::TooSlow | Ended::Send(SendError::TooSlow)) => {
            budgets.give_up();
        }
        Err(_) => {}
    }
    if let Err(why) = ended {
        base::debug!("http", "connection of {} closed: {why}", accepted.peer);
    }
}

async fn handshake(http: &Http, core: &Core, link: &mut Link) -> Result<(), TlsError> {
    let tls = http.tls.clone().ok_or(TlsError::State)?;
    let handshake = link.secure(&tls, (&core.buffers, &*core.budget));
    accept::secure(&core.engine, handshake, TLS_HANDSHAKE_MAX).await
}

struct Conn {
    wire: Wire,
    peer: Peer,
    ending: Ending,
    /// What has been answered and not yet left.
    spans: Vec<(Span, u16)>,
}

/// How an answer is put on the wire.
#[derive(Clone, Copy)]
struct Form {
    /// Whether the client knows chunks.
    modern: bool,
    /// Whether the connection continues.
    keep: bool,
    /// Whether the body is left out: HEAD.
    bare: bool,
}

impl Conn {
    async fn run(&mut self) -> Result<(), Ended> {
        loop {
            let head = match self.next_head().await {
                Ok(Some(head)) => head,
                Ok(None) => return self.flush(false).await,
                Err(Ended::Malformed(error)) => return self.refuse(error).await,
                Err(Ended::TooSlow) if self.wire.holds() => {
                    let answer = status::plain(TOO_SLOW, "Timeout waiting for the request.");
                    return self.respond_and_flush(answer).await;
                }
                Err(error) => return Err(error),
            };
            // Apart from what is kept between two requests: most connections wait for one.
            if !Box::pin(self.exchange(head)).await? {
                return Ok(());
            }
        }
    }

    /// The next request's head. `None` when the connection ends as it should.
    async fn next_head(&mut self) -> Result<Option<Head>, Ended> {
        let mut seen = 0;
        let mut until = None;
        loop {
            let bytes = self.wire.input();
            if let Some(length) = head::whole(bytes, seen)? {
                let head = Head::parse(bytes.get(..length).unwrap_or_default())?;
                self.wire.consume(length);
                return Ok(Some(head));
            }
            seen = bytes.len();
            self.flush(false).await?;
            if seen == 0 {
                self.wire.rest();
                self.peer.settings = self.peer.http.settings();
                let idle = self.peer.settings.idle;
                tokio::select! {
                    biased;
                    ready = tokio::time::timeout(idle, self.wire.ready()) => match ready {
                        Ok(ready) => ready?,
                        Err(_) => return Ok(None),
                    },
                    _ = self.ending.wait_for(|end| *end) => return Ok(None),
                }
                until = Some(Deadline::after(HTTP_HEAD_TIME_MAX));
            }
            let until = until.get_or_insert_with(|| Deadline::after(HTTP_HEAD_TIME_MAX));
            let received =
                tokio::time::timeout(until.left().unwrap_or_default(), self.wire.receive()).await;
            if received.map_err(|_| Ended::TooSlow)?? == 0 {
                return if seen == 0 { Ok(None) } else { Err(Ended::Closed) };
            }
        }
    }

    /// Answers a request. False when the connection does not continue.
    async fn exchange(&mut self, head: Head) -> Result<bool, Ended> {
        let arrived_ns = self.wire.arrived();
        let Head { method, target, host, headers, framing, modern, keep_alive, expects } = head;
        let watch = self.wire.link.watch();
        let length = match framing {
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        };
        let mut incoming = Http1Body::new(&mut self.wire, framing, expects);
        let body = Body::new(&mut incoming, length);
        let secure = self.peer.secure;
        let request = Request { method, target, host, secure, headers, body };
        let answer = dispatch::answer(&self.peer, request, arrived_ns);
        let answer = if ends_with_client(method) {
            tokio::select! {
                biased;
                answer = answer => answer,
                () = has_gone(watch) => return Err(Ended::Closed),
            }
        } else {
            answer.await
        };
        let left = incoming.left();
        let drains = left.is_some_and(|left| left <= HTTP_DRAIN_MAX);
        let keep = keep_alive && drains && !*self.ending.borrow();
        let form = Form { modern, keep, bare: method == Method::Head };
        self.respond(answer, form).await?;
        if left == Some(0) {
            if !keep {
                self.flush(false).await?;
                if self.wire.link.acks().are_awaited() {
                    self.linger().await;
                }
            }
            return Ok(keep);
        }
        self.flush(false).await?;
        if keep {
            let mut incoming = Http1Body::resume(&mut self.wire, left.unwrap_or(0));
            return Ok(incoming.discard(HTTP_DRAIN_MAX).await);
        }
        self.linger().await;
        Ok(false)
    }

    /// Reads what the peer is still sending, for a while: if the connection were closed at once,
    /// the answer would be lost with it.
    async fn linger(&mut self) {
        self.wire.link.finish();
        let read = async {
            loop {
                self.wire.forget();
                if !matches!(self.wire.receive().await, Ok(1..)) {
                    return;
                }
            }
        };
        // A client that is still sending then has had time to read.
        let _ = tokio::time::timeout(HTTP_LINGER_MAX, read).await;
    }

    async fn refuse(&mut self, error: HeadError) -> Result<(), Ended> {
        let answer = status::plain(error.status(), &error.to_string());
        self.respond_and_flush(answer).await?;
        self.linger().await;
        Err(error.into())
    }

    async fn respond_and_flush(&mut self, response: Response) -> Result<(), Ended> {
        let span = self.peer.core.begin(self.peer.client, Method::Other as u8);
        let answer = Answer { response, exchange: None, span };
        self.respond(answer, Form { modern: true, keep: false, bare: false }).await?;
        self.flush(false).await
    }

    /// Sends what is ready, and writes down what has left with it.
    async fn flush(&mut self, more: bool) -> Result<(), Ended> {
        self.wire.flush(more).await?;
        self.settle();
        Ok(())
    }

    /// Writes down what has been answered.
    fn settle(&mut self) {
        let acks = Rc::clone(self.wire.link.acks());
        self.peer.core.all_sent(self.spans.drain(..), Some(&acks));
    }

    async fn respond(&mut self, answer: Answer, form: Form) -> Result<(), Ended> {
        let Answer { mut response, exchange, span } = answer;
        let payload = std::mem::take(&mut response.payload);
        let mut clock = exchange.as_ref().map_or(span, |cx| cx.span()).clock;
        let sent = {
            let send = pin!(self.send(&response, payload, (exchange.as_deref(), form)));
            timed::sending(&mut clock, send).await
        };
        if let Some(cx) = &exchange {
            cx.ended(response.status, sent.as_ref().copied().map_err(ToString::to_string));
        }
        // What broke off was asked for, too.
        let span = exchange.map_or(span, |cx| cx.span());
        self.spans.push((Span { clock, ..span }, response.status));
        if response.status == TOO_SLOW {
            self.peer.core.engine.budgets.give_up();
        }
        sent?;
        if self.wire.out.len() >= HTTP_PIECE {
            self.flush(false).await?;
        }
        Ok(())
    }

    async fn send(
        &mut self,
        response: &Response,
        payload: Payload,
        (exchange, form): (Option<&Exchange>, Form),
    ) -> Result<(), Ended> {
        self.wire.begin();
        let chunked = write_head(self.wire.out.vec(), response, &payload, form);
        if !form.bare {
            match (payload, exchange) {
                (Payload::Empty, _) => {}
                (Payload::Bytes(bytes), _) => self.wire.out.vec().extend_from_slice(&bytes),
                (Payload::File(file), Some(cx)) => self.file(cx, *file).await?,
                (Payload::File(_), None) => return Err(Ended::Broken("nobody asked".to_owned())),
                (Payload::Stream(mut source), exchange) => {
                    let mut more = true;
                    while more {
                        let mut part = Vec::new();
                        more = source.next(&mut part).await.map_err(|e| Ended::Broken(e.0))?;
                        let count = part.len();
                        // Work ends here if no client is left to take its result.
                        if count == 0 && more && self.wire.link.watch().sees_end() {
                            return Err(Ended::Closed);
                        }
                        self.part(part, chunked).await?;
                        if let Some(cx) = exchange {
                            cx.moved((0, count));
                        }
                    }
                    if chunked {
                        self.wire.out.vec().extend_from_slice(b"0\r\n\r\n");
                    }
                }
            }
        }
        Ok(())
    }

    /// A part of a body of unknown length.
    async fn part(&mut self, part: Vec<u8>, chunked: bool) -> Result<(), Ended> {
        if part.is_empty() {
            return Ok(());
        }
        let out = self.wire.out.vec();
        if chunked {
            out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        }
        out.extend_from_slice(&part);
        drop(part);
        if chunked {
            out.extend_from_slice(b"\r\n");
        }
        if self.wire.out.len() >= HTTP_PIECE {
            self.wire.flush(true).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn file(&mut self, cx: &Exchange, file: FileParts) -> Result<(), Ended> {
        for (before, start, end) in &file.parts {
            self.wire.out.vec().extend_from_slice(before);
            let mut at = *start;
            while at < *end {
                let moved = self.piece(cx, &file, (at, *end)).await?;
                at += moved as u64;
            }
        }
        self.wire.out.vec().extend_from_slice(&file.after);
        Ok(())
    }

    /// Sends a piece of a file; small ones wait for what follows. Returns how many bytes that were,
    /// which may be none.
    async fn piece(
        &mut self,
        cx: &Exchange,
        file: &FileParts,
        (at, end): (u64, u64),
    ) -> Result<usize, Ended> {
        let since = stamp();
        if !self.peer.secure
            && end - at >= SEND_FILE_MIN as u64
            && let Some(moved) = self.send_piece(cx, file, (at, end)).await?
        {
            if moved > 0 {
                cx.flowed((at, moved), false, since);
                tokio::task::yield_now().await;
            }
            return Ok(moved);
        }
        let count = (end - at).min(TRANSFER_PIECE as u64) as usize;
        let read = file.reader.read(&cx.core, &cx.caller, (at, count), &mut self.wire.out).await;
        let (moved, _) = read.map_err(|e| Ended::Broken(e.to_string()))?;
        if moved == 0 {
            return Err(SendError::Shrunk.into());
        }
        if self.wire.out.len() >= HTTP_PIECE {
            self.flush(at + (moved as u64) < end).await?;
            tokio::task::yield_now().await;
        }
        cx.flowed((at, moved), false, since);
        Ok(moved)
    }

    /// Has the kernel send what the socket takes now of a piece. `None` if it must be read.
    async fn send_piece(
        &mut self,
        cx: &Exchange,
        file: &FileParts,
        (at, end): (u64, u64),
    ) -> Result<Option<usize>, Ended> {
        self.flush(true).await?;
        self.wire.link.has_room().await?;
        let count = (end - at).min(TRANSFER_SEND_PIECE as u64) as usize;
        let part = file.reader.sendfile_range(&cx.core, &cx.caller, (at, count)).await;
        match part.map_err(|e| Ended::Broken(e.to_string()))? {
            Some(part) if part.count == 0 => Err(SendError::Shrunk.into()),
            Some(part) => Ok(Some(self.wire.link.send_file(&part)?)),
            None => Ok(None),
        }
    }
}

/// Whether a request ends when its client closes the connection: requests that may process an
/// entire tree, with nothing left for the client to learn. An upload is completed all the same: its
/// client may have sent everything and closed its sending side.
fn ends_with_client(method: Method) -> bool {
    use Method::{Copy, Delete, Get, Head, Move, Propfind};
    matches!(method, Copy | Delete | Get | Head | Move | Propfind)
}

/// Waits until the client has closed the connection, or its sending side: the difference shows only
/// when something is sent. So a response that is ready soon is sent in both cases.
async fn has_gone(watch: EndWatch) {
    tokio::time::sleep(HTTP_END_LOOK).await;
    watch.ended().await;
}

/// Writes the head of an answer. Returns whether its body goes in chunks.
fn write_head(out: &mut Vec<u8>, response: &Response, payload: &Payload, form: Form) -> bool {
    let status = response.status;
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.to_string().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status::reason(status).as_bytes());
    let mut field = |name: &str, value: &str| {
        for part in ["\r\n", name, ": ", value] {
            out.extend_from_slice(part.as_bytes());
        }
    };
    date::with_now(|now| field("date", now));
    for (name, value) in &response.headers {
        field(name, value);
    }
    let mut chunked = false;
    match payload.length() {
        // RFC 9110 §8.6: none with these.
        _ if status < 200 || matches!(status, 204 | 304) => {}
        Some(length) => field("content-length", &length.to_string()),
        None if form.modern => {
            chunked = true;
            field("transfer-encoding", "chunked");
        }
        None => {}
    }
    let ends = !form.keep || payload.length().is_none() && !form.modern;
    if ends {
        field("connection", "close");
    } else if !form.modern {
        field("connection", "keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
    chunked
}
