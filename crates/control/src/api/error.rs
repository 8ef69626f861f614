//! The one form of an API error: what was tried, what failed, what to do.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::access::Level;
use crate::answer::RequestError;
use crate::tree::{Fault, Problem};

/// An error with its HTTP status.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    /// Boxed, so that results that hold an error stay small.
    body: Box<Body>,
    retry_after: Option<Duration>,
}

/// The body of an error response, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// What was tried, as a verb phrase.
    pub tried: String,
    /// What failed, one sentence.
    pub failed: String,
    /// What to do about it.
    pub hint: String,
    /// The node of the tree that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The property of that node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: &'a Body,
}

impl ApiError {
    /// An error from its parts.
    pub fn new(status: StatusCode, tried: &str, failed: &str, hint: &str) -> Self {
        let (tried, failed, hint) = (tried.to_owned(), failed.to_owned(), hint.to_owned());
        let body = Body { tried, failed, hint, path: None, property: None };
        Self { status, body: Box::new(body), retry_after: None }
    }

    /// 400: the caller's arguments are at fault.
    pub fn wrong(tried: &str, failed: &str, hint: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, tried, failed, hint)
    }

    /// 500: we are at fault.
    pub fn failed(tried: &str, error: &dyn std::fmt::Display) -> Self {
        let hint = "this is a server defect; see its log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, tried, &error.to_string(), hint)
    }

    /// 503: a limit is reached.
    pub fn busy(tried: &str, failed: &str) -> Self {
        let hint = "try again in a few seconds";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, tried, failed, hint);
        Self { retry_after: Some(Duration::from_secs(2)), ..error }
    }

    /// 429: too many wrong passwords.
    pub fn throttled(wait: Duration) -> Self {
        let seconds = wait.as_secs_f64().ceil();
        let hint = format!("wait {seconds} s and try again");
        let failed = "too many wrong passwords from this address or for this name";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "sign in", failed, &hint);
        Self { retry_after: Some(wait), ..error }
    }

    /// 403: signed in, but without this permission.
    pub fn forbidden(user: &str, scope: &str, level: Level) -> Self {
        let level = level.name();
        let failed = format!("{user} has no role with {scope}:{level}");
        let hint = "ask an administrator for a role with this permission";
        Self::new(StatusCode::FORBIDDEN, "answer the request", &failed, hint)
    }

    /// 404 below `/api`.
    pub fn unknown_path() -> Self {
        let hint = "docs/protocols/api.md lists the paths";
        Self::new(StatusCode::NOT_FOUND, "find this path", "unknown API path", hint)
    }

    /// 405.
    pub fn wrong_method() -> Self {
        let failed = "method not allowed for this path";
        let hint = "docs/protocols/api.md lists the paths";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "answer the request", failed, hint)
    }

    /// 401.
    pub fn not_signed_in() -> Self {
        let hint = "POST /api/v1/session, or send Authorization: Bearer with a token, for example \
            the one in STATE/api-token";
        let failed = "not signed in";
        Self::new(StatusCode::UNAUTHORIZED, "answer the request", failed, hint)
    }

    /// Problems with the tree; the first determines the status, the path and the hint.
    pub fn from_problems(tried: &str, problems: &[Problem]) -> Self {
        let Some(first) = problems.first() else {
            return Self::failed(tried, &"refused");
        };
        let failed = match problems {
            [one] => one.sentence.clone(),
            many => many.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        };
        let status = match first.fault {
            Fault::Value => StatusCode::BAD_REQUEST,
            Fault::Unknown => StatusCode::NOT_FOUND,
            Fault::Conflict => StatusCode::CONFLICT,
            Fault::Denied => StatusCode::FORBIDDEN,
            Fault::Server => StatusCode::INTERNAL_SERVER_ERROR,
        };
        // Neither text of an error is empty; a client may show the hint alone.
        let hint = if first.hint.is_empty() { "change the request" } else { &first.hint };
        let mut error = Self::new(status, tried, &failed, hint);
        error.body.path = Some(first.path.to_string());
        error.body.property = first.property.clone();
        error
    }

    /// The error of a question for statistics.
    pub fn from_request_error(tried: &str, error: RequestError) -> Self {
        match error {
            RequestError::Wrong { failed, hint } => Self::wrong(tried, &failed, &hint),
            RequestError::Failed(reason) => Self::failed(tried, &reason),
        }
    }

    /// As [`Self::from_request_error`], for queries of what does not exist: 404.
    pub fn missing(tried: &str, error: RequestError) -> Self {
        match error {
            RequestError::Wrong { failed, hint } => {
                Self::new(StatusCode::NOT_FOUND, tried, &failed, &hint)
            }
            RequestError::Failed(_) => Self::from_request_error(tried, error),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(Envelope { error: &self.body })).into_response();
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs_f64().ceil() as u64;
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
