//! One client's part of a core's budget, and the scope that a connection runs within.

use std::cell::Cell;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::task::{Context, Poll};

use base::peer::network;
use base::permits::RevokeSignal;

use super::CoreBudget;
use super::returns::ReturnNotify;
use crate::pool::place::connection_number;
use crate::transport::connections::ConnectionPermit;

/// Clients of a core before those that have gone are removed for the first time.
const CLIENTS_KEPT: usize = 16;

/// What the connections of one client hold of a core's part.
#[derive(Debug, Default)]
pub(super) struct ClientPart {
    pub(super) requests: Cell<usize>,
    pub(super) bytes: Cell<usize>,
    pub(super) overdrafts: Cell<usize>,
    /// Bytes given back on other threads.
    pub(super) returned: Arc<AtomicUsize>,
}

/// What a connection runs within: the part of its client, and its permit.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) client: Rc<ClientPart>,
    permit: Option<Arc<ConnectionPermit>>,
    is_kept: Cell<bool>,
    /// Its number among those that wait for the pool.
    number: u64,
}

impl CoreBudget {
    /// Runs a connection from this address within the part of its client.
    pub fn scoped<F: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        from: IpAddr,
        permit: Option<Arc<ConnectionPermit>>,
        connection: F,
    ) -> Scoped<()> {
        let is_kept = Cell::new(permit.is_none());
        let (client, number) = (self.client(network(from)), connection_number());
        let scope = Rc::new(Scope { client, permit, is_kept, number });
        Scoped { budget: Rc::clone(self), scope: Some(scope), future: Some(Box::pin(connection)) }
    }

    /// A future that runs apart within the current part.
    pub fn within<T>(self: &Rc<Self>, future: Pin<Box<dyn Future<Output = T>>>) -> Scoped<T> {
        let scope = self.scope.borrow().clone();
        Scoped { budget: Rc::clone(self), scope, future: Some(future) }
    }

    /// The connection that runs now is in use, because a user has signed in on it or a call was
    /// made: it is not evicted for new ones any more.
    pub fn keep_connection(&self) {
        let scope = self.scope.borrow();
        if let Some(scope) = scope.as_ref()
            && !scope.is_kept.replace(true)
        {
            // One that has lost its permit is closed a moment later.
            let _ = scope.permit.as_ref().is_some_and(|permit| permit.keep());
        }
    }

    /// How the connection that runs now learns that its permit has gone to a new one.
    pub fn revoke_signal(&self) -> Option<Arc<RevokeSignal>> {
        let scope = self.scope.borrow();
        scope.as_ref()?.permit.as_ref().map(|permit| Arc::clone(permit.signal()))
    }

    /// The number of the connection that runs now; 0 of what is none.
    pub fn connection(&self) -> u64 {
        self.scope.borrow().as_ref().map_or(0, |scope| scope.number)
    }

    fn client(&self, client: IpAddr) -> Rc<ClientPart> {
        let (clients, most) = &mut *self.clients.borrow_mut();
        if let Some(part) = clients.get(&client).and_then(Weak::upgrade) {
            return part;
        }
        if clients.len() >= *most {
            clients.retain(|_, part| part.strong_count() > 0);
            *most = CLIENTS_KEPT.max(2 * clients.len());
        }
        let part = Rc::<ClientPart>::default();
        clients.insert(client, Rc::downgrade(&part));
        part
    }

    pub(super) fn of_client<T>(&self, of: impl FnOnce(&ClientPart) -> T) -> Option<T> {
        self.scope.borrow().as_ref().map(|scope| of(&scope.client))
    }

    /// Whether the client of the connection that runs now may hold `n` more bytes.
    pub fn client_has_bytes(&self, n: usize) -> bool {
        self.of_client(|client| {
            client.settle();
            client.bytes.get() + n <= self.client_max.1
        })
        .unwrap_or(true)
    }

    /// Whether it is in use, or cannot be evicted for a new one.
    pub fn is_connection_kept(&self) -> bool {
        self.scope.borrow().as_ref().is_none_or(|scope| scope.is_kept.get())
    }
}

impl ClientPart {
    pub(super) fn take(&self, n: usize) {
        self.bytes.set(self.bytes.get() + n);
    }

    pub(super) fn give(&self, n: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(n));
    }

    pub(super) fn settle(&self) {
        if self.returned.load(Relaxed) > 0 {
            self.give(self.returned.swap(0, Relaxed));
        }
    }
}

/// A future that runs within the part of a client, while it is polled and when it is dropped.
pub struct Scoped<T> {
    budget: Rc<CoreBudget>,
    scope: Option<Rc<Scope>>,
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
}

impl<T> Scoped<T> {
    /// Runs `with` within the part.
    fn enter<U>(&mut self, with: impl FnOnce(&mut Self) -> U) -> U {
        let before = self.budget.scope.replace(self.scope.clone());
        let done = with(self);
        self.budget.scope.replace(before);
        done
    }
}

impl<T> Future for Scoped<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.enter(|this| match &mut this.future {
            Some(future) => future.as_mut().poll(context),
            // Only a future that is being dropped has none.
            None => Poll::Pending,
        })
    }
}

impl<T> Drop for Scoped<T> {
    fn drop(&mut self) {
        self.enter(|this| drop(this.future.take()));
    }
}

/// Where bytes of a core's budget are given back on other threads. The core takes account of that
/// when it looks at its budget next.
#[derive(Debug, Clone)]
pub struct ReturnedBytes {
    pub(super) core: Arc<AtomicUsize>,
    pub(super) client: Option<Arc<AtomicUsize>>,
    pub(super) notify: Arc<ReturnNotify>,
}

impl ReturnedBytes {
    /// Gives `n` bytes back.
    pub fn give(&self, n: usize) {
        if let Some(client) = &self.client {
            client.fetch_add(n, SeqCst);
        }
        self.core.fetch_add(n, SeqCst);
        self.notify.notify();
    }
}
