//! Statistics over HTTP: the list of statistics, stored data, the recorder, the switch.

use std::sync::Arc;

use analytics::query::{Engine, Query as Question, QueryError, Source};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Query, State};
use axum::response::Response;
use base::clock::NS_PER_S;
use base::limits::{API_POINTS_DEFAULT, API_POINTS_MAX, API_TOP_DEFAULT, API_TOP_MAX};
use probe::stat::StatId;
use serde::Deserialize;
use serde_json::json;

use super::sign_in::bad_body;
use super::{ApiError, Control, Identity, blocking, json as text, record_action};
use crate::answer::{JsonText, RequestError};
use crate::tree::audit::Record;

/// Default steps: whole parts of a minute, an hour, a day.
const STEPS: [u64; 13] = [1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 43_200, 86_400];

/// `GET /api/v1/analytics/statistics`.
pub async fn statistics(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    run(&control, "list the statistics", |_| Ok(json_of(&Engine::statistics()))).await
}

/// `GET /api/v1/analytics/recorder`.
pub async fn recorder(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    run(&control, "describe the flight recorder", |engine| Ok(json_of(&engine.recorder()))).await
}

/// Query of `GET /api/v1/analytics/counts`.
#[derive(Deserialize)]
pub struct CountsQuery {
    group: String,
    from: f64,
    to: f64,
}

/// `GET /api/v1/analytics/counts`.
pub async fn counts(
    State(control): State<Arc<Control>>,
    query: Result<Query<CountsQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let tried = "count operations";
    let Query(CountsQuery { group, from, to }) = query.map_err(|e| {
        let hint = "?group=GROUP&from=T&to=T, seconds since the epoch, with fractions";
        ApiError::wrong(tried, &e.body_text(), hint)
    })?;
    run(&control, tried, move |engine| {
        // A time before the epoch, or none, is 0.
        let ns = |seconds: f64| (seconds * NS_PER_S as f64) as u64;
        let counts =
            engine.counts(&group, ns(from), ns(to)).ok_or_else(|| RequestError::Wrong {
                failed: format!("the group {group:?} has no operations"),
                hint: "GET /api/v1/analytics/statistics lists the groups".to_owned(),
            })?;
        Ok(json_of(&counts))
    })
    .await
}

/// Query of `GET /api/v1/analytics/data`.
#[derive(Debug, Default, Deserialize)]
pub struct DataQuery {
    stat: String,
    from: Option<f64>,
    to: Option<f64>,
    step: Option<i64>,
    top: Option<usize>,
    source: Option<Source>,
}

/// `GET /api/v1/analytics/data`.
pub async fn data(
    State(control): State<Arc<Control>>,
    query: Result<Query<DataQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let tried = "read a statistic";
    let Query(query) = query.map_err(|e| {
        let hint = "?stat=ID&from=T&to=T[&step=S][&top=N][&source=store|recorder], seconds \
                    since the epoch";
        ApiError::wrong(tried, &e.body_text(), hint)
    })?;
    let now = control.clock.wall_ns() / NS_PER_S;
    let (stat, question) =
        question(query, now).map_err(|e| ApiError::from_request_error(tried, e))?;
    run(&control, tried, move |engine| {
        let data = engine.data(&parse(&stat)?, &question).map_err(|e| refusal(&e))?;
        Ok(json_of(&data))
    })
    .await
}

/// Fills in what the caller left out, and refuses what would not end.
pub(super) fn question(query: DataQuery, now: u64) -> Result<(String, Question), RequestError> {
    let wrong = |failed: String, hint: String| Err(RequestError::Wrong { failed, hint });
    let whole = |t: Option<f64>| t.map(|t| t.floor() as i64);
    let top = query.top.unwrap_or(API_TOP_DEFAULT).clamp(1, API_TOP_MAX);
    let (from, to, source) = (whole(query.from), whole(query.to), query.source);
    let mut question = Question { from, to, step: 0, top, source };
    let (from, to) = question.interval(now);
    if from >= to {
        return wrong(format!("the interval from {from} to {to} is empty"), EMPTY.to_owned());
    }
    let (span, most) = (to - from, API_POINTS_MAX as u64);
    question.step = match query.step.map(u64::try_from) {
        Some(Err(_) | Ok(0)) => {
            let step = query.step.unwrap_or_default();
            return wrong(format!("a step of {step} s"), "the shortest step is 1 s".to_owned());
        }
        Some(Ok(step)) => step,
        None => {
            let few = |step: &u64| span / step <= API_POINTS_DEFAULT as u64;
            STEPS.into_iter().find(few).unwrap_or(86_400)
        }
    };
    if span / question.step > most {
        return wrong(
            format!("{} points exceed the maximum of {most}", span / question.step),
            format!("use a step of at least {} s, or a shorter interval", span / most + 1),
        );
    }
    Ok((query.stat, question))
}

/// What to do about an interval in which nothing is.
const EMPTY: &str = "from must be before to, in seconds; negative times count back from now";

/// A statistic by its id.
pub(super) fn parse(stat: &str) -> Result<StatId, RequestError> {
    stat.parse().map_err(|e| refusal(&QueryError::Stat(e)))
}

/// The error of a query, by cause: the request or the server.
pub(super) fn refusal(error: &QueryError) -> RequestError {
    let hint = match error {
        QueryError::Stat(_) => "GET /api/v1/analytics/statistics lists the statistics",
        QueryError::Interval(_) => EMPTY,
        QueryError::Busy | QueryError::Store(_) => return RequestError::Failed(chain(error)),
    };
    RequestError::Wrong { failed: chain(error), hint: hint.to_owned() }
}

/// An error and its sources, joined by colons.
fn chain(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}

/// Numbers and strings in structures: cannot fail.
pub(super) fn json_of(value: &impl serde::Serialize) -> JsonText {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// Body of `POST /api/v1/analytics/collect`.
#[derive(Deserialize)]
pub struct Collect {
    on: bool,
}

/// `POST /api/v1/analytics/collect`.
pub async fn collect(
    State(control): State<Arc<Control>>,
    Extension(identity): Extension<Identity>,
    body: Result<Json<Collect>, JsonRejection>,
) -> Result<Response, ApiError> {
    let tried = "switch the breakdowns";
    let Json(Collect { on }) = body.map_err(|e| bad_body(&e, r#"send {"on": true}"#))?;
    let (path, after) = ("/analytics".to_owned(), on.into());
    let record = Record { path, after, ..Record::new(&identity.actor(), "collect") };
    record_action(&control, tried, record).await?;
    run(&control, tried, move |engine| {
        engine.hub().set_collect(on);
        Ok(json!({ "on": on }).to_string())
    })
    .await
}

/// Runs a question on a thread that may block, a few at a time.
async fn run(
    control: &Arc<Control>,
    tried: &'static str,
    question: impl FnOnce(&Engine) -> Result<JsonText, RequestError> + Send + 'static,
) -> Result<Response, ApiError> {
    let answer = blocking(control, tried, |appliance| question(appliance.engine())).await?;
    answer.map(text).map_err(|e| ApiError::from_request_error(tried, e))
}
