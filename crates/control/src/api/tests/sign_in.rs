//! Signing in and out: passwords, one-time URLs, tokens, the cookie, and pages of other sites.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, LOCATION, RETRY_AFTER, SET_COOKIE,
};
use axum::http::{Request, StatusCode, request};
use base::limits::{SESSION_IDLE, SIGN_IN_FREE_FAILURES};
use serde_json::json;
use tower::ServiceExt;

use super::appliance::FOREIGN;
use super::{NOW, Server, TOKEN, cookie, post, refusal, users, value};
use crate::accounts::{Kind, Table, Token, User, password, token_secret};
use crate::api::{Peer, router};
use crate::state::files::digest_hex;
use crate::tree::audit::AuditFilter;
use crate::tree::tests::disk::MemoryDisk;

#[tokio::test]
async fn a_password_opens_a_session_and_signing_out_ends_it() {
    let server = Server::new();
    let response = server.sign_in("right").await;
    assert_eq!(response.status(), StatusCode::OK);
    let set = response.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    for flag in ["HttpOnly", "Secure", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(flag), "{flag} in {set}");
    }
    let cookie = cookie(&response);
    let in_session = json!({ "user": "admin", "via": "session", "permissions": ["*"] });
    assert_eq!(value(response).await, in_session);

    let who = || Request::get("/api/v1/session").header(COOKIE, format!("a=b; {cookie}"));
    assert_eq!(value(server.send(who(), "").await).await, in_session);
    let end = Request::delete("/api/v1/session").header(COOKIE, &cookie);
    assert_eq!(server.send(end, "").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(server.send(who(), "").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_session_expires() {
    let server = Server::new();
    let cookie = cookie(&server.sign_in("right").await);
    let status = || Request::get("/api/v1/status").header(COOKIE, &cookie);
    assert_eq!(server.send(status(), "").await.status(), StatusCode::OK);
    server.clock.advance(SESSION_IDLE);
    assert_eq!(server.send(status(), "").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn wrong_passwords_are_slowed_down() {
    let server = Server::new();
    for _ in 0..SIGN_IN_FREE_FAILURES {
        let (status, failed) = refusal(server.sign_in("wrong").await).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(!failed.contains("admin"), "does not say which of both is wrong");
    }
    let response = server.sign_in("right").await;
    assert_eq!(response.headers()[RETRY_AFTER], "1");
    let (status, _) = refusal(response).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "also for the right one");
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(server.sign_in("right").await.status(), StatusCode::OK);
    assert_eq!(server.sign_in("wrong").await.status(), StatusCode::UNAUTHORIZED, "forgiven");
}

#[tokio::test]
async fn a_wrong_password_counts_when_its_client_disconnects() {
    let server = Server::new();
    for _ in 1..SIGN_IN_FREE_FAILURES {
        server.sign_in("wrong").await;
    }
    tokio::select! {
        biased;
        _ = server.sign_in("wrong") => panic!("the hash takes longer than this"),
        // The request is dropped as hyper does it, while its password is checked.
        () = ready(()) => {}
    }
    let (status, _) = refusal(server.sign_in("right").await).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    let wanted = AuditFilter { limit: 100, ..AuditFilter::default() };
    let records = server.tree.audit().read(&wanted).unwrap();
    let refused = records.iter().filter(|one| one.action == "sign-in refused").count();
    assert_eq!(refused, SIGN_IN_FREE_FAILURES as usize, "{records:?}");
}

/// A server at which something happens once: while the next sign-in is recorded.
fn server_at_which(then: impl FnOnce(Table) -> Table + Send + 'static) -> Server {
    let disk = MemoryDisk::default();
    let server = Server::on(Arc::new(disk.clone()), None);
    let accounts = server.accounts.clone();
    disk.at_append("audit.log", move || accounts.replace(then(users())));
    server
}

fn with_another_password(mut table: Table) -> Table {
    let hash = password::hash("another").unwrap();
    table.users.get_mut("admin").unwrap().password = Some(hash);
    table
}

#[tokio::test]
async fn a_sign_in_does_not_outlive_the_password_that_it_was_checked_with() {
    let server = server_at_which(with_another_password);
    let response = server.sign_in("right").await;
    assert!(!response.headers().contains_key(SET_COOKIE));
    assert_eq!(refusal(response).await.0, StatusCode::UNAUTHORIZED);
    let action = server.last_recorded().action;
    assert_eq!(action, "sign-in refused");
    assert_eq!(server.sign_in("another").await.status(), StatusCode::OK);

    let server = server_at_which(with_another_password);
    let response = server.send(Request::get(server.control.login_once("admin")), "").await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert!(!response.headers().contains_key(SET_COOKIE));

    // Another change does not matter to a sign-in.
    let server = server_at_which(|mut table| {
        table.users.get_mut("admin").unwrap().full_name = "Anna".to_owned();
        table
    });
    assert_eq!(server.sign_in("right").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_one_time_url_works_once() {
    let server = Server::new();
    let path = server.control.login_once("admin");
    assert!(path.starts_with("/login?once="));
    let first = server.send(Request::get(&path), "").await;
    assert_eq!(first.status(), StatusCode::SEE_OTHER);
    assert_eq!(first.headers()[LOCATION], "/");
    let status = Request::get("/api/v1/status").header(COOKIE, cookie(&first));
    assert_eq!(server.send(status, "").await.status(), StatusCode::OK);

    let second = server.send(Request::get(&path), "").await;
    assert_eq!(second.status(), StatusCode::FORBIDDEN);
    assert!(!second.headers().contains_key(SET_COOKIE));
}

#[tokio::test]
async fn tokens_must_be_right() {
    let server = Server::new();
    assert_eq!(server.get("/api/v1/status").await.status(), StatusCode::OK);
    for token in ["", "x", &TOKEN[1..], "1123456789abcdef0123456789abcdef"] {
        let request =
            Request::get("/api/v1/status").header(AUTHORIZATION, format!("Bearer {token}"));
        assert_eq!(server.send(request, "").await.status(), StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn the_local_peer_is_signed_in() {
    let server = Server::new();
    let request = Request::get("/api/v1/session")
        .extension(Peer::Local { uid: 0 })
        .body(Body::empty())
        .unwrap();
    let response = router(server.control.clone()).oneshot(request).await.unwrap();
    let at_socket = json!({ "user": "root", "via": "local", "permissions": ["*"] });
    assert_eq!(value(response).await, at_socket);
}

#[tokio::test]
async fn another_sites_page_cannot_make_changes() {
    let server = Server::new();
    let body = json!({ "user": "admin", "password": "right" }).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let request = Request::post("/api/v1/session").header(CONTENT_TYPE, kind);
        let response = server.send(request, body.clone()).await;
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let foreign = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "https://nas.example:444"),
        ("origin", "null"),
    ];
    for (name, says) in foreign {
        let request = post("/api/v1/session").header(HOST, "nas.example").header(name, says);
        let response = server.send(request, body.clone()).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{name}: {says}");
    }
    let own = [("sec-fetch-site", "same-origin"), ("origin", "https://NAS.example")];
    for (name, says) in own {
        let request = post("/api/v1/session").header(HOST, "nas.example").header(name, says);
        let response = server.send(request, body.clone()).await;
        assert_eq!(response.status(), StatusCode::OK, "{name}: {says}");
    }
}

#[tokio::test]
async fn a_name_of_another_site_that_leads_here_is_reported() {
    let server = Server::new();
    let body = json!({ "user": "admin", "password": "right" }).to_string();
    let from_page = |request: request::Builder| {
        request.header(HOST, FOREIGN).header("origin", format!("https://{FOREIGN}"))
    };
    let response = server.send(from_page(post("/api/v1/session")), body).await;
    assert_eq!(response.status(), StatusCode::MISDIRECTED_REQUEST);
    for path in ["/", "/login", "/api/v1/status"] {
        let response = server.send(from_page(Request::get(path)), Body::empty()).await;
        let (status, why) = refusal(response).await;
        assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{path}");
        assert!(why.contains(FOREIGN), "{why}");
    }
    // A program with a token may use any name for the server, and so may a process on the same
    // machine.
    let bearer = Request::get("/api/v1/status").header(HOST, FOREIGN);
    let bearer = bearer.header(AUTHORIZATION, format!("Bearer {TOKEN}"));
    assert_eq!(server.send(bearer, Body::empty()).await.status(), StatusCode::OK);
    let local = Request::get("/api/v1/status").header(HOST, FOREIGN);
    let local = local.extension(Peer::Local { uid: 0 }).body(Body::empty()).unwrap();
    let response = router(server.control.clone()).oneshot(local).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_user_of_shares_is_refused_and_only_its_password_shows_the_reason() {
    let server = Server::new();
    let mut table = users();
    table.users.get_mut("admin").unwrap().kind = Kind::Data;
    server.accounts.replace(table);
    let (status, failed) = refusal(server.sign_in("wrong").await).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{failed}");
    let response = server.sign_in("right").await;
    assert!(!response.headers().contains_key(SET_COOKIE));
    let (status, failed) = refusal(response).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(failed.contains("file services only"), "{failed}");
}

#[tokio::test]
async fn a_user_of_shares_is_slowed_down_too() {
    let server = Server::new();
    let mut table = users();
    table.users.get_mut("admin").unwrap().kind = Kind::Data;
    server.accounts.replace(table);
    for _ in 0..SIGN_IN_FREE_FAILURES {
        assert_eq!(server.sign_in("right").await.status(), StatusCode::FORBIDDEN);
    }
    // Each of them is a line in the audit log, which has a limit.
    assert_eq!(server.sign_in("right").await.status(), StatusCode::TOO_MANY_REQUESTS);
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(server.sign_in("right").await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn lost_rights_take_effect_at_once() {
    let server = Server::new();
    let cookie = cookie(&server.sign_in("right").await);
    let status = async || {
        let request = Request::get("/api/v1/status").header(COOKIE, &cookie);
        server.send(request, "").await.status()
    };
    assert_eq!(status().await, StatusCode::OK);
    let with = |change: fn(&mut User)| {
        let mut table = users();
        change(table.users.get_mut("admin").unwrap());
        server.accounts.replace(table);
    };
    with(|user| user.roles.clear());
    assert_eq!(status().await, StatusCode::FORBIDDEN);
    with(|user| user.enabled = false);
    assert_eq!(status().await, StatusCode::UNAUTHORIZED);
    server.accounts.replace(Default::default());
    assert_eq!(status().await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_has_its_role_until_it_ends() {
    let server = Server::new();
    let secret = token_secret();
    let mut table = users();
    let (role, digest) = ("operator".to_owned(), Some(digest_hex(&secret)));
    let token = Token { role, ends: Some(NOW + 60), digest };
    table.tokens.insert("watch".to_owned(), token);
    server.accounts.replace(table);
    let get = async |path: &str| {
        let request = Request::get(path).header(AUTHORIZATION, format!("Bearer {secret}"));
        server.send(request, "").await
    };
    let who = value(get("/api/v1/session").await).await;
    let permissions = ["*:read", "clients:change", "sessions:change"];
    let expected = json!({ "user": "token watch", "via": "token", "permissions": permissions });
    assert_eq!(who, expected);
    let switch =
        post("/api/v1/analytics/collect").header(AUTHORIZATION, format!("Bearer {secret}"));
    let refused = server.send(switch, r#"{"on": false}"#).await;
    let (status, failed) = refusal(refused).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(failed, "token watch has no role with analytics:change");
    assert!(!server.fake.switched_off());
    server.clock.advance(Duration::from_secs(60));
    assert_eq!(get("/api/v1/session").await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn sign_ins_are_in_the_audit_log_and_what_was_typed_is_not() {
    let server = Server::new();
    server.sign_in("my secret").await;
    let mistaken = json!({ "user": "Pa55word!", "password": "admin" }).to_string();
    server.send(post("/api/v1/session"), mistaken).await;
    let cookie = cookie(&server.sign_in("right").await);
    let end = Request::delete("/api/v1/session").header(COOKIE, &cookie);
    server.send(end, "").await;
    let wanted = AuditFilter { limit: 100, ..AuditFilter::default() };
    let records = server.tree.audit().read(&wanted).unwrap();
    let mut seen: Vec<(&str, &str, &str)> =
        records.iter().map(|r| (&*r.action, &*r.who, &*r.from)).collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            ("sign-in", "admin", "10.0.0.7"),
            ("sign-in refused", "(unknown name)", "10.0.0.7"),
            ("sign-in refused", "admin", "10.0.0.7"),
            ("sign-out", "admin", "10.0.0.7"),
        ]
    );
    let all = format!("{records:?}");
    assert!(!all.contains("my secret") && !all.contains("Pa55word!"), "{all}");
}
