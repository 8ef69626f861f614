//! The log of transfers over HTTP.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use base::limits::TRANSFER_LOG_ROWS_MAX;
use serde::Deserialize;
use vfs::transfers::{Direction, Outcome, Scheme};

use super::{ApiError, Control, answer, blocking};
use crate::nfs::Listing;
use crate::transfers::TransferFilter;

/// Which transfers.
#[derive(Deserialize)]
pub struct Which {
    since: Option<u64>,
    until: Option<u64>,
    protocol: Option<String>,
    direction: Option<String>,
    outcome: Option<String>,
    user: Option<String>,
    client: Option<String>,
    share: Option<String>,
    limit: Option<usize>,
}

const TRIED: &str = "read the log of transfers";
const HINT: &str = "?since=SECONDS&until=SECONDS&protocol=NAME&direction=NAME&outcome=NAME\
                    &user=NAME&client=ADDRESS&share=NAME&limit=N";

/// A word that must be one of these.
fn one_of(what: &str, word: Option<&String>, known: &[&str]) -> Result<(), ApiError> {
    match word {
        Some(word) if !known.contains(&word.as_str()) => {
            let failed = format!("unknown {what} {word:?}");
            Err(ApiError::wrong(TRIED, &failed, &format!("one of {}", known.join(", "))))
        }
        _ => Ok(()),
    }
}

/// `GET /api/v1/transfers[?…]`: the newest first.
pub async fn transfers(
    State(control): State<Arc<Control>>,
    query: Result<Query<Which>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(which) = query.map_err(|e| ApiError::wrong(TRIED, &e.body_text(), HINT))?;
    let Which { since, until, protocol, direction, outcome, user, client, share, limit } = which;
    one_of("protocol", protocol.as_ref(), &Scheme::LOGGED.map(Scheme::name))?;
    one_of("direction", direction.as_ref(), &Direction::ALL.map(Direction::name))?;
    one_of("outcome", outcome.as_ref(), &Outcome::ALL.map(Outcome::name))?;
    let most = limit.unwrap_or(TRANSFER_LOG_ROWS_MAX).min(TRANSFER_LOG_ROWS_MAX);
    // One more shows whether there is more.
    let limit = most + 1;
    let wanted =
        TransferFilter { since, until, protocol, direction, outcome, user, client, share, limit };
    let read =
        move |appliance: &dyn crate::appliance::Appliance| appliance.transfers().read(&wanted);
    let mut rows =
        blocking(&control, TRIED, read).await?.map_err(|e| ApiError::failed(TRIED, &e))?;
    let more = rows.len() > most;
    rows.truncate(most);
    answer(TRIED, &Listing { rows, more })
}
