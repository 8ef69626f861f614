//! What waits for room in a core's budget: when something is given back, all of it is woken and
//! tries again.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::Notify;

/// Where it waits.
#[derive(Debug, Default)]
pub(super) struct BudgetWait {
    /// How many do: those that give back look at this first.
    waiting: AtomicUsize,
    freed: Notify,
}

struct Waits<'a>(&'a BudgetWait);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

impl BudgetWait {
    /// Something was given back; on any thread.
    #[inline]
    pub fn freed(&self) {
        if self.waiting.load(SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }

    /// Waits until `take` takes what it needs, for at most `patience` if that is given. It is asked
    /// at once, and again when something was given back.
    pub async fn until<T>(
        &self,
        patience: Option<Duration>,
        mut take: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.waiting.fetch_add(1, SeqCst);
        let _waits = Waits(self);
        let taken = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                // What is given back from here on is heard.
                freed.as_mut().enable();
                if let Some(taken) = take() {
                    return taken;
                }
                freed.await;
            }
        };
        match patience {
            Some(patience) => tokio::time::timeout(patience, taken).await.ok(),
            None => Some(taken.await),
        }
    }
}
