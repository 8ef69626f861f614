//! Locks of WebDAV through the router: structure, unknown ids, the permission for releases.

use super::appliance::{LOCK, STUCK};
use super::*;

const PATH: &str = "/api/v1/services/http/locks";

fn delete(id: &str) -> axum::http::request::Builder {
    Request::delete(format!("{PATH}/{id}"))
}

#[tokio::test]
async fn locks_are_listed_without_their_tokens() {
    let server = Server::new();
    let locks = value(server.get(PATH).await).await;
    assert_eq!(locks["more"], json!(false));
    let lock = &locks["rows"][0];
    assert_eq!((&lock["id"], &lock["file"]), (&json!(LOCK), &json!("/tank/a")));
    assert_eq!((&lock["scope"], &lock["depth"]), (&json!("exclusive"), &json!("0")));
    assert!(!locks.to_string().contains("opaquelocktoken"));
    assert_eq!(server.send(Request::get(PATH), "").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn releasing_a_lock_requires_the_right_and_is_recorded() {
    let server = Server::new();
    let token = format!("Bearer {TOKEN}");
    assert_eq!(server.send(delete(LOCK), "").await.status(), StatusCode::UNAUTHORIZED);
    let foreign = delete(LOCK).header(AUTHORIZATION, &token).header("sec-fetch-site", "cross-site");
    assert_eq!(server.send(foreign, "").await.status(), StatusCode::FORBIDDEN);
    let gone = server.send(delete("0f3c2a11-0000").header(AUTHORIZATION, &token), "").await;
    let (status, failed) = refusal(gone).await;
    assert_eq!((status, &*failed), (StatusCode::NOT_FOUND, "this lock does not exist"));
    assert_eq!(server.fake.released(), None);
    let ended = server.send(delete(LOCK).header(AUTHORIZATION, &token), "").await;
    assert_eq!(ended.status(), StatusCode::OK);
    assert_eq!(value(ended).await["user"], "anna");
    assert_eq!(server.fake.released(), Some(format!("api-token: {LOCK}")));
    let last = server.last_recorded();
    assert_eq!((&*last.who, &*last.action), ("api-token", "release"));
    assert_eq!(&*last.path, "/configuration/services/http");
    assert_eq!(last.before, json!({ "lock": LOCK, "file": "/tank/a", "user": "anna" }));
}

#[tokio::test]
async fn a_lock_that_cannot_be_ended_stays_and_the_answer_has_the_reason() {
    let server = Server::new();
    let request = delete(STUCK).header(AUTHORIZATION, format!("Bearer {TOKEN}"));
    let (status, failed) = refusal(server.send(request, "").await).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(failed.contains("no space left"), "{failed}");
    assert_eq!(server.fake.released(), None);
}
