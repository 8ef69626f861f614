//! Where one request ends and the next begins, and what a connection may not do.

use base::limits::{HTTP_HEAD_MAX, HTTP_HEADERS_MAX};

use crate::stand::{Stand, open};

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    let host = client.host.clone();
    let mut all = String::new();
    for n in 0..50 {
        all.push_str(&format!(
            "PUT /share/f{n} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{n:02}"
        ));
        all.push_str(&format!("GET /share/f{n} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    }
    client.raw(all);
    for n in 0..50 {
        assert_eq!(client.reply(false).status, 201);
        assert_eq!(client.reply(false).body, format!("{n:02}").as_bytes());
    }
}

#[test]
fn an_unread_body_is_not_taken_for_a_request() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    let hidden = format!("GET /share/ HTTP/1.1\r\nHost: {}\r\n\r\n", client.host);
    let refused = client.ask("BREW /share/", &[], hidden.as_bytes());
    assert_eq!(refused.status, 501);
    let next = client.get("/none", &[]);
    assert_eq!(next.status, 404);
    // Too much of it: the connection ends with the answer.
    let long = vec![b'x'; 2_000_000];
    client.send("BREW /share/", &[], &long);
    let refused = client.reply(false);
    assert_eq!((refused.status, refused.header("connection")), (501, "close"));
    assert!(client.is_over());
}

#[test]
fn what_could_be_read_in_two_ways_ends_the_connection() {
    let stand = Stand::new(open());
    for fields in [
        "Host: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Host: h\r\nContent-Length: 4\r\nContent-Length: 5\r\n",
        "Host: h\r\nTransfer-Encoding : chunked\r\n",
        "Host: h\r\nX: a\r\n b\r\n",
        "Host: h\r\nTransfer-Encoding: identity, chunked\r\n",
        "Host: h\nX: y\r\n",
        "X: no host\r\n",
    ] {
        let mut client = stand.client();
        client.raw(format!(
            "PUT /share/f HTTP/1.1\r\n{fields}\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"
        ));
        let reply = client.reply(false);
        assert!(matches!(reply.status, 400 | 501), "{fields:?} {}", reply.status);
        assert_eq!(reply.header("connection"), "close");
        assert!(client.is_over(), "{fields:?}");
    }
    let mut client = stand.client();
    client.raw("PUT /share/f HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.raw("5\nhello\r\n0\r\n\r\n");
    assert_eq!(client.reply(false).status, 400);
    assert!(client.is_over());
    assert_eq!(stand.client().get("/share/f", &[]).status, 404);
}

#[test]
fn heads_are_bounded() {
    let stand = Stand::new(open());
    let long = "a".repeat(HTTP_HEAD_MAX);
    let mut client = stand.client();
    client.raw(format!("GET / HTTP/1.1\r\nHost: h\r\nX: {long}"));
    assert_eq!(client.reply(false).status, 431);
    let mut client = stand.client();
    let many = vec!["X: y"; HTTP_HEADERS_MAX + 1];
    assert_eq!(client.get("/", &many).status, 431);
    let mut client = stand.client();
    assert_eq!(client.get(&format!("/{}", &long[..20_000]), &[]).status, 414);
}

#[test]
fn a_client_that_waits_for_a_word_gets_it_or_the_answer() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    let expects = ["Expect: 100-continue", "Content-Length: 5"];
    client.send("PATCH /none", &expects, b"");
    assert_eq!(client.reply(false).status, 405);
    assert!(client.is_over());
    let mut client = stand.client();
    client.raw(format!(
        "PUT /share/f HTTP/1.1\r\nHost: {}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        client.host
    ));
    assert_eq!(client.reply(false).status, 100);
    client.raw("hello");
    assert_eq!(client.reply(false).status, 201);
    assert_eq!(client.get("/share/f", &["Expect: tea"]).status, 417);
}

#[test]
fn old_clients_get_what_they_understand() {
    let stand = Stand::new(open());
    let mut client = stand.client();
    client.raw("GET /share/ HTTP/1.0\r\n\r\n");
    let reply = client.reply(false);
    assert_eq!((reply.status, reply.header("transfer-encoding")), (200, ""));
    assert!(reply.text().ends_with("</html>\n"));
    let mut client = stand.client();
    assert_eq!(client.ask("TRACE /", &[], b"").status, 405);
    assert_eq!(client.ask("OPTIONS *", &[], b"").status, 200);
    client.raw("GET / HTTP/2.0\r\nHost: h\r\n\r\n");
    assert_eq!(client.reply(false).status, 505);
}

#[test]
fn idle_clients_do_not_stop_others() {
    let stand = Stand::new(open());
    let mut idle: Vec<_> = (0..500).map(|_| stand.client()).collect();
    for client in &mut idle {
        client.raw("GET / HTTP/1.1\r\nX-");
    }
    let mut client = stand.client();
    assert_eq!(client.put("/share/f", &[], b"x").status, 201);
    assert_eq!(client.get("/share/f", &[]).body, b"x");
}
