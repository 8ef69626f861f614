//! Every path of the API, in one table: its method, the required permission, and its purpose.
//!
//! The router is made from this table and from nothing else, so a path without a declared
//! permission does not exist. `api/tests/access.rs` walks it with every role.

use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::response::Response;

use base::limits::{CONFIGURATION_BYTES_MAX, LAB_SHOWN_BYTES_MAX};

use super::route::Needs::{May, Nodes, Nothing, SignedIn};
use super::route::Route;
use super::{
    ApiError, Control, analytics, answer, configuration, dav, guard, lab, logs, nfs, openapi,
    sign_in, status, stream, transfers, tree,
};
use crate::access::Level::{Change, Read};

/// The table.
pub fn table() -> Vec<Route> {
    let mut table = session();
    table.extend(observation());
    table.extend(nfs_clients());
    table.extend(dav_locks());
    table.extend(lab_runs());
    table.extend(nodes());
    table.extend(configurations());
    table.extend(records());
    table
}

fn nodes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/tree", SignedIn, "Declarations of all nodes", tree::tree),
        Route::new(Method::GET, "/nodes", Nodes, "The root of the tree", tree::root)
            .query(&["depth"]),
        Route::new(Method::GET, "/nodes/{*path}", Nodes, "Current state of a node", tree::node)
            .query(&["depth"]),
        Route::new(
            Method::POST,
            "/nodes/{*path}",
            Nodes,
            "An action of a node: PATH/actions/NAME",
            tree::act,
        ),
        Route::new(Method::POST, "/changes", Nodes, "Apply changes, all or nothing", tree::change)
            .body_max(CONFIGURATION_BYTES_MAX),
        Route::new(
            Method::GET,
            "/changes/stream",
            May("configuration", Read),
            "Follow changes, as server-sent events",
            tree::stream,
        ),
        Route::new(Method::GET, "/openapi.json", SignedIn, "This API, as OpenAPI", description),
    ]
}

fn configurations() -> Vec<Route> {
    let (look, change) = (May("configuration", Read), May("configuration", Change));
    let path = "/configuration";
    vec![
        Route::new(Method::GET, path, look, "The configuration as a file", configuration::export),
        Route::new(
            Method::PUT,
            path,
            change,
            "Import a whole configuration",
            configuration::import,
        )
        .query(&["dry_run", "revision"])
        .body_max(CONFIGURATION_BYTES_MAX),
        Route::new(
            Method::GET,
            "/configuration/history",
            look,
            "Retained revisions, newest first",
            configuration::history,
        )
        .query(&["limit"]),
        Route::new(
            Method::GET,
            "/configuration/history/{revision}",
            look,
            "An earlier configuration as a file",
            configuration::revision,
        ),
        Route::new(
            Method::GET,
            "/configuration/compare",
            look,
            "Differences between two revisions",
            configuration::compare,
        )
        .query(&["from", "to"]),
        Route::new(
            Method::POST,
            "/configuration/restore",
            change,
            "Restore an earlier configuration",
            configuration::restore,
        ),
    ]
}

fn records() -> Vec<Route> {
    let look = May("maintenance", Read);
    vec![
        Route::new(Method::GET, "/audit", look, "Audit log", configuration::audit)
            .query(&["from", "to", "path", "limit"]),
        Route::new(
            Method::GET,
            "/transfers",
            look,
            "Transfer log, newest first",
            transfers::transfers,
        )
        .query(&[
            "since",
            "until",
            "protocol",
            "direction",
            "outcome",
            "user",
            "client",
            "share",
            "limit",
        ]),
        Route::new(Method::GET, "/logs", look, "Server log since the start", logs::get)
            .query(&["service", "level", "from", "limit"]),
        Route::new(
            Method::GET,
            "/logs/stream",
            look,
            "Follow the server log, as server-sent events",
            logs::stream,
        )
        .query(&["service", "level"]),
    ]
}

fn session() -> Vec<Route> {
    const PATH: &str = "/session";
    vec![
        Route::new(Method::GET, PATH, SignedIn, "Signed-in user and permissions", sign_in::current),
        Route::new(Method::POST, PATH, Nothing, "Sign in with a password", sign_in::sign_in),
        Route::new(Method::DELETE, PATH, Nothing, "Sign out", sign_in::sign_out),
    ]
}

fn observation() -> Vec<Route> {
    let look = May("analytics", Read);
    vec![
        Route::new(Method::GET, "/status", May("status", Read), "Served shares and health", status),
        Route::new(
            Method::GET,
            "/analytics/statistics",
            look,
            "Available statistics",
            analytics::statistics,
        ),
        Route::new(
            Method::GET,
            "/analytics/data",
            look,
            "One statistic over an interval",
            analytics::data,
        )
        .query(&["stat", "from", "to", "step", "top", "source"]),
        Route::new(
            Method::GET,
            "/analytics/stream",
            look,
            "Follow statistics every second, as server-sent events",
            stream::stream,
        )
        .query(&["stat"]),
        Route::new(
            Method::GET,
            "/analytics/counts",
            look,
            "Operations between two moments, by client",
            analytics::counts,
        )
        .query(&["group", "from", "to"]),
        Route::new(
            Method::GET,
            "/analytics/recorder",
            look,
            "Interval covered by the flight recorder",
            analytics::recorder,
        ),
        Route::new(
            Method::POST,
            "/analytics/collect",
            May("analytics", Change),
            "Switch the breakdowns on or off",
            analytics::collect,
        ),
    ]
}

fn nfs_clients() -> Vec<Route> {
    let clients = May("clients", Read);
    vec![
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
            "Expire an NFS client and release its state",
            nfs::expire,
        ),
        Route::new(
            Method::GET,
            "/services/nfs/opens",
            clients,
            "Open files of NFS clients",
            nfs::opens,
        )
        .query(&["client"]),
        Route::new(
            Method::GET,
            "/services/nfs/locks",
            clients,
            "Byte-range locks of NFS clients",
            nfs::locks,
        )
        .query(&["client"]),
    ]
}

fn dav_locks() -> Vec<Route> {
    const PATH: &str = "/services/http/locks";
    vec![
        Route::new(Method::GET, PATH, May("clients", Read), "Locks of WebDAV clients", dav::locks),
        Route::new(
            Method::DELETE,
            "/services/http/locks/{id}",
            May("clients", Change),
            "Release a lock of a WebDAV client",
            dav::release,
        ),
    ]
}

fn lab_runs() -> Vec<Route> {
    let look = May("lab", Read);
    vec![
        Route::new(
            Method::GET,
            "/lab/runs",
            look,
            "Runs of load jobs, the newest first",
            lab::runs,
        ),
        Route::new(Method::GET, "/lab/runs/{run}/result", look, "The record of a run", lab::result),
        Route::new(
            Method::GET,
            "/lab/runs/{run}/report",
            look,
            "The report of a run, a page",
            lab::report,
        ),
        Route::new(
            Method::GET,
            "/lab/runs/{run}/figures",
            look,
            "The figures of a run, in sections",
            lab::figures,
        ),
        Route::new(
            Method::POST,
            "/lab/figures",
            look,
            "The figures of a result that is sent, in sections",
            lab::figures_of,
        )
        .body_max(LAB_SHOWN_BYTES_MAX),
        Route::new(Method::GET, "/lab/compare", look, "Compare two runs", lab::compare)
            .query(&["a", "b"]),
        Route::new(
            Method::GET,
            "/lab/stream",
            look,
            "Follow runs, as server-sent events",
            lab::stream,
        ),
    ]
}

/// `GET /api/v1/openapi.json`.
async fn description() -> Result<Response, ApiError> {
    answer("describe the API", &openapi::document(&table()))
}

/// The router of the table, each route behind its guard.
pub fn router(control: &Arc<Control>) -> Router<Arc<Control>> {
    let mut router = Router::new();
    for route in table() {
        let rules = guard::Rules { needs: route.needs, query: route.query };
        let guard = from_fn_with_state((control.clone(), rules), guard::permit);
        router = router.route(route.path, route.handler.route_layer(guard));
    }
    router
        .fallback(async || ApiError::unknown_path())
        .method_not_allowed_fallback(async || ApiError::wrong_method())
}
