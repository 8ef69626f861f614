//! The requests of the shell to a server: one request, one response.

use serde_json::Value as Json;

use super::CliError;
use crate::client::{Client, ClientError};

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// `GET` of a path below `/api/v1`.
    Get(String),
    /// `POST` of JSON to a path below `/api/v1`.
    Post(String, Json),
    /// `PUT` of a configuration (TOML) to a path below `/api/v1`.
    Put(String, String),
}

/// A server, or in tests what stands for one.
pub trait Api: Send {
    /// Sends a request. Responses that are not JSON are returned as a string.
    ///
    /// # Errors
    /// [`CliError::Refused`], [`CliError::Lost`], [`CliError::Unanswered`].
    fn ask(&self, request: &Request) -> Result<Json, CliError>;
}

impl Api for Client {
    fn ask(&self, request: &Request) -> Result<Json, CliError> {
        let url = |path: &str| format!("/api/v1{path}");
        let body = match request {
            Request::Get(path) => self.get(&url(path)),
            Request::Post(path, json) => self.post(&url(path), &json.to_string()),
            Request::Put(path, text) => self.put(&url(path), "text/plain; charset=utf-8", text),
        }
        .map_err(|e| error(e, matches!(request, Request::Get(_))))?;
        if body.is_empty() {
            return Ok(Json::Null);
        }
        let text = String::from_utf8_lossy(&body);
        Ok(serde_json::from_str(&text).unwrap_or_else(|_| Json::String(text.into_owned())))
    }
}

fn error(error: ClientError, only_looks: bool) -> CliError {
    match error {
        ClientError::Refused { status, failed, hint, property } => {
            CliError::Refused { status, sentence: failed, hint, property }
        }
        error => {
            // From here on the request may have reached the server.
            let sent = matches!(error, ClientError::Broken { .. });
            let mut sentence = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(error) = source {
                sentence += &format!(": {error}");
                source = error.source();
            }
            match sent && !only_looks {
                true => CliError::Unanswered { sentence },
                false => CliError::Lost { sentence },
            }
        }
    }
}
