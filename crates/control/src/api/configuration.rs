//! The configuration as a whole over HTTP: export, import, history, restore; and the audit log.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection, StringRejection};
use axum::extract::{Extension, Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use base::limits::{AUDIT_ROWS_MAX, CONFIGURATION_REVISIONS_MAX};
use base::text::decimal;
use serde::Deserialize;
use serde_json::json;

use super::{ApiError, Control, Identity, answer, blocking, sign_in, with_tree};
use crate::nfs::Listing;
use crate::tree::audit::AuditFilter;

const HISTORY: &str = "show earlier configurations";

/// `GET /api/v1/configuration`.
pub async fn export(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    let tree = control.tree.clone();
    let tried = "export the configuration";
    Ok(file(blocking(&control, tried, move |all| tree.export(&all.status().name)).await?))
}

/// Query of an import.
#[derive(Deserialize)]
pub struct Over {
    #[serde(default)]
    dry_run: String,
    /// The revision that the caller has seen; no other one is replaced.
    revision: Option<u64>,
}

/// `PUT /api/v1/configuration[?dry_run=1&revision=N]`.
pub async fn import(
    State(control): State<Arc<Control>>,
    Extension(identity): Extension<Identity>,
    query: Result<Query<Over>, QueryRejection>,
    text: Result<String, StringRejection>,
) -> Result<Response, ApiError> {
    let tried = "import a configuration";
    let text = text.map_err(|e| {
        ApiError::new(e.status(), tried, &e.body_text(), "send the text of an export")
    })?;
    let hint = "?dry_run=1&revision=N";
    let Query(Over { dry_run, revision }) =
        query.map_err(|e| ApiError::wrong(tried, &e.body_text(), hint))?;
    let dry_run = match dry_run.as_str() {
        "" | "0" | "false" => false,
        "1" | "true" => true,
        _ => return Err(ApiError::wrong(tried, "dry_run is 0 or 1", hint)),
    };
    let done = with_tree(&control, tried, move |tree| {
        tree.import_over(revision, &text, dry_run, &identity.actor(), &identity)
    });
    let done = done.await?.map_err(|e| ApiError::from_problems(tried, &e))?;
    answer(tried, &done)
}

/// How much of a list.
#[derive(Deserialize)]
pub struct Limit {
    limit: Option<usize>,
}

/// `GET /api/v1/configuration/history[?limit=N]`.
pub async fn history(
    State(control): State<Arc<Control>>,
    query: Result<Query<Limit>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(Limit { limit }) =
        query.map_err(|e| ApiError::wrong(HISTORY, &e.body_text(), "?limit=100"))?;
    let limit = limit.unwrap_or(CONFIGURATION_REVISIONS_MAX);
    let found = with_tree(&control, HISTORY, move |tree| tree.history(limit)).await?;
    answer(HISTORY, &found.map_err(|e| ApiError::from_problems(HISTORY, &[e]))?)
}

/// `GET /api/v1/configuration/history/N`.
pub async fn revision(
    State(control): State<Arc<Control>>,
    number: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let number = number.ok().and_then(|Path(number)| decimal(&number)).ok_or_else(|| {
        ApiError::wrong(HISTORY, "a revision is a number", "GET /api/v1/configuration/history")
    })?;
    let tree = control.tree.clone();
    let found = blocking(&control, HISTORY, move |all| tree.revision(number, &all.status().name));
    Ok(file(found.await?.map_err(|e| ApiError::from_problems(HISTORY, &[e]))?))
}

/// Which two revisions.
#[derive(Deserialize)]
pub struct Between {
    from: u64,
    to: u64,
}

/// `GET /api/v1/configuration/compare?from=A&to=B`.
pub async fn compare(
    State(control): State<Arc<Control>>,
    query: Result<Query<Between>, QueryRejection>,
) -> Result<Response, ApiError> {
    let tried = "compare two configurations";
    let Query(Between { from, to }) =
        query.map_err(|e| ApiError::wrong(tried, &e.body_text(), "?from=REVISION&to=REVISION"))?;
    let found = with_tree(&control, tried, move |tree| tree.compare(from, to)).await?;
    let changes = found.map_err(|e| ApiError::from_problems(tried, &[e]))?;
    answer(tried, &json!({ "changes": changes }))
}

/// Body of a restore.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    revision: u64,
    /// The current revision as the caller has seen it; no other one is replaced.
    seen: Option<u64>,
}

/// `POST /api/v1/configuration/restore`.
pub async fn restore(
    State(control): State<Arc<Control>>,
    Extension(identity): Extension<Identity>,
    body: Result<Json<Restore>, JsonRejection>,
) -> Result<Response, ApiError> {
    let tried = "restore a configuration";
    let Json(Restore { revision, seen }) =
        body.map_err(|e| sign_in::bad_body(&e, r#"send {"revision": N}"#))?;
    let done = with_tree(&control, tried, move |tree| {
        tree.restore_over(seen, revision, &identity.actor(), &identity)
    });
    let done = done.await?.map_err(|e| ApiError::from_problems(tried, &e))?;
    answer(tried, &done)
}

/// Which records of the audit log.
#[derive(Deserialize)]
pub struct Records {
    from: Option<u64>,
    to: Option<u64>,
    path: Option<String>,
    limit: Option<usize>,
}

/// `GET /api/v1/audit[?from&to&path&limit]`: the newest first.
pub async fn audit(
    State(control): State<Arc<Control>>,
    query: Result<Query<Records>, QueryRejection>,
) -> Result<Response, ApiError> {
    let tried = "read the audit log";
    let Query(Records { from, to, path, limit }) = query.map_err(|e| {
        ApiError::wrong(tried, &e.body_text(), "?from=SECONDS&to=SECONDS&path=PATH&limit=N")
    })?;
    let limit = limit.unwrap_or(AUDIT_ROWS_MAX).min(AUDIT_ROWS_MAX);
    // One more shows whether there is more.
    let wanted = AuditFilter { from, to, path, limit: limit + 1 };
    let found = with_tree(&control, tried, move |tree| tree.audit().read(&wanted)).await?;
    let mut rows = found.map_err(|e| ApiError::failed(tried, &e))?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    answer(tried, &Listing { rows, more })
}

fn file(text: String) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
