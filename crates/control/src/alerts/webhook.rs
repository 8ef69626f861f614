//! A JSON message posted to a URL, signed if there is a secret. HTTP/1.1, one request a connection;
//! redirections are not followed.

use std::path::Path;

use aws_lc_rs::hmac;
use axum::http::Uri;
use base::text::hex;

use super::connect::{DeliveryError, Wire};
use super::message::Message;

/// The header with the HMAC-SHA256 of the body.
pub(super) const SIGNATURE: &str = "X-Plimsoll-Signature";

/// Posts a message.
///
/// # Errors
/// It did not arrive, or was not answered with 2xx.
pub(super) fn send(
    url: &str,
    secret: Option<&str>,
    trusted: Option<&Path>,
    message: &Message,
) -> Result<(), DeliveryError> {
    let bad = || DeliveryError::Ours("the webhook is not a URL".to_owned());
    let uri: Uri = url.split('#').next().unwrap_or(url).parse().map_err(|_| bad())?;
    let host = uri.host().ok_or_else(bad)?;
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let secure = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let mut wire = Wire::open(bare, port)?;
    if secure {
        wire.secure(trusted)?;
    }
    let body = message.json().to_string();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: plimsoll/{}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n",
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    if let Some(secret) = secret {
        request += &format!("{SIGNATURE}: {}\r\n", signature(secret, &body));
    }
    wire.send((request + "\r\n" + &body).as_bytes())?;
    let answer = wire.line()?;
    let status = answer.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(()),
        _ => {
            let said = answer.chars().filter(|c| !c.is_control()).take(200).collect();
            // Busy, or broken for now (RFC 9110 §15).
            let again = matches!(status, None | Some(408 | 429 | 500..=599));
            Err(DeliveryError::Refused { at: wire.at.clone(), said, again })
        }
    }
}

/// `sha256=HEX`, as many webhooks have it.
pub(super) fn signature(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    format!("sha256={}", hex(tag.as_ref()))
}
