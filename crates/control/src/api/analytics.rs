//! Statistics over HTTP: what there is, stored data, the recorder, the switch.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Query, State};
use axum::response::Response;
use base::clock::NS_PER_S;
use base::limits::{API_POINTS_DEFAULT, API_POINTS_MAX, API_TOP_DEFAULT, API_TOP_MAX};
use serde::Deserialize;
use serde_json::json;

use super::sign_in::bad_body;
use super::{ApiError, Control, Identity, blocking, json as text, write_down};
use crate::appliance::{Ask, AskError, AskSource, Engine, JsonText};
use crate::tree::audit::Record;

/// The interval when none is named.
const LAST: i64 = 60;
/// Steps that are chosen for a caller who names none: whole parts of a minute, an hour, a day.
const STEPS: [i64; 13] = [1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 43_200, 86_400];

/// `GET /api/v1/analytics/statistics`.
pub async fn statistics(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    run(&control, "list the statistics", |engine| Ok(engine.statistics())).await
}

/// `GET /api/v1/analytics/recorder`.
pub async fn recorder(State(control): State<Arc<Control>>) -> Result<Response, ApiError> {
    run(&control, "describe the flight recorder", |engine| Ok(engine.recorder())).await
}

/// Query of `GET /api/v1/analytics/data`.
#[derive(Debug, Default, Deserialize)]
pub struct DataQuery {
    stat: String,
    from: Option<f64>,
    to: Option<f64>,
    step: Option<i64>,
    top: Option<usize>,
    source: Option<AskSource>,
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
    let now = (control.clock.wall_ns() / NS_PER_S) as i64;
    let ask = ask(query, now).map_err(|e| ApiError::from_ask(tried, e))?;
    run(&control, tried, move |engine| engine.data(&ask)).await
}

/// Fills in what the caller left out, and refuses what would not end.
pub(super) fn ask(query: DataQuery, now: i64) -> Result<Ask, AskError> {
    let wrong = |failed: String, hint: String| Err(AskError::Wrong { failed, hint });
    let whole = |t: Option<f64>| t.map(|t| t.floor() as i64);
    let (asked_from, asked_to) = (whole(query.from), whole(query.to));
    let absolute = |t: i64| if t < 0 { now.saturating_add(t) } else { t };
    let to = asked_to.map_or(now, absolute);
    let from = asked_from.map_or(to - LAST, absolute);
    if from >= to {
        return wrong(
            format!("the interval from {from} to {to} is empty"),
            "from must be before to; negative times count back from now".to_owned(),
        );
    }
    let span = to.saturating_sub(from);
    let step = match query.step {
        Some(step) if step < 1 => {
            return wrong(format!("a step of {step} s"), "the shortest step is 1 s".to_owned());
        }
        Some(step) => step,
        None => STEPS.into_iter().find(|s| span / s <= API_POINTS_DEFAULT).unwrap_or(86_400),
    };
    if span / step > API_POINTS_MAX {
        let least = span / API_POINTS_MAX + 1;
        return wrong(
            format!("{} points are more than {API_POINTS_MAX}", span / step),
            format!("ask for a step of at least {least} s, or a shorter interval"),
        );
    }
    let top = query.top.unwrap_or(API_TOP_DEFAULT).clamp(1, API_TOP_MAX);
    let (stat, source) = (query.stat, query.source);
    Ok(Ask { stat, from: asked_from, to: asked_to, step, top, source })
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
    let record = Record { path, after, ..Record::new(&identity.who(), "collect") };
    write_down(&control, tried, record).await?;
    run(&control, tried, move |engine| {
        engine.set_collect(on);
        Ok(json!({ "on": on }).to_string())
    })
    .await
}

/// Runs a question on a thread that may block, a few at a time.
async fn run(
    control: &Arc<Control>,
    tried: &'static str,
    question: impl FnOnce(&dyn Engine) -> Result<JsonText, AskError> + Send + 'static,
) -> Result<Response, ApiError> {
    let answer = blocking(control, tried, |appliance| question(appliance.engine())).await?;
    answer.map(text).map_err(|e| ApiError::from_ask(tried, e))
}
