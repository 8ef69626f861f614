//! The log over HTTP: past lines, and a stream of new lines.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use base::clock::NS_PER_S;
use base::limits::{API_STREAM_BUFFER, API_STREAM_KEEPALIVE, LOG_LINES_MAX};
use base::log::{self, Level, Line, LogQuery};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::channel;

use super::stream::{Events, NOTICE, place};
use super::{ApiError, Control, answer};

/// Which lines.
#[derive(Deserialize)]
pub struct Which {
    service: Option<String>,
    level: Option<String>,
    from: Option<u64>,
    limit: Option<usize>,
}

/// A line for people.
#[derive(Serialize)]
struct Row {
    number: u64,
    when: u64,
    service: &'static str,
    level: &'static str,
    text: String,
}

impl From<Line> for Row {
    fn from(line: Line) -> Self {
        let Line { number, when_ns, service, level, text } = line;
        Self { number, when: when_ns / NS_PER_S, service, level: level.name(), text }
    }
}

/// The answer of [`get`].
#[derive(Serialize)]
struct Rows {
    rows: Vec<Row>,
    /// Whether there are older ones that fit.
    more: bool,
}

type WhichQuery = Result<Query<Which>, QueryRejection>;

/// The requested minimum level.
fn level(tried: &str, asked: Option<&str>) -> Result<Level, ApiError> {
    let Some(name) = asked else { return Ok(Level::Debug) };
    Level::named(name).ok_or_else(|| {
        let known = Level::ALL.map(Level::name).join(", ");
        ApiError::wrong(tried, &format!("unknown level {name:?}"), &format!("one of {known}"))
    })
}

/// `GET /api/v1/logs[?service&level&from&limit]`: lines after the number `from`, the newest `limit`
/// of them, the oldest first.
pub async fn get(query: WhichQuery) -> Result<Response, ApiError> {
    let tried = "read the log";
    let hint = "?service=NAME&level=LEVEL&from=N&limit=N";
    let Query(Which { service, level: least, from, limit }) =
        query.map_err(|e| ApiError::wrong(tried, &e.body_text(), hint))?;
    let level = level(tried, least.as_deref())?;
    let limit = limit.unwrap_or(LOG_LINES_MAX).min(LOG_LINES_MAX);
    let (after, service) = (from.unwrap_or(0), service.as_deref());
    let mut lines = log::lines(&LogQuery { after, service, level, limit: limit + 1 });
    let more = lines.len() > limit;
    lines.drain(..lines.len().saturating_sub(limit));
    answer(tried, &Rows { rows: lines.into_iter().map(Row::from).collect(), more })
}

/// `GET /api/v1/logs/stream[?service&level]`: one `data:` for each line. A reader that is too slow
/// misses lines, which the gap in their numbers shows.
pub async fn stream(
    State(control): State<Arc<Control>>,
    query: WhichQuery,
) -> Result<Response, ApiError> {
    let tried = "follow the log";
    let hint = "?service=NAME&level=LEVEL";
    let Query(Which { service, level: least, .. }) =
        query.map_err(|e| ApiError::wrong(tried, &e.body_text(), hint))?;
    let level = level(tried, least.as_deref())?;
    let place = place(&control, tried)?;
    let (sender, receiver) = channel(API_STREAM_BUFFER);
    let mut seen = log::newest();
    tokio::spawn(async move {
        let now = || control.clock.monotonic_ns();
        let mut said = now();
        while !control.ending.load(Ordering::Relaxed) && !sender.is_closed() {
            tokio::time::sleep(NOTICE).await;
            let newest = log::newest();
            let (service, limit) = (service.as_deref(), LOG_LINES_MAX);
            let lines = log::lines(&LogQuery { after: seen, service, level, limit });
            seen = newest.max(seen);
            let mut events: String = lines
                .into_iter()
                .filter(|line| line.number <= newest)
                .filter_map(|line| serde_json::to_string(&Row::from(line)).ok())
                .map(|text| format!("data: {text}\n\n"))
                .collect();
            let quiet = now().saturating_sub(said) / NS_PER_S >= API_STREAM_KEEPALIVE.as_secs();
            if events.is_empty() && !quiet {
                continue;
            }
            if events.is_empty() {
                events.push_str(":\n\n");
            }
            said = now();
            if sender.send(Bytes::from(events)).await.is_err() {
                break;
            }
        }
        drop(place);
    });
    let body = Body::from_stream(Events { receiver });
    Ok(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}
