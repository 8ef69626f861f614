//! Results of the lab over HTTP: records, reports, comparisons, and the news of runs. Runs are
//! started, aborted and destroyed through the tree.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use base::clock::NS_PER_S;
use base::limits::{API_STREAM_BUFFER, API_STREAM_KEEPALIVE};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::channel;

use super::sign_in::bad_body;
use super::stream::{Events, NOTICE, place};
use super::{ApiError, Control, blocking, json};
use crate::appliance::Appliance;
use crate::lab::LabFile;

/// A report draws itself with its own script, in an opaque origin: it can neither read nor do
/// anything here. Its links work when the user follows them.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-top-navigation-by-user-activation; \
                             default-src 'none'; script-src 'unsafe-inline'; \
                             style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                             form-action 'none'; frame-ancestors 'none'";

/// `GET /api/v1/lab/runs`.
pub async fn runs(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    blocking(&control, "list the runs", |appliance| appliance.lab().runs()).await.map(json)
}

/// `GET /api/v1/lab/runs/{run}/result`.
pub async fn result(
    State(control): State<Arc<Control>>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    let bytes = file(&control, "read a result", run, LabFile::Result).await?;
    Ok(([(CONTENT_TYPE, "application/json")], bytes).into_response())
}

/// `GET /api/v1/lab/runs/{run}/report`.
pub async fn report(
    State(control): State<Arc<Control>>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    let bytes = file(&control, "read a report", run, LabFile::Report).await?;
    let headers =
        [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, REPORT_POLICY)];
    Ok((headers, bytes).into_response())
}

async fn file(
    control: &Arc<Control>,
    tried: &'static str,
    run: String,
    file: LabFile,
) -> Result<Vec<u8>, ApiError> {
    let found = blocking(control, tried, move |appliance| appliance.lab().file(&run, file)).await?;
    found.map_err(|e| ApiError::missing(tried, e))
}

/// `GET /api/v1/lab/runs/{run}/figures`.
pub async fn figures(
    State(control): State<Arc<Control>>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    let tried = "show the figures of a run";
    let found = blocking(&control, tried, move |appliance| appliance.lab().figures(&run)).await?;
    found.map(json).map_err(|e| ApiError::missing(tried, e))
}

/// `POST /api/v1/lab/figures`: of a result that is sent and not stored.
pub async fn figures_of(
    State(control): State<Arc<Control>>,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Response, ApiError> {
    let tried = "show a result";
    let Json(result) = body.map_err(|e| bad_body(&e, "send a result.json or summary.json"))?;
    let shown = move |appliance: &dyn Appliance| appliance.lab().figures_of(result);
    let found = blocking(&control, tried, shown).await?;
    found.map(json).map_err(|e| ApiError::from_request_error(tried, e))
}

/// Which runs.
#[derive(Deserialize)]
pub struct Two {
    a: String,
    b: String,
}

/// `GET /api/v1/lab/compare?a=RUN&b=RUN`.
pub async fn compare(
    State(control): State<Arc<Control>>,
    query: Result<Query<Two>, QueryRejection>,
) -> Result<Response, ApiError> {
    let tried = "compare two runs";
    let Query(Two { a, b }) =
        query.map_err(|e| ApiError::wrong(tried, &e.body_text(), "?a=RUN&b=RUN"))?;
    let found = blocking(&control, tried, move |appliance| appliance.lab().compare(&a, &b)).await?;
    found.map(json).map_err(|e| ApiError::missing(tried, e))
}

/// `GET /api/v1/lab/stream`: an event `run` for each run as it is now, and whenever it changes.
pub async fn stream(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    let tried = "follow the runs";
    let place = place(&control, tried)?;
    let (sender, receiver) = channel(API_STREAM_BUFFER);
    tokio::spawn(async move {
        let now = || control.clock.monotonic_ns();
        let (mut seen, mut said) = (0, now());
        while !control.ending.load(Ordering::Relaxed) && !sender.is_closed() {
            let (runs, next) = control.appliance.lab().changes(seen);
            seen = next;
            let quiet = now().saturating_sub(said) / NS_PER_S >= API_STREAM_KEEPALIVE.as_secs();
            let mut events: String =
                runs.iter().map(|run| format!("event: run\ndata: {run}\n\n")).collect();
            if events.is_empty() && quiet {
                events.push_str(":\n\n");
            }
            if !events.is_empty() {
                said = now();
                if sender.send(Bytes::from(events)).await.is_err() {
                    break;
                }
            }
            tokio::time::sleep(NOTICE).await;
        }
        drop(place);
    });
    let body = Body::from_stream(Events { receiver });
    Ok(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}
