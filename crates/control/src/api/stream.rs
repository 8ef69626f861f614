//! Live statistics as server-sent events.
//!
//! A thread waits for each second and puts it into a bounded channel. A browser that reads too
//! slowly loses seconds and receives their number in an event `lost`; nothing waits for it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use analytics::query::{Data, Subscription};
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use base::clock::NS_PER_S;
use base::limits::{
    API_STREAM_BUFFER, API_STREAM_KEEPALIVE, API_STREAM_STATS_MAX, API_STREAMS_CLIENT_MAX,
    API_STREAMS_MAX,
};
use base::refusals::Limit;
use base::tally::AddressPermit;
use futures_core::Stream;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::analytics::{json_of, parse, refusal};
use super::{ApiError, Control, queue};

const TRIED: &str = "open a live stream";
/// How soon a waiting thread notices that its listener has gone or the server ends.
pub(super) const NOTICE: Duration = Duration::from_millis(250);

/// `GET /api/v1/analytics/stream?stat=ID[&stat=ID…]`.
pub async fn stream(
    State(control): State<Arc<Control>>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let stats = stats(query.as_deref().unwrap_or(""));
    if stats.is_empty() || stats.len() > API_STREAM_STATS_MAX {
        let failed = format!("{} statistics were given", stats.len());
        let hint = format!("give 1 to {API_STREAM_STATS_MAX}: ?stat=ID&stat=ID");
        return Err(ApiError::wrong(TRIED, &failed, &hint));
    }
    let place = place(&control, TRIED)?;
    let stats = stats.iter().map(|stat| parse(stat)).collect::<Result<Vec<_>, _>>();
    let engine = control.appliance.engine();
    let seconds = stats
        .and_then(|stats| engine.subscribe(stats).map_err(|e| refusal(&e)))
        .map_err(|e| ApiError::from_request_error(TRIED, e))?;
    let (sender, receiver) = channel(API_STREAM_BUFFER);
    tokio::task::spawn_blocking(move || {
        pump(&control, seconds, &sender);
        drop(place);
    });
    let body = Body::from_stream(Events { receiver });
    Ok(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// A permit for a live stream, as long as it is held.
pub(super) fn place(control: &Control, tried: &'static str) -> Result<AddressPermit, ApiError> {
    let limits = (API_STREAMS_MAX, API_STREAMS_CLIENT_MAX);
    let permit = control.streams.take(queue::client(), limits);
    permit.ok_or_else(|| {
        Limit::Streams.count();
        ApiError::busy(tried, "too many live streams are open")
    })
}

/// All values of `stat` in a query string, in their order.
pub(super) fn stats(query: &str) -> Vec<String> {
    query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("stat="))
        .map(percent_decode)
        .filter(|stat| !stat.is_empty())
        .collect()
}

/// RFC 3986 §2.1, with `+` as a space as browsers' forms and URLSearchParams write it.
fn percent_decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'+', _) => out.push(b' '),
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                out.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                rest = after;
            }
            _ => out.push(*first),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|n| n as u8)
}

/// One second of all statistics, and before it how many were lost.
pub(super) fn event(data: &[Data], lost: u64) -> String {
    let before = match lost {
        0 => String::new(),
        _ => format!("event: lost\ndata: {{\"seconds\": {lost}}}\n\n"),
    };
    data.iter().fold(before, |text, one| text + "data: " + &json_of(one) + "\n\n")
}

fn pump(control: &Control, mut seconds: Subscription, sender: &Sender<Bytes>) {
    let mut lost = 0;
    let now = || control.clock.monotonic_ns();
    let mut said = now();
    while !control.ending.load(Ordering::Relaxed) && !sender.is_closed() {
        let event = match seconds.recv_timeout(NOTICE) {
            Some(second) => {
                lost += second.lost;
                event(&second.data, lost)
            }
            None if now().saturating_sub(said) / NS_PER_S >= API_STREAM_KEEPALIVE.as_secs() => {
                ":\n\n".to_owned()
            }
            None => continue,
        };
        match sender.try_send(Bytes::from(event)) {
            Ok(()) => (lost, said) = (0, now()),
            Err(TrySendError::Full(_)) => lost += 1,
            Err(TrySendError::Closed(_)) => return,
        }
    }
}

/// What a channel brings, as the body of a response.
pub(super) struct Events {
    pub(super) receiver: Receiver<Bytes>,
}

impl Stream for Events {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(cx).map(|event| event.map(Ok))
    }
}
