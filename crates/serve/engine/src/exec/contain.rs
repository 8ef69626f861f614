//! Panics of handlers are contained: the request fails with [`Status::Fault`], it is counted, and
//! all other requests continue. What was called may have been left half done; handlers keep their
//! state behind locks and cells that are whole between two calls.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use vfs::status::Status;

use crate::transport::Budgets;

impl Budgets {
    /// Runs a handler.
    ///
    /// # Errors
    /// [`Status::Fault`] if it panics.
    pub fn contain<T>(&self, run: impl FnOnce() -> T) -> Result<T, Status> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
            self.panicked();
            Status::Fault
        })
    }

    /// Runs a handler that waits; it is not asked again after a panic. It is pinned by its caller:
    /// passed by value, the whole of it would be copied at each level and held twice.
    ///
    /// # Errors
    /// [`Status::Fault`] if it panics.
    pub async fn contain_async<F: Future>(
        &self,
        mut run: Pin<&mut F>,
    ) -> Result<F::Output, Status> {
        std::future::poll_fn(move |cx| match self.contain(|| run.as_mut().poll(cx)) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(status) => Poll::Ready(Err(status)),
        })
        .await
    }
}

#[cfg(test)]
mod tests;
