//! The state of NFS over HTTP: clients, opens, locks; ending a client.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{ApiError, Control, Identity, blocking, json, record_action};
use crate::tree::audit::Record;

/// The node that the clients are of.
const SERVICE: &str = "/configuration/services/nfs";

/// The client with the opens or locks.
#[derive(Debug, Default, Deserialize)]
pub struct ClientParameter {
    client: Option<String>,
}

type ClientQuery = Result<Query<ClientParameter>, QueryRejection>;

/// `GET /api/v1/services/nfs/clients`.
pub async fn clients(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    let tried = "list the NFS clients";
    let all = blocking(&control, tried, |appliance| appliance.nfs().clients()).await?;
    text(tried, &all)
}

/// `GET /api/v1/services/nfs/opens`.
pub async fn opens(
    State(control): State<Arc<Control>>,
    query: ClientQuery,
) -> Result<Response, ApiError> {
    let tried = "list what NFS clients hold open";
    let client = client(tried, query)?;
    let rows = blocking(&control, tried, move |appliance| appliance.nfs().opens(client.as_deref()));
    text(tried, &rows.await?.ok_or_else(|| no_client(tried))?)
}

/// `GET /api/v1/services/nfs/locks`.
pub async fn locks(
    State(control): State<Arc<Control>>,
    query: ClientQuery,
) -> Result<Response, ApiError> {
    let tried = "list the locks of NFS clients";
    let client = client(tried, query)?;
    let rows = blocking(&control, tried, move |appliance| appliance.nfs().locks(client.as_deref()));
    text(tried, &rows.await?.ok_or_else(|| no_client(tried))?)
}

/// `DELETE /api/v1/services/nfs/clients/{id}`.
pub async fn expire(
    State(control): State<Arc<Control>>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let tried = "expire an NFS client";
    let (path, after) = (SERVICE.to_owned(), id.clone().into());
    let record = Record { path, after, ..Record::new(&identity.actor(), "expire") };
    record_action(&control, tried, record).await?;
    let ended =
        blocking(&control, tried, move |appliance| appliance.nfs().expire(&id, &identity.user));
    text(tried, &ended.await?.ok_or_else(|| no_client(tried))?)
}

fn client(tried: &str, query: ClientQuery) -> Result<Option<String>, ApiError> {
    let Query(parameter) = query.map_err(|e| {
        ApiError::wrong(tried, &e.body_text(), "?client=ID from the list of clients")
    })?;
    Ok(parameter.client)
}

fn no_client(tried: &str) -> ApiError {
    let failed = "this client does not exist";
    let hint = "GET /api/v1/services/nfs/clients lists the current clients; a client that \
        reconnected has a new id";
    ApiError::new(StatusCode::NOT_FOUND, tried, failed, hint)
}

fn text(tried: &str, answer: &impl Serialize) -> Result<Response, ApiError> {
    serde_json::to_string(answer).map(json).map_err(|e| ApiError::failed(tried, &e))
}
