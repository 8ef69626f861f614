//! Which users are accepted, and what another site can make a browser do.

use std::sync::atomic::Ordering;

use serve::http::{Plain, Settings, SignIn};
use vfs::cred::Cred;

use crate::stand::{Client, Stand, closed};

/// alice:secret
const ALICE: &str = "Authorization: Basic YWxpY2U6c2VjcmV0";
/// alice:wrong
const WRONG: &str = "Authorization: Basic YWxpY2U6d3Jvbmc=";

#[test]
fn a_password_is_judged_once_and_not_for_each_request() {
    let stand = Stand::new(Settings { name: "nas".to_owned(), ..closed() });
    let mut client = stand.client();
    let refused = client.get("/share/", &[]);
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate");
    assert!(challenge.starts_with("Basic realm="));
    for _ in 0..20 {
        assert_eq!(client.get("/share/", &[ALICE]).status, 200);
    }
    assert_eq!(stand.scene.users.judged.load(Ordering::Relaxed), 1);
    assert_eq!(client.get("/share/", &[WRONG]).status, 401);
    let wrong = client.get("/share/", &[WRONG]);
    assert_eq!((wrong.status, wrong.header("www-authenticate")), (401, challenge), "one realm");
    assert_eq!(stand.scene.users.judged.load(Ordering::Relaxed), 3);
    // Whatever changes about users, passwords are looked at again.
    stand.scene.users.add("alice", "other", Cred::root());
    assert_eq!(client.get("/share/", &[ALICE]).status, 401);
}

#[test]
fn no_password_is_accepted_unencrypted_unless_it_is_set_so() {
    let stand = Stand::new(Settings { basic_over_plain: false, ..closed() });
    let mut client = stand.client();
    assert_eq!(client.get("/share/", &[ALICE]).status, 403);
    assert_eq!(
        client.ask("POST /.plimsoll/sign-in", &[], b"name=alice&password=secret").status,
        403
    );
    assert_eq!(stand.scene.users.judged.load(Ordering::Relaxed), 0);
    assert_eq!(stand.secure_client().get("/share/", &[ALICE]).status, 200);
}

#[test]
fn the_plain_port_sends_to_the_secure_one() {
    let stand = Stand::new(Settings { plain: Plain::Redirect, ..closed() });
    let mut client = stand.client();
    client.host = "nas.example:8080".to_owned();
    let sent = client.get("/share/a%20b/?x=1", &[]);
    let there = format!("https://nas.example:{}/share/a%20b/?x=1", stand.secure.port());
    assert_eq!((sent.status, sent.header("location")), (308, there.as_str()));
}

/// Signs in by the form; the cookie.
fn sign_in(client: &mut Client) -> String {
    let origin = format!("Origin: https://{}", client.host);
    let form = b"name=alice&password=secret&to=%2Fshare%2F";
    let reply = client.ask("POST /.plimsoll/sign-in", &[&origin], form);
    assert_eq!((reply.status, reply.header("location")), (303, "/share/"));
    let cookie = reply.header("set-cookie");
    for attribute in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    format!("Cookie: other=1; {}", cookie.split(';').next().unwrap())
}

#[test]
fn a_browser_signs_in_by_a_form_and_out_again() {
    let stand = Stand::new(closed());
    let mut client = stand.secure_client();
    let sent = client.get("/share/x", &["Accept: text/html,*/*"]);
    assert_eq!((sent.status, sent.header("location")), (303, "/.plimsoll/sign-in?to=/share/x"));
    let form = client.get("/.plimsoll/sign-in?to=/share/x", &[]);
    assert!(form.text().contains("name=\"to\" value=\"/share/x\""));
    let origin = format!("Origin: https://{}", client.host);
    let wrong = client.ask("POST /.plimsoll/sign-in", &[&origin], b"name=alice&password=no");
    assert_eq!(wrong.status, 403);
    assert!(wrong.text().contains("Wrong name or password."));
    let cookie = sign_in(&mut client);
    let page = client.get("/share/", &[&cookie]);
    assert_eq!(page.status, 200);
    assert!(page.text().contains("alice"));
    assert_eq!(client.ask("POST /.plimsoll/sign-out", &[&cookie, &origin], b"").status, 303);
    assert_eq!(client.get("/share/", &[&cookie]).status, 401);
    // A removed user has no session.
    let cookie = sign_in(&mut client);
    stand.scene.users.remove("alice");
    assert_eq!(client.get("/share/", &[&cookie]).status, 401);
}

#[test]
fn another_site_changes_nothing() {
    let stand = Stand::new(closed());
    let mut client = stand.secure_client();
    let cookie = sign_in(&mut client);
    let own = format!("Origin: https://{}", client.host);
    assert_eq!(client.put("/share/f", &[&cookie, &own], b"x").status, 201);
    let plain = format!("Origin: http://{}", client.host);
    for origin in [
        "Origin: https://evil.example",
        "Origin: null",
        plain.as_str(),
        "Sec-Fetch-Site: cross-site",
        "X: y",
    ] {
        assert_eq!(client.put("/share/f", &[&cookie, origin], b"evil").status, 403, "{origin}");
    }
    // A password that the browser knows is no better; a program sends no Origin.
    assert_eq!(
        client.put("/share/f", &[ALICE, "Origin: https://evil.example"], b"evil").status,
        403
    );
    assert_eq!(client.put("/share/f", &[ALICE], b"y").status, 204);
    let form = b"name=alice&password=secret";
    let evil = client.ask("POST /.plimsoll/sign-in", &["Origin: https://evil.example"], form);
    assert_eq!(evil.status, 403);
}

#[test]
fn clients_that_need_not_sign_in_may() {
    let stand = Stand::new(Settings { sign_in: SignIn::Optional, ..closed() });
    let mut client = stand.client();
    assert_eq!(client.get("/share/", &[]).status, 200);
    assert_eq!(client.get("/share/", &[WRONG]).status, 401);
    assert_eq!(client.put("/share/f", &[ALICE], b"x").status, 201);
    assert_eq!(client.ask("MKCOL /share/own", &[ALICE], b"").status, 201);
    // It belongs to alice: an anonymous user is requested to sign in.
    assert_eq!(client.put("/share/own/g", &[], b"x").status, 401);
}

/// Requests without a credential, of a page with a name that was changed to lead here.
const REBOUND: [&str; 11] = [
    "PUT /share/x",
    "DELETE /share/own",
    "MKCOL /share/d",
    "MOVE /share/own",
    "GET /share/own",
    "GET /share/",
    "GET /",
    "GET /share/?archive",
    "HEAD /share/own",
    "PROPFIND /share/",
    "OPTIONS /share/",
];

#[test]
fn a_name_of_another_site_that_leads_here_reads_and_changes_nothing() {
    for sign_in in [SignIn::None, SignIn::Optional] {
        let settings = Settings { sign_in, basic_over_plain: true, ..crate::stand::open() };
        let stand = Stand::new(settings);
        stand.http.judge_hosts(|host| !host.starts_with("evil.example"));
        let mut client = stand.client();
        assert_eq!(client.put("/share/own", &[], b"x").status, 201);
        assert_eq!(client.get("/share/own", &[]).status, 200);
        // To the browser the page and the server are of one origin.
        client.host = "evil.example:8080".to_owned();
        let fields = ["Origin: http://evil.example:8080", "Sec-Fetch-Site: same-origin"];
        for line in REBOUND {
            assert_eq!(client.ask(line, &fields, b"").status, 421, "{line}");
        }
        if sign_in == SignIn::Optional {
            let signed_in = [fields[0], fields[1], ALICE];
            assert_eq!(client.put("/share/hers", &signed_in, b"x").status, 201, "a credential");
            assert_eq!(client.get("/share/hers", &signed_in).status, 200);
        }
    }
}
