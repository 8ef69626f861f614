//! The tree over HTTP: its declarations, its nodes, changes, actions, and the stream of changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, State};
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use base::clock::NS_PER_S;
use base::limits::{API_STREAM_BUFFER, API_STREAM_KEEPALIVE, NODE_DEPTH_MAX};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::channel;

use super::stream::{Events, NOTICE, place};
use super::{ApiError, Control, Identity, answer, sign_in, with_tree};
use crate::tree::{Fault, Request, change, view};

/// How deep nodes are nested.
#[derive(Deserialize)]
pub struct Depth {
    #[serde(default)]
    depth: usize,
}

type DepthQuery = Result<Query<Depth>, QueryRejection>;

/// `GET /api/v1/tree`.
pub async fn tree(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    answer("show the tree", &view::declaration(control.tree.root()))
}

/// `GET /api/v1/nodes`.
pub async fn root(
    control: State<Arc<Control>>,
    identity: Extension<Identity>,
    query: DepthQuery,
) -> Result<Response, ApiError> {
    node(control, identity, Path(String::new()), query).await
}

/// `GET /api/v1/nodes/PATH`.
pub async fn node(
    State(control): State<Arc<Control>>,
    Extension(identity): Extension<Identity>,
    Path(path): Path<String>,
    query: DepthQuery,
) -> Result<Response, ApiError> {
    let tried = "show a node";
    let Query(Depth { depth }) =
        query.map_err(|e| ApiError::wrong(tried, &e.body_text(), "?depth=1 nests one level"))?;
    let found = with_tree(&control, tried, move |tree| {
        let path = change::parse(&format!("/{path}"))?;
        view::node(tree, &path, depth.min(NODE_DEPTH_MAX), &identity)
    });
    let found = found.await?.map_err(|e| ApiError::from_problems(tried, &[e]))?;
    answer(tried, &found)
}

/// `POST /api/v1/changes`.
pub async fn change(
    State(control): State<Arc<Control>>,
    Extension(identity): Extension<Identity>,
    body: Result<Json<Request>, JsonRejection>,
) -> Result<Response, ApiError> {
    let tried = "change the configuration";
    let hint = r#"send {"changes": [{"set": PATH, "property": NAME, "value": …}]}"#;
    let Json(request) = body.map_err(|e| sign_in::bad_body(&e, hint))?;
    let done =
        with_tree(&control, tried, move |tree| tree.commit(&request, &identity.actor(), &identity));
    let done = done.await?.map_err(|e| ApiError::from_problems(tried, &e))?;
    answer(tried, &done)
}

/// Body of an action.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
}

/// `POST /api/v1/nodes/PATH/actions/NAME`.
pub async fn act(
    State(control): State<Arc<Control>>,
    Extension(identity): Extension<Identity>,
    Path(path): Path<String>,
    body: Result<Json<Act>, JsonRejection>,
) -> Result<Response, ApiError> {
    let tried = "run an action";
    let Some((path, action)) = path.rsplit_once("actions/") else {
        let hint = "POST /api/v1/nodes/PATH/actions/NAME runs an action; POST /api/v1/changes \
            changes settings";
        return Err(ApiError::wrong(tried, "the path does not name an action", hint));
    };
    let (path, action) = (format!("/{path}"), action.to_owned());
    let Json(Act { parameters }) =
        body.map_err(|e| sign_in::bad_body(&e, r#"send {"parameters": {…}}"#))?;
    let result = with_tree(&control, tried, move |tree| {
        let path = change::parse(&path)?;
        tree.act(&path, &action, &parameters, &identity.actor(), &identity)
    });
    let result = match result.await? {
        Ok(result) => result,
        Err(problem) => {
            let conflict = problem.fault == Fault::Conflict;
            let mut refused = ApiError::from_problems(tried, &[problem]).into_response();
            if conflict {
                // The age of the connection may be the reason: the next attempt has a new one.
                refused.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            return Ok(refused);
        }
    };
    answer(tried, &json!({ "result": result }))
}

/// `GET /api/v1/changes/stream`: an event `change` for each transaction; an event `lost` if the
/// reader was too slow and must read the state again.
pub async fn stream(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    let tried = "open a stream of changes";
    let place = place(&control, tried)?;
    let mut changes = control.tree.listen();
    let (sender, receiver) = channel(API_STREAM_BUFFER);
    tokio::spawn(async move {
        let now = || control.clock.monotonic_ns();
        let mut said = now();
        while !control.ending.load(Ordering::Relaxed) && !sender.is_closed() {
            let event = match tokio::time::timeout(NOTICE, changes.recv()).await {
                Ok(Ok(done)) => {
                    let text = serde_json::to_string(&*done).unwrap_or_default();
                    format!("event: change\ndata: {text}\n\n")
                }
                Ok(Err(RecvError::Lagged(count))) => {
                    format!("event: lost\ndata: {{\"changes\": {count}}}\n\n")
                }
                Ok(Err(RecvError::Closed)) => break,
                Err(_) if (now() - said) / NS_PER_S >= API_STREAM_KEEPALIVE.as_secs() => {
                    ":\n\n".to_owned()
                }
                Err(_) => continue,
            };
            said = now();
            if sender.send(Bytes::from(event)).await.is_err() {
                break;
            }
        }
        drop(place);
    });
    let body = Body::from_stream(Events { receiver });
    Ok(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}
