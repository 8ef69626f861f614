//! Who reads a live stream, as long as it lasts: a request is permitted once, but a stream goes on
//! for days, and its reader may be signed out, disabled or lose his role meanwhile.

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

/// How long an answer of "he may" is good: events of a busy stream do not each ask anew.
const ASK_AGAIN_NS: u64 = NS_PER_S;

/// What it takes to ask again who is reading.
pub(super) struct Reader {
    control: Arc<Control>,
    needs: Needs,
    peer: Option<Peer>,
    /// Those that say who it is.
    headers: HeaderMap,
}

impl Reader {
    /// Who has sent a request with these headers.
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
    /// When it was asked last.
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
