//! A body that never ends, and one that does.

use std::convert::Infallible;

use axum::body::to_bytes;

use super::*;

/// Pieces, and then nothing more ever.
struct Slow(usize);

impl Stream for Slow {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.0 == 0 {
            return Poll::Pending;
        }
        self.0 -= 1;
        Poll::Ready(Some(Ok(Bytes::from_static(b"x"))))
    }
}

async fn read(body: Body, limit: Duration) -> Result<Bytes, axum::Error> {
    let request = Request::post("/").body(body).unwrap();
    to_bytes(in_time(request, limit).into_body(), 1 << 10).await
}

#[tokio::test]
async fn a_body_that_does_not_end_is_abandoned() {
    let error = read(Body::from_stream(Slow(3)), Duration::from_millis(10)).await.unwrap_err();
    assert!(error.to_string().contains("in time"), "{error}");
    let whole = read(Body::from("whole"), Duration::from_secs(60)).await.unwrap();
    assert_eq!(whole, "whole");
}
