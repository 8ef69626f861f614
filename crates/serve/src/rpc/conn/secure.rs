//! From a connection in the clear to one with TLS (RFC 9289 §4.1): the probe is answered, then
//! comes the handshake, then everything else.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use base::limits::TLS_HANDSHAKE_MAX;

use super::super::later::{Letter, Span};
use super::{Conn, Ended};
use crate::transport::mailbox::Mailbox;
use crate::transport::tls::TlsError;
use crate::transport::tls::name::common_name;

impl Conn {
    /// The reply to a probe is written from `start` on; it becomes a refusal if something else is
    /// still to be answered, because that would come in the middle of the handshake.
    pub(super) fn take_probe(&mut self, start: usize, span: Span) {
        if self.in_flight > 0 || !self.large.is_empty() || !self.extents.is_empty() {
            self.core.service.refuse_probe(self.input.message(), start, &mut self.out);
        } else {
            self.securing = true;
        }
        self.note(span);
    }

    /// Sets up TLS, once the reply to the probe has left.
    ///
    /// # Errors
    /// [`Ended::Tls`] when it comes to nothing, [`Ended::Drained`] when the service ends meanwhile.
    pub(super) async fn secure(&mut self) -> Result<(), Ended> {
        self.securing = false;
        // A client that does not wait for the reply cannot know whether it speaks to us or to
        // somebody in between.
        if !self.input.is_empty() {
            return Err(TlsError::Early.into());
        }
        self.rest();
        let Some(tls) = self.core.service.tls.clone() else { return Err(TlsError::State.into()) };
        let core = (&self.core.buffers, &self.core.budget);
        let done = tokio::time::timeout(TLS_HANDSHAKE_MAX, self.link.secure(&tls, core));
        let done = unless_it_ends(done, &self.mailbox).await;
        done.ok_or(Ended::Drained)?.map_err(|_| TlsError::TooSlow)??;
        let name = self.link.certificate().and_then(common_name);
        self.caller.moves_to(self.link.transport(), name);
        self.core.service.budgets.tls_sessions.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Keeps why a session failed, for the one who looks after the server.
    pub(super) fn note_failure(&self, why: &TlsError) {
        if let Some(tls) = &self.core.service.tls {
            tls.note_failure(self.caller.address, why.to_string());
        }
    }
}

/// What `done` comes to, or `None` when the service ends before.
async fn unless_it_ends<T>(done: impl Future<Output = T>, mailbox: &Mailbox<Letter>) -> Option<T> {
    let mut done = pin!(done);
    poll_fn(|cx| match (done.as_mut().poll(cx), mailbox.poll(cx, false)) {
        (Poll::Ready(done), _) => Poll::Ready(Some(done)),
        (_, Poll::Ready(woken)) if woken.closing => Poll::Ready(None),
        _ => Poll::Pending,
    })
    .await
}
