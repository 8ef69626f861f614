//! The permissions of the reader of a live stream during the stream: a request is checked once, but
//! a stream lasts for days, and its reader may be signed out, disabled or lose a role meanwhile.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE};
use axum::http::{HeaderMap, Response};
use base::clock::NS_PER_S;
use futures_core::Stream;

use super::identity::{SessionUse, identify, refusal};
use super::route::Needs;
use super::{Control, Peer};

/// How long a positive check is valid: the events of a busy stream are not checked one by one.
const ASK_AGAIN_NS: u64 = NS_PER_S;

/// What is needed to check the reader again.
pub(super) struct Reader {
    control: Arc<Control>,
    needs: Needs,
    peer: Option<Peer>,
    /// The headers that identify it.
    headers: HeaderMap,
}

impl Reader {
    /// The sender of a request with these headers.
    pub(super) fn new(
        control: &Arc<Control>,
        needs: Needs,
        peer: Option<Peer>,
        all: &HeaderMap,
    ) -> Self {
        let mut headers = HeaderMap::new();
        for name in [AUTHORIZATION, COOKIE] {
            for value in all.get_all(&name) {
                headers.append(&name, value.clone());
            }
        }
        Self { control: control.clone(), needs, peer, headers }
    }

    /// A response that ends, if it is a stream of events, with what entitles its reader to it.
    pub(super) fn guard(self, response: Response<Body>) -> Response<Body> {
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.is_none_or(|kind| kind != "text/event-stream") {
            return response;
        }
        let asked_ns = self.control.clock.monotonic_ns();
        response.map(|body| {
            Body::from_stream(Guarded { reader: self, events: body.into_data_stream(), asked_ns })
        })
    }

    fn may(&self) -> bool {
        let identity = identify(&self.control, self.peer, &self.headers, SessionUse::Before);
        refusal(self.needs, identity.as_ref()).is_none()
    }
}

struct Guarded {
    reader: Reader,
    events: BodyDataStream,
    /// When it was checked last.
    asked_ns: u64,
}

impl Stream for Guarded {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = ready!(Pin::new(&mut self.events).poll_next(cx));
        let now = self.reader.control.clock.monotonic_ns();
        if now.saturating_sub(self.asked_ns) >= ASK_AGAIN_NS {
            if !self.reader.may() {
                return Poll::Ready(None);
            }
            self.asked_ns = now;
        }
        Poll::Ready(event)
    }
}
