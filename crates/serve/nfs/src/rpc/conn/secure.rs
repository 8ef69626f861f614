//! From an unencrypted connection to one with TLS (RFC 9289 §4.1): first the reply to the probe,
//! then the handshake, then everything else.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use base::limits::TLS_HANDSHAKE_MAX;
use wire::rpc::RecordMark;

use super::super::completion::Completion;
use super::super::dispatch::Service;
use super::super::framing;
use super::{Conn, Ended};
use engine::exec::{CompletionQueue, Span, accept};
use engine::transport::tls::TlsError;
use engine::transport::tls::name::common_name;

impl Conn {
    /// The reply to a probe is written behind `mark`; it becomes a refusal if other replies are
    /// pending, because they would come in the middle of the handshake.
    pub(super) fn take_probe(&mut self, mark: RecordMark, xid: u32, span: Span) {
        if self.in_flight > 0 || !self.large.is_empty() || !self.extents.is_empty() {
            self.out.truncate(mark.start() + framing::HEADROOM);
            Service::refuse_probe(xid, &mut self.out);
        } else {
            self.securing = true;
        }
        framing::end(self.out.vec(), mark, 0);
        self.note(span);
    }

    /// Sets up TLS, once the reply to the probe has left.
    ///
    /// # Errors
    /// [`Ended::Tls`] when it comes to nothing, [`Ended::Drained`] when the service ends meanwhile.
    pub(super) async fn secure(&mut self) -> Result<(), Ended> {
        self.securing = false;
        // A client that does not wait for the reply cannot distinguish this server from an attacker
        // on the path.
        if !self.input.is_empty() {
            return Err(TlsError::Early.into());
        }
        self.rest();
        let Some(tls) = self.core.service.tls.clone() else { return Err(TlsError::State.into()) };
        let core = (&self.core.buffers, &*self.core.budget);
        let handshake = self.link.secure(&tls, core);
        let done = accept::secure(&self.core.engine, handshake, TLS_HANDSHAKE_MAX);
        unless_it_ends(done, &self.queue).await.ok_or(Ended::Drained)??;
        let name = self.link.certificate().and_then(common_name);
        self.caller.moves_to(self.link.transport(), name);
        Ok(())
    }

    /// Keeps the reason of a failed session for the administrator.
    pub(super) fn note_failure(&self, why: &TlsError) {
        if let Some(tls) = &self.core.service.tls {
            tls.note_failure(self.caller.address, why.to_string());
        }
    }
}

/// What `done` comes to, or `None` when the service ends before.
async fn unless_it_ends<T>(
    done: impl Future<Output = T>,
    queue: &CompletionQueue<Completion>,
) -> Option<T> {
    let mut done = pin!(done);
    poll_fn(|cx| match (done.as_mut().poll(cx), queue.poll(cx, false)) {
        (Poll::Ready(done), _) => Poll::Ready(Some(done)),
        (_, Poll::Ready(woken)) if woken.closing => Poll::Ready(None),
        _ => Poll::Pending,
    })
    .await
}
