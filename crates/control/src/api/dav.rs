//! The locks of WebDAV over HTTP: their list with the owners, and the release of one.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::{ApiError, Control, Identity, answer, blocking, record_action};
use crate::tree::audit::Record;

/// The node that the locks are of.
const SERVICE: &str = "/configuration/services/http";

/// `GET /api/v1/services/http/locks`.
pub async fn locks(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    let tried = "list the locks of WebDAV clients";
    let all = blocking(&control, tried, |appliance| appliance.dav().locks()).await?;
    answer(tried, &all)
}

/// `DELETE /api/v1/services/http/locks/{id}`.
pub async fn release(
    State(control): State<Arc<Control>>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let tried = "release a lock of WebDAV";
    let of = id.clone();
    let lock = blocking(&control, tried, move |appliance| appliance.dav().lock(&of)).await?;
    let lock = lock.ok_or_else(|| no_lock(tried))?;
    let before = json!({ "lock": lock.id, "file": lock.file, "user": lock.user });
    let path = SERVICE.to_owned();
    let record = Record { path, before, ..Record::new(&identity.actor(), "release") };
    record_action(&control, tried, record).await?;
    let ended =
        blocking(&control, tried, move |appliance| appliance.dav().release(&id, &identity.user));
    let ended = ended.await?.map_err(|failed| {
        let hint = "the lock stays in place; check the state directory with plimsoll doctor";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, tried, &failed, hint)
    })?;
    answer(tried, &ended.ok_or_else(|| no_lock(tried))?)
}

fn no_lock(tried: &str) -> ApiError {
    let failed = "this lock does not exist";
    let hint = "GET /api/v1/services/http/locks lists the current locks; a lock that was released \
        and taken again has a new id";
    ApiError::new(StatusCode::NOT_FOUND, tried, failed, hint)
}
