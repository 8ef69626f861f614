//! The HTTP API, as `docs/protocols/api.md` describes it: one router, the same on every listener.
//!
//! The listener adds the peer ([`Peer`]) as a request extension; [`guard`] turns that, a cookie or
//! a bearer token into an [`Identity`], or answers 401. [`routes`] has the permission that each
//! path requires.

mod analytics;
mod arrival;
mod configuration;
mod dav;
mod error;
mod guard;
mod identity;
mod lab;
mod logs;
mod nfs;
mod openapi;
mod queue;
mod reader;
pub mod route;
pub mod routes;
mod sign_in;
mod stream;
mod transfers;
mod tree;
mod ui;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard};

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base::clock::{Clock, NS_PER_S};
use base::limits::{
    API_BODY_MAX, API_QUERIES_CLIENT_MAX, API_QUERIES_MAX, API_QUERIES_WAITING_CLIENT_MAX,
    API_QUERIES_WAITING_MAX, SIGN_IN_WAITING_CLIENT_MAX, SIGN_IN_WAITING_MAX,
};
use base::refusals::Limit;
use base::tally::AddressPermits;
use base::throttle::Throttle;
use tokio::sync::watch;

pub use error::{ApiError, Body as ErrorBody};
pub use identity::{Credential, Identity};

use self::queue::ClientQueue;
use crate::accounts::Accounts;
use crate::appliance::Appliance;
use crate::sessions::Sessions;
use crate::state::files::{Digest, digest, random_hex};
use crate::tree::Tree;
use crate::tree::audit::Record;

/// The sender of a request, as the listener knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Over the network.
    Remote(IpAddr),
    /// Over the local socket, with the uid that the kernel vouches for; only root and the serving
    /// user get this far.
    Local {
        /// The peer's uid.
        uid: u32,
    },
}

/// Everything that the handlers share.
pub struct Control {
    appliance: Arc<dyn Appliance>,
    accounts: Arc<Accounts>,
    tree: Arc<Tree>,
    api_token: Digest,
    clock: Arc<dyn Clock>,
    hashing: ClientQueue,
    queries: ClientQueue,
    streams: Arc<AddressPermits>,
    ending: AtomicBool,
}

impl Control {
    /// Joins what the API needs; `clock` gives the age of sessions and the current time of queries.
    pub fn new(
        appliance: Arc<dyn Appliance>,
        accounts: Arc<Accounts>,
        tree: Arc<Tree>,
        api_token: &str,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        Arc::new(Self {
            appliance,
            accounts,
            tree,
            api_token: digest(api_token),
            clock,
            hashing: ClientQueue::new((1, 1), (SIGN_IN_WAITING_MAX, SIGN_IN_WAITING_CLIENT_MAX)),
            queries: ClientQueue::new(
                (API_QUERIES_MAX, API_QUERIES_CLIENT_MAX),
                (API_QUERIES_WAITING_MAX, API_QUERIES_WAITING_CLIENT_MAX),
            ),
            streams: Arc::default(),
            ending: AtomicBool::new(false),
        })
    }

    /// A new one-time sign-in path (`/login?once=…`) for `user`.
    pub fn login_once(&self, user: &str) -> String {
        let token = random_hex::<24>();
        self.sessions().offer_once(&token, user, self.clock.monotonic_ns());
        format!("/login?once={token}")
    }

    /// Ends live streams, so that their connections can end.
    pub fn end(&self) {
        self.ending.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Changes each time that connections are to end, as after a change of the network.
    pub(crate) fn renewals(&self) -> watch::Receiver<u64> {
        self.tree.renewals()
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.accounts.sessions()
    }

    fn throttle(&self) -> MutexGuard<'_, Throttle> {
        self.accounts.throttle()
    }

    /// The time of the appliance, seconds since the epoch.
    fn now_s(&self) -> u64 {
        self.clock.wall_ns() / NS_PER_S
    }
}

/// The router over `control`. Requests must carry a [`Peer`] extension.
pub fn router(control: Arc<Control>) -> Router {
    Router::new()
        .nest("/api/v1", routes::router(&control))
        .route("/api", get(async || ApiError::unknown_path()))
        .route("/api/{*rest}", get(async || ApiError::unknown_path()))
        .route("/login", get(sign_in::login))
        .fallback(ui::file)
        .layer(from_fn(guard::forgery))
        .layer(from_fn_with_state(control.clone(), guard::own_host))
        .layer(from_fn(guard::headers))
        .layer(DefaultBodyLimit::max(API_BODY_MAX))
        .layer(from_fn(queue::with_client))
        .with_state(control)
}

async fn status(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    let appliance = control.appliance.clone();
    // Querying the size of a file system may block.
    let status = tokio::task::spawn_blocking(move || appliance.status())
        .await
        .map_err(|e| ApiError::failed("read the status", &e))?;
    let text =
        serde_json::to_string(&status).map_err(|e| ApiError::failed("write the status", &e))?;
    Ok(json(text))
}

/// Does what may block on a thread for that, a few at a time.
async fn blocking<T: Send + 'static>(
    control: &Arc<Control>,
    tried: &'static str,
    work: impl FnOnce(&dyn Appliance) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let permit = control.queries.wait(queue::client()).await;
    let permit = permit.ok_or_else(|| {
        Limit::Queries.count();
        ApiError::busy(tried, "too many queries are queued")
    })?;
    let appliance = control.appliance.clone();
    let answer = tokio::task::spawn_blocking(move || {
        let answer = work(&*appliance);
        // Held until the work is over, also when the caller has gone.
        drop(permit);
        answer
    });
    answer.await.map_err(|e| ApiError::failed(tried, &e))
}

/// Has the tree do what may block.
async fn with_tree<T: Send + 'static>(
    control: &Arc<Control>,
    tried: &'static str,
    work: impl FnOnce(&Tree) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let tree = control.tree.clone();
    blocking(control, tried, move |_| work(&tree)).await
}

/// Records an operation outside the tree, before it is done: an operation that cannot be recorded
/// is not done.
async fn record_action(
    control: &Arc<Control>,
    tried: &'static str,
    record: Record,
) -> Result<(), ApiError> {
    let written = with_tree(control, tried, move |tree| tree.audit().write(&[record])).await?;
    written.map_err(|e| {
        let failed = format!("the audit log could not be written: {e}");
        ApiError::failed(tried, &failed)
    })
}

/// A response of anything as JSON.
fn answer(tried: &str, value: &impl serde::Serialize) -> Result<Response, ApiError> {
    serde_json::to_string(value).map(json).map_err(|e| ApiError::failed(tried, &e))
}

/// A response of ready JSON text.
fn json(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
pub(crate) mod tests;
