//! The listener that proves names over HTTP (RFC 8555 §8.3): it responds for the tokens of current
//! orders, and to nothing else. It listens only while an order needs it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::limits::{ACME_HTTP_CONNECTIONS_MAX, ACME_HTTP_HEAD_MAX, ADMIN_HANDSHAKE_TIMEOUT};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Answers;
use crate::listen::places::ConnectionLimits;

/// The path that a CA requests (RFC 8555 §8.3).
const WHERE: &str = "GET /.well-known/acme-challenge/";
/// Pause after a refused accept: without descriptors, trying at once would only burn a core.
const PAUSE: Duration = Duration::from_millis(50);

/// Listens on `at`, for as long as the future that comes out of it is polled.
///
/// # Errors
/// The address is not available.
pub async fn serve(
    at: SocketAddr,
    answers: Arc<Answers>,
) -> std::io::Result<impl Future<Output = std::convert::Infallible>> {
    let listener = TcpListener::bind(at).await?;
    let client_max = ACME_HTTP_CONNECTIONS_MAX / 2;
    let places = Arc::new(ConnectionLimits::new(ACME_HTTP_CONNECTIONS_MAX, client_max));
    Ok(async move {
        loop {
            places.can_evict().await;
            let Ok((stream, from)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Some(place) = places.take(from.ip()) else { continue };
            let answers = answers.clone();
            tokio::spawn(async move {
                let whole = one(stream, &answers);
                // A slower client is not a CA; a client that has disconnected needs no response.
                tokio::select! {
                    _ = tokio::time::timeout(ADMIN_HANDSHAKE_TIMEOUT, whole) => {}
                    () = place.revoked() => {}
                }
            });
        }
    })
}

async fn one(mut stream: TcpStream, answers: &Answers) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await?;
        head.extend_from_slice(&piece[..read]);
        if read == 0 || head.len() > ACME_HTTP_HEAD_MAX {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let token = head.strip_prefix(WHERE).and_then(|rest| rest.split_whitespace().next());
    let (status, text) = match token.and_then(|token| answers.text(token)) {
        Some(text) => ("200 OK", text),
        None => ("404 Not Found", "not found\n".to_owned()),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
