//! The description of parameters, bodies and responses in the OpenAPI document beyond their names:
//! types, and examples that can be sent as they are. `tests/openapi.rs` sends every one to a real
//! server.

use axum::http::Method;
use base::limits::{API_TOP_MAX, AUDIT_ROWS_MAX, NODE_DEPTH_MAX, TRANSFER_LOG_ROWS_MAX};
use base::log::Level;
use serde_json::{Value, json};
use vfs::transfers::{Direction, Outcome, Scheme};

use crate::api::route::Route;

/// A small configuration. It has an administrator, without which it is refused.
const CONFIGURATION: &str = "format = 1

[\"/configuration/services/nfs\"]
lease = 60

[\"/configuration/users/admin\"]
kind = \"administrator\"
roles = [\"administrator\"]
";

/// A parameter of a path: whether it must be there, its schema, and an example. Those that name
/// what is not there on every server have none.
pub(super) fn parameter(path: &str, name: &str) -> (bool, Value, Option<Value>) {
    let must = match path {
        "/analytics/data" | "/analytics/stream" => name == "stat",
        "/analytics/counts" => true,
        "/configuration/compare" | "/lab/compare" => true,
        _ => path.contains(&format!("{{{name}}}")),
    };
    let number = |least: i64, most: Option<usize>| match most {
        None => json!({ "type": "integer", "minimum": least }),
        Some(most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
    };
    let text = || json!({ "type": "string" });
    let names = |all: &[&str]| (json!({ "enum": all }), all.first().map(|one| json!(one)));
    let (schema, example) = match (path, name) {
        ("/analytics/data", "from") => (json!({ "type": "number" }), Some(json!(-60))),
        ("/analytics/data", "to") => (json!({ "type": "number" }), Some(json!(-1))),
        ("/analytics/counts", "group") => (text(), Some(json!("nfs"))),
        ("/analytics/counts", "from" | "to") => (json!({ "type": "number" }), Some(json!(1.5))),
        ("/analytics/data", "source") => (json!({ "enum": ["store", "recorder"] }), None),
        ("/configuration/compare", "from") => (number(0, None), Some(json!(0))),
        ("/audit", "path") => (text(), Some(json!("/configuration"))),
        ("/transfers", "since" | "until") => (number(0, None), None),
        ("/transfers", "protocol") => names(&Scheme::LOGGED.map(Scheme::name)),
        ("/transfers", "direction") => names(&Direction::ALL.map(Direction::name)),
        ("/transfers", "outcome") => names(&Outcome::ALL.map(Outcome::name)),
        ("/transfers", "limit") => (number(0, Some(TRANSFER_LOG_ROWS_MAX)), Some(json!(10))),
        (_, "path") => (text(), Some(json!("configuration/services/nfs"))),
        (_, "action") => (text(), Some(json!("restart"))),
        (_, "stat") => (text(), Some(json!("nfs.ops[client]"))),
        (_, "service") => (text(), Some(json!("nfs"))),
        (_, "level") => (json!({ "enum": Level::ALL.map(Level::name) }), Some(json!("warning"))),
        (_, "depth") => (number(0, Some(NODE_DEPTH_MAX)), Some(json!(1))),
        (_, "limit") => (number(0, Some(AUDIT_ROWS_MAX)), Some(json!(10))),
        (_, "top") => (number(1, Some(API_TOP_MAX)), Some(json!(5))),
        (_, "step") => (number(1, None), Some(json!(1))),
        // The current one differs from server to server.
        ("/configuration", "revision") => (number(0, None), None),
        (_, "revision") => (number(1, None), Some(json!(1))),
        ("/configuration/compare", "to") => (number(0, None), Some(json!(1))),
        (_, "from" | "to") => (number(0, None), None),
        (_, "dry_run") => (json!({ "enum": ["0", "1"] }), Some(json!("1"))),
        _ => (text(), None),
    };
    (must, schema, example)
}

/// What is sent with a request: its type, its schema, an example.
pub(super) fn body(route: &Route) -> Option<(&'static str, Value, Value)> {
    let object = |fields: Value, required: &[&str]| {
        json!({
            "type": "object", "required": required, "properties": fields
        })
    };
    let text = || json!({ "type": "string" });
    let json = "application/json";
    Some(match (&route.method, route.path) {
        (&Method::POST, "/changes") => (
            json,
            json!({ "$ref": "#/components/schemas/Changes" }),
            json!({ "comment": "shorter for the cluster", "changes": [
                { "set": "/configuration/services/nfs", "property": "lease", "value": "60s" },
                { "create": "/configuration/roles", "name": "keeper", "properties":
                    { "permissions": ["shares:change", "status:read"] } },
            ] }),
        ),
        (&Method::POST, "/session") => (
            json,
            object(json!({ "user": text(), "password": text() }), &["user", "password"]),
            json!({ "user": "anna", "password": "correct horse battery" }),
        ),
        (&Method::POST, "/configuration/restore") => (
            json,
            object(
                json!({ "revision": { "type": "integer" }, "seen": { "type": "integer" } }),
                &["revision"],
            ),
            json!({ "revision": 1 }),
        ),
        (&Method::POST, "/analytics/collect") => {
            (json, object(json!({ "on": { "type": "boolean" } }), &["on"]), json!({ "on": true }))
        }
        (&Method::POST, "/lab/figures") => (
            json,
            object(json!({ "rows": { "type": "array" }, "columns": { "type": "array" } }), &[]),
            json!({ "format": 2, "rows": [], "columns": [] }),
        ),
        (&Method::POST, _) => (
            json,
            object(json!({ "parameters": { "type": "object" } }), &[]),
            json!({ "parameters": {} }),
        ),
        (&Method::PUT, _) => ("text/plain", text(), json!(CONFIGURATION)),
        _ => return None,
    })
}

/// The type of what is answered; none: nothing is.
pub(super) fn answer(route: &Route) -> Option<&'static str> {
    Some(match (&route.method, route.path) {
        (&Method::DELETE, "/session") => return None,
        (_, path) if path.ends_with("/stream") => "text/event-stream",
        (&Method::GET, "/configuration" | "/configuration/history/{revision}") => "text/plain",
        (_, "/lab/runs/{run}/report") => "text/html",
        _ => "application/json",
    })
}
