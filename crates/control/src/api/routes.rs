//! Every path of the API, in one table: its method, whom it answers, what it is for.
//!
//! The router is made from this table and from nothing else, so a path without a declared
//! permission does not exist. `api/tests/access.rs` walks it with every role.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::{ApiError, Control, analytics, guard, nfs, sign_in, status, stream};
use crate::access::Level::{self, Change, Read};
use Needs::{May, Nothing, SignedIn};

/// Whom a path answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Everyone, also who is not signed in: the way in and out, nothing else.
    Nothing,
    /// Everyone who is signed in.
    SignedIn,
    /// Who has this permission.
    May(&'static str, Level),
}

/// One method of one path.
pub struct Route {
    /// `GET`, …
    pub method: Method,
    /// Below `/api/v1`; `{name}` stands for a part of the caller's.
    pub path: &'static str,
    /// Whom it answers.
    pub needs: Needs,
    /// What it does, a sentence without its full stop.
    pub summary: &'static str,
    handler: MethodRouter<Arc<Control>>,
}

impl Route {
    /// A route; there is none without its needs.
    pub fn new<H, T>(
        method: Method,
        path: &'static str,
        needs: Needs,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Arc<Control>>,
        T: 'static,
    {
        // Only methods that a filter knows are in the table; a test makes the whole table.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE);
        Self { method, path, needs, summary, handler: on(filter, handler) }
    }
}

/// The table.
pub fn table() -> Vec<Route> {
    let mut table = session();
    table.extend(observation());
    table
}

fn session() -> Vec<Route> {
    const PATH: &str = "/session";
    vec![
        Route::new(Method::GET, PATH, SignedIn, "Who is signed in, and what he may", sign_in::who),
        Route::new(Method::POST, PATH, Nothing, "Sign in with a password", sign_in::sign_in),
        Route::new(Method::DELETE, PATH, Nothing, "Sign out", sign_in::sign_out),
    ]
}

fn observation() -> Vec<Route> {
    let (look, clients) = (May("analytics", Read), May("clients", Read));
    vec![
        Route::new(
            Method::GET,
            "/status",
            May("status", Read),
            "What is served, and whether it is well",
            status,
        ),
        Route::new(
            Method::GET,
            "/analytics/statistics",
            look,
            "The statistics that can be asked for",
            analytics::statistics,
        ),
        Route::new(
            Method::GET,
            "/analytics/data",
            look,
            "One statistic over an interval",
            analytics::data,
        ),
        Route::new(
            Method::GET,
            "/analytics/stream",
            look,
            "Statistics each second, as server-sent events",
            stream::stream,
        ),
        Route::new(
            Method::GET,
            "/analytics/recorder",
            look,
            "How far back the flight recorder reaches",
            analytics::recorder,
        ),
        Route::new(
            Method::POST,
            "/analytics/collect",
            May("analytics", Change),
            "Switch the breakdowns on or off",
            analytics::collect,
        ),
        Route::new(
            Method::GET,
            "/services/nfs/clients",
            clients,
            "NFS clients that hold state",
            nfs::clients,
        ),
        Route::new(
            Method::DELETE,
            "/services/nfs/clients/{id}",
            May("clients", Change),
            "End an NFS client with all that it holds",
            nfs::expire,
        ),
        Route::new(
            Method::GET,
            "/services/nfs/opens",
            clients,
            "What NFS clients hold open",
            nfs::opens,
        ),
        Route::new(
            Method::GET,
            "/services/nfs/locks",
            clients,
            "Byte-range locks of NFS clients",
            nfs::locks,
        ),
    ]
}

/// The router of the table, each route behind its guard.
pub fn router(control: &Arc<Control>) -> Router<Arc<Control>> {
    let mut router = Router::new();
    for route in table() {
        let guard = from_fn_with_state((control.clone(), route.needs), guard::permit);
        router = router.route(route.path, route.handler.route_layer(guard));
    }
    router
        .fallback(async || ApiError::unknown_path())
        .method_not_allowed_fallback(async || ApiError::wrong_method())
}
