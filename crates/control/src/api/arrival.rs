//! A time limit for the body of a request: a client that sends a byte a minute, signed in or not,
//! must not hold one of the few connections of the administration for ever.

use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::http::Method;
use futures_core::Stream;
use tokio::time::{Sleep, sleep};

/// The same request; its body fails unless it is complete within `limit` from now on.
pub(super) fn in_time(request: Request, limit: Duration) -> Request {
    if !matches!(*request.method(), Method::POST | Method::PUT) {
        return request;
    }
    request.map(|body| {
        Body::from_stream(Arriving { body: body.into_data_stream(), late: Box::pin(sleep(limit)) })
    })
}

struct Arriving {
    body: BodyDataStream,
    late: Pin<Box<Sleep>>,
}

impl Stream for Arriving {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Time is looked at first: a body that always has one byte more is late, too.
        if self.late.as_mut().poll(cx).is_ready() {
            let late = Error::new(ErrorKind::TimedOut, "it did not complete in time");
            return Poll::Ready(Some(Err(axum::Error::new(late))));
        }
        Pin::new(&mut self.body).poll_next(cx)
    }
}

#[cfg(test)]
mod tests;
