//! A connection of HTTP/2 (RFC 9113), over TLS only: each stream is a task of its own on the
//! connection's core, and is answered by the same functions as a request of HTTP/1.1.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::clock::{monotonic_ns, stamp};
use base::limits::{
    HTTP_HEAD_MAX, HTTP_HEAD_TIME_MAX, HTTP_LINGER_MAX, HTTP_PIECE, HTTP2_RESETS_MAX,
    HTTP2_SEND_BUFFER, HTTP2_STREAM_RECORD, HTTP2_STREAM_ROOM, HTTP2_STREAMS_MAX, HTTP2_WINDOW,
    SEND_TIME_MAX,
};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinSet;

use super::dispatch;
use super::ended::{Ended, TOO_SLOW};
use super::exchange::{Exchange, Peer};
use super::head::{check_host, number};
use super::request::{Body, BodyError, Headers, Method, Request, Take, Target};
use super::response::{FileParts, Payload, Response};
use super::{date, status};
use engine::exec::timed;
use engine::transport::acks::Acks;
use engine::transport::budget::ReservedBytes;
use engine::transport::link::Link;
use engine::transport::outgoing::{ByteReservation, Outgoing, OutgoingPart};
use engine::transport::pace::SlowPeerBudget;
use engine::transport::tasks::Ending;
use files::{Core, Span};

/// A link as h2 wants it.
struct Duplex {
    link: Link,
    core: Rc<Core>,
}

impl Drop for Duplex {
    fn drop(&mut self) {
        self.link.close((&self.core.buffers, &*self.core.budget));
    }
}

impl AsyncRead for Duplex {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { link, core } = &mut *self;
        let shared = (&core.buffers, &*core.budget);
        link.make_room(shared, true);
        let received = link.poll_receive(cx, buf);
        if received.is_pending() {
            link.rest(shared);
            // The link may have yielded with more to receive.
            if link.poll_ready(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Ready(ready!(received).map_err(io::Error::other))
    }
}

impl AsyncWrite for Duplex {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.link.poll_send(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.link.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Serves a connection until it ends.
pub(super) async fn serve(peer: Peer, link: Link, mut ending: Ending) -> Result<(), Ended> {
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(HTTP2_WINDOW)
        .initial_connection_window_size(HTTP2_WINDOW)
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_header_list_size(HTTP_HEAD_MAX as u32)
        .max_pending_accept_reset_streams(HTTP2_RESETS_MAX)
        .max_concurrent_reset_streams(HTTP2_RESETS_MAX)
        .max_send_buffer_size(HTTP2_SEND_BUFFER);
    let acks = Rc::clone(link.acks());
    let duplex = Duplex { link, core: Rc::clone(&peer.core) };
    let begun = tokio::time::timeout(HTTP_HEAD_TIME_MAX, builder.handshake::<_, Bytes>(duplex));
    let mut conn = begun.await.map_err(|_| Ended::TooSlow)?.map_err(broken)?;
    let mut streams = JoinSet::new();
    let outgoing = Rc::new(Outgoing::new(&peer.core.budget, HTTP2_SEND_BUFFER));
    let mut incoming = None;
    let mut is_closing = false;
    loop {
        let idle = tokio::time::sleep(peer.http.settings().idle);
        tokio::select! {
            accepted = conn.accept() => match accepted {
                None => return Ok(()),
                Some(Err(error)) if error.is_io() => return Err(Ended::Closed),
                Some(Err(error)) => return Err(broken(error)),
                Some(Ok((request, mut respond))) => {
                    if !admit(&peer, &request, &mut incoming) {
                        respond.send_reset(Reason::REFUSED_STREAM);
                        continue;
                    }
                    // All that it may take, until it is known what it does.
                    let held = peer.core.budget.hold(HTTP2_STREAM_ROOM + header_bytes(&request));
                    let settings = peer.http.settings();
                    let peer = Peer { settings, ..peer.clone() };
                    let outgoing = (Rc::clone(&outgoing), Rc::clone(&acks));
                    let budget = Rc::clone(&peer.core.budget);
                    let stream = stream(peer, request, respond, (held, outgoing));
                    streams.spawn_local(budget.within(Box::pin(stream)));
                }
            },
            Some(ended) = streams.join_next(), if !streams.is_empty() => {
                peer.core.engine.budgets.count_panic(&ended);
                if streams.is_empty() {
                    incoming = None;
                }
            }
            _ = ending.wait_for(|end| *end), if !is_closing => {
                is_closing = true;
                conn.graceful_shutdown();
            }
            () = idle, if streams.is_empty() => {
                // A client that does not react to GOAWAY is disconnected at the second timeout.
                if std::mem::replace(&mut is_closing, true) {
                    return Ok(());
                }
                conn.graceful_shutdown();
            }
        }
    }
}

/// Whether a request may begin. The budget covers the memory of each stream's task and, while
/// requests with bodies are in progress, the flow control window of the connection; false if there
/// is no room: the peer may retry (RFC 9113 §8.7).
fn admit(
    peer: &Peer,
    request: &http::Request<RecvStream>,
    incoming: &mut Option<ReservedBytes>,
) -> bool {
    let budget = &peer.core.budget;
    // A part is left to what is answered and sent.
    let mut room = budget.has_large(HTTP2_STREAM_ROOM + header_bytes(request));
    if room && !request.body().is_end_stream() && incoming.is_none() {
        *incoming = budget.try_hold(HTTP2_WINDOW as usize);
        room = incoming.is_some();
    }
    if !room {
        peer.core.engine.budgets.stalls.fetch_add(1, Relaxed);
    }
    room
}

/// The size of a request's header section, as SETTINGS_MAX_HEADER_LIST_SIZE counts it (RFC 9113
/// §10.5.1).
fn header_bytes(request: &http::Request<RecvStream>) -> usize {
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    fields.chain([request.uri().to_string().len()]).map(|bytes| bytes + 32).sum()
}

fn broken(error: h2::Error) -> Ended {
    Ended::Broken(error.to_string())
}

/// The body of a request that is being received.
struct Http2Body<'r> {
    stream: RecvStream,
    /// What has come and is not taken.
    here: Bytes,
    /// Where to send 100 (Continue), if the client waits for it.
    respond: Option<&'r RefCell<SendResponse<Bytes>>>,
    pace: SlowPeerBudget,
}

impl Take for Http2Body<'_> {
    async fn take(&mut self, into: &mut Vec<u8>, upto: usize) -> Result<usize, BodyError> {
        if let Some(respond) = self.respond.take() {
            let word = http::Response::builder().status(100).body(());
            // The client sends the body in the end even without it.
            let _ = word.map(|word| respond.borrow_mut().send_informational(word));
        }
        while self.here.is_empty() {
            let left = self.pace.left().ok_or(BodyError::TooSlow)?;
            let since = monotonic_ns();
            let next = tokio::time::timeout(left, self.stream.data()).await;
            let came = next.as_ref().ok().and_then(|data| data.as_ref()?.as_ref().ok());
            self.pace.waited_since(since, came.map_or(0, |data| data.len() as u64));
            match next.map_err(|_| BodyError::TooSlow)? {
                None => return Ok(0),
                Some(Err(_)) => return Err(BodyError::Gone),
                Some(Ok(data)) => self.here = data,
            }
        }
        let count = self.here.len().min(upto.saturating_sub(into.len()));
        into.extend_from_slice(&self.here.split_to(count));
        self.stream.flow_control().release_capacity(count).map_err(|_| BodyError::Malformed)?;
        Ok(count)
    }
}

async fn stream(
    peer: Peer,
    request: http::Request<RecvStream>,
    respond: SendResponse<Bytes>,
    (mut held, (outgoing, acks)): (ReservedBytes, (Rc<Outgoing>, Rc<Acks>)),
) {
    let outgoing = outgoing.part();
    let arrived_ns = stamp();
    let record = HTTP2_STREAM_RECORD + header_bytes(&request);
    let pace = peer.core.engine.budgets.limits().pace;
    let (parts, recv) = request.into_parts();
    let method = Method::parse(parts.method.as_str().as_bytes());
    let length = parts.headers.get("content-length").and_then(|v| number(v.as_bytes()));
    let length = if recv.is_end_stream() { Some(0) } else { length };
    let expects = parts.headers.contains_key("expect");
    let respond = RefCell::new(respond);
    let waiting = expects.then_some(&respond);
    let mut incoming = Http2Body { stream: recv, here: Bytes::new(), respond: waiting, pace };
    let answer = match head(&parts) {
        Ok((target, host, headers)) => {
            let body = Body::new(&mut incoming, length);
            let request = Request { method, target, host, secure: true, headers, body };
            // Apart, so that its memory goes when the answer is known, however long that takes to
            // send.
            let answer = Box::pin(dispatch::answer(&peer, request, arrived_ns));
            held.set(record + std::mem::size_of_val(&*answer));
            let reset = std::future::poll_fn(|cx| respond.borrow_mut().poll_reset(cx));
            tokio::select! {
                biased;
                answer = answer => answer,
                // The client wants no answer any more; what has not begun does not begin.
                _ = reset => return,
            }
        }
        Err(status) => {
            let span = peer.core.begin_at(peer.client, method as u8, arrived_ns);
            dispatch::Answer { response: status::plain(status, ""), exchange: None, span }
        }
    };
    held.set(record);
    let Http2Body { stream: mut rest, .. } = incoming;
    let mut respond = respond.into_inner();
    let (status, exchange) = (answer.response.status, answer.exchange.clone());
    let bare = method == Method::Head;
    let mut clock = exchange.as_ref().map_or(answer.span, |cx| cx.span()).clock;
    let done = {
        let by = (exchange.as_deref(), bare, (pace, &outgoing));
        timed::sending(&mut clock, pin!(send(&mut respond, answer.response, by))).await
    };
    if let Some(cx) = &exchange {
        cx.ended(status, done.as_ref().copied().map_err(ToString::to_string));
    }
    if status == TOO_SLOW || matches!(done, Err(Ended::TooSlow)) {
        peer.core.engine.budgets.give_up();
    }
    if done.is_err() {
        respond.send_reset(Reason::INTERNAL_ERROR);
    }
    let span = exchange.map_or(answer.span, |cx| cx.span());
    let span = Span { clock, ..span };
    let answered = Answered { core: Rc::clone(&peer.core), span, status, acks };
    // A socket that takes nothing for so long ends the connection.
    let _left = tokio::time::timeout(SEND_TIME_MAX, outgoing.left()).await;
    drop(answered);
    // A client that is still sending gets time to read the response: some clients discard it when
    // the stream is reset (RFC 9113 §8.1). There is no room for more of the body.
    let unwanted = async { while let Some(Ok(_)) = rest.data().await {} };
    let _ = tokio::time::timeout(HTTP_LINGER_MAX, unwanted).await;
}

/// An answered request: it is recorded when its response has left, or the connection has ended.
struct Answered {
    core: Rc<Core>,
    span: Span,
    status: u16,
    acks: Rc<Acks>,
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.core.all_sent([(self.span, self.status)], Some(&self.acks));
    }
}

/// The head of HTTP/1.1 in text form; the status if it is invalid.
fn head(parts: &http::request::Parts) -> Result<(Target, String, Headers), u16> {
    let mut headers = Headers::default();
    for (name, value) in &parts.headers {
        if !headers.push(name.as_str().as_bytes(), value.as_bytes()) {
            return Err(431);
        }
    }
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let target = Target::parse(target.as_bytes())
        .map_err(|e| wire::http::head::HeadError::from(e).status())?;
    let host = match parts.uri.authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => headers.get("host").ok_or(400_u16)?,
    };
    let host = check_host(host).ok_or(400_u16)?;
    Ok((target, host, headers))
}

type SendContext<'a> = (Option<&'a Exchange>, bool, (SlowPeerBudget, &'a OutgoingPart));

async fn send(
    respond: &mut SendResponse<Bytes>,
    mut response: Response,
    (exchange, bare, (pace, outgoing)): SendContext<'_>,
) -> Result<(), Ended> {
    let payload = std::mem::take(&mut response.payload);
    let mut builder = http::Response::builder().status(response.status);
    builder = date::with_now(|now| builder.header("date", now));
    for (name, value) in &response.headers {
        builder = builder.header(*name, value.as_ref());
    }
    let length = payload.length();
    if let Some(length) = length
        && !matches!(response.status, 204 | 304)
    {
        builder = builder.header("content-length", length);
    }
    let head = builder.body(()).map_err(|e| Ended::Broken(e.to_string()))?;
    let empty = bare || length == Some(0);
    let stream = respond.send_response(head, empty).map_err(broken)?;
    if empty {
        return Ok(());
    }
    let mut out = Out { stream, pace, outgoing };
    match (payload, exchange) {
        (Payload::Empty, _) => {}
        (Payload::Bytes(bytes), _) => out.own(bytes.into_owned()).await?,
        (Payload::File(file), Some(cx)) => out.file(cx, &file).await?,
        (Payload::File(_), None) => return Err(Ended::Broken("nobody asked".to_owned())),
        (Payload::Stream(mut source), exchange) => {
            let mut more = true;
            while more {
                let mut part = Vec::new();
                // Nothing is made for a peer that does not take what it has.
                out.room(1).await?;
                let room = out.hold(HTTP_PIECE).await?;
                more = source.next(&mut part).await.map_err(|e| Ended::Broken(e.0))?;
                let count = part.len();
                if count == 0 && more && out.is_reset().await {
                    return Err(Ended::Closed);
                }
                out.send(room.fill(part)).await?;
                if let Some(cx) = exchange {
                    cx.moved((0, count));
                }
            }
        }
    }
    out.stream.send_data(Bytes::new(), true).map_err(broken)
}

/// The body of a response that is being sent.
struct Out<'a> {
    stream: SendStream<Bytes>,
    pace: SlowPeerBudget,
    /// What it has to send, within the limit of the connection over all its streams.
    outgoing: &'a OutgoingPart,
}

impl Out<'_> {
    /// Sends as the peer makes room.
    async fn send(&mut self, mut data: Bytes) -> Result<(), Ended> {
        while !data.is_empty() {
            let room = self.room(data.len()).await?;
            self.stream.send_data(data.split_to(room), false).map_err(broken)?;
        }
        Ok(())
    }

    /// The same with what is in memory already.
    async fn own(&mut self, data: Vec<u8>) -> Result<(), Ended> {
        let room = self.hold(data.len()).await?;
        self.send(room.fill(data)).await
    }

    /// Whether the peer has given the stream up.
    async fn is_reset(&mut self) -> bool {
        let reset = |cx: &mut Context<'_>| Poll::Ready(self.stream.poll_reset(cx).is_ready());
        std::future::poll_fn(reset).await
    }

    /// Waits until this many bytes may be held.
    async fn hold(&mut self, bytes: usize) -> Result<ByteReservation, Ended> {
        let left = self.pace.left().ok_or(Ended::TooSlow)?;
        let since = monotonic_ns();
        let room = tokio::time::timeout(left, self.outgoing.hold(bytes)).await;
        self.pace.waited_since(since, 0);
        room.map_err(|_| Ended::TooSlow)
    }

    /// Waits until the peer has room; for how many bytes, at most `want`.
    async fn room(&mut self, want: usize) -> Result<usize, Ended> {
        self.stream.reserve_capacity(want);
        loop {
            let here = self.stream.capacity();
            if here > 0 {
                let room = here.min(want);
                self.pace.waited(Duration::ZERO, room as u64);
                return Ok(room);
            }
            let left = self.pace.left().ok_or(Ended::TooSlow)?;
            let since = monotonic_ns();
            let more = std::future::poll_fn(|cx| self.stream.poll_capacity(cx));
            let more = tokio::time::timeout(left, more).await;
            self.pace.waited_since(since, 0);
            match more {
                Err(_) => return Err(Ended::TooSlow),
                Ok(None) => return Err(Ended::Closed),
                Ok(Some(more)) => drop(more.map_err(broken)?),
            }
        }
    }

    async fn file(&mut self, cx: &Exchange, file: &FileParts) -> Result<(), Ended> {
        for (before, start, end) in &file.parts {
            self.own(before.clone()).await?;
            let mut at = *start;
            while at < *end {
                let since = stamp();
                let count = (*end - at).min(HTTP_PIECE as u64) as usize;
                // Nothing is read for a peer that has no room for it.
                let count = self.room(count).await?;
                let room = self.hold(count).await?;
                let mut part = engine::transport::buffers::ReplyBuf::with_capacity(count);
                let read = file.reader.read(&cx.core, &cx.caller, (at, count), &mut part).await;
                let (moved, _) = read.map_err(|e| Ended::Broken(e.to_string()))?;
                if moved == 0 {
                    return Err(Ended::Broken("the file was truncated".to_owned()));
                }
                self.send(room.fill(part.into_vec())).await?;
                cx.flowed((at, moved), false, since);
                at += moved as u64;
            }
        }
        self.own(file.after.clone()).await
    }
}
