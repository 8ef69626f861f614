//! Errors of the file contract as statuses of HTTP (RFC 9110 §15, RFC 4918 §11): the one table.

use vfs::status::Status;

use super::request::BodyError;
use super::response::Response;

/// The status of the response.
pub fn of(status: Status) -> u16 {
    match status {
        Status::Access | Status::NotOwner | Status::ReadOnly | Status::CrossDevice => 403,
        // A link in a circle leads to nothing, as one without a target does.
        Status::NotFound
        | Status::NotDirectory
        | Status::Stale
        | Status::BadHandle
        | Status::Loop => 404,
        Status::Exists | Status::IsDirectory | Status::NotEmpty | Status::BadCookie => 409,
        Status::NotSync => 412,
        Status::TooLarge => 413,
        Status::NameTooLong => 414,
        Status::NotSupported | Status::BadType => 501,
        Status::Busy | Status::WouldBlock => 503,
        // RFC 4918 §11.3.
        Status::InUse => 423,
        Status::NoSpace | Status::Quota => 507,
        Status::Invalid | Status::TooManyLinks | Status::TooSmall => 400,
        Status::Io | Status::Fault => 500,
    }
}

/// The name of a status (RFC 9110 §15, RFC 4918 §11, RFC 6585).
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        301 => "Moved Permanently",
        303 => "See Other",
        304 => "Not Modified",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "Unknown",
    }
}

/// An answer that contains only the status, in words too.
pub fn plain(status: u16, words: &str) -> Response {
    let text = if words.is_empty() { reason(status) } else { words };
    let answer =
        Response::new(status).bytes("text/plain; charset=utf-8", format!("{text}\n").into_bytes());
    match status {
        503 => answer.with("retry-after", "1"),
        // The open or the grace period that is in the way ends some time.
        423 => answer.with("retry-after", "10"),
        _ => answer,
    }
}

impl From<Status> for Response {
    fn from(status: Status) -> Self {
        plain(of(status), &status.to_string())
    }
}

impl From<BodyError> for Response {
    fn from(error: BodyError) -> Self {
        let status = match error {
            BodyError::Malformed | BodyError::Gone => 400,
            BodyError::TooSlow => 408,
            BodyError::TooLong => 413,
        };
        plain(status, &error.to_string())
    }
}
