//! HTTP/2: the same responses, many at once.

use std::sync::Arc;

use base::limits::{HTTP2_SEND_BUFFER, RECEIVE_BUFFER};
use bytes::Bytes;
use h2::client::SendRequest;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use vfs::share::Service;

use crate::scene::{Scene, Scratch};
use crate::stand::{Stand, open};

/// Runs `test` with a connection of HTTP/2.
pub fn with<F: Future<Output = ()>>(stand: &Stand, test: impl FnOnce(SendRequest<Bytes>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut config = stand.believes();
    config.alpn_protocols = vec![b"h2".to_vec()];
    runtime.block_on(tokio::task::LocalSet::new().run_until(async move {
        let stream = TcpStream::connect(stand.secure).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        // What one stream leaves unread must not fill the connection.
        let mut builder = h2::client::Builder::new();
        let builder = builder.initial_window_size(1 << 16).initial_connection_window_size(1 << 23);
        let (send, connection) = builder.handshake(stream).await.unwrap();
        tokio::task::spawn_local(async move { drop(connection.await) });
        let limit = std::time::Duration::from_secs(30);
        tokio::time::timeout(limit, test(send)).await.unwrap();
    }));
}

pub fn request(method: &str, path: &str) -> http::Request<()> {
    let uri = format!("https://localhost{path}");
    http::Request::builder().method(method).uri(uri).body(()).unwrap()
}

/// Sends a body as there is room for it, and receives the response.
pub async fn ask(
    send: &SendRequest<Bytes>,
    request: http::Request<()>,
    body: &[u8],
) -> (u16, Vec<u8>) {
    let mut send = send.clone().ready().await.unwrap();
    let (answer, mut stream) = send.send_request(request, body.is_empty()).unwrap();
    let mut rest = Bytes::copy_from_slice(body);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
        let part = rest.split_to(room.min(rest.len()));
        stream.send_data(part, rest.is_empty()).unwrap();
    }
    let answer = answer.await.unwrap();
    let (status, mut recv) = (answer.status().as_u16(), answer.into_body());
    let mut all = Vec::new();
    while let Some(part) = recv.data().await {
        let part = part.unwrap();
        recv.flow_control().release_capacity(part.len()).unwrap();
        all.extend_from_slice(&part);
    }
    (status, all)
}

#[test]
fn a_request_ends_when_its_stream_is_reset() {
    const FILES: usize = 30_000;
    let folder = Scratch::in_memory();
    let dir = folder.0.join("share/d");
    std::fs::create_dir(&dir).unwrap();
    let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&dir, anybody).unwrap();
    (0..FILES).for_each(|n| drop(std::fs::File::create(dir.join(format!("{n}"))).unwrap()));
    let stand = Stand::of(&folder);
    let pool = Arc::clone(&stand.scene.files.engine.pool);
    with(&stand, |send| async move {
        let look = std::time::Duration::from_millis(1);
        let mut send = send.ready().await.unwrap();
        let delete = request("DELETE", "/share/d/");
        let (answer, mut stream) = send.send_request(delete, true).unwrap();
        while pool.busy() == 0 {
            tokio::time::sleep(look).await;
        }
        stream.send_reset(h2::Reason::CANCEL);
        drop(answer);
        let mut quiet = 0;
        while quiet < 100 {
            let at_work = pool.busy() > 0 || pool.queued() > 0;
            quiet = if at_work { 0 } else { quiet + 1 };
            tokio::time::sleep(look).await;
        }
    });
    let left = std::fs::read_dir(&dir).expect("it is there").count();
    assert!(left > FILES / 2, "{left} files are left");
}

#[test]
fn a_name_of_another_site_that_leads_here_reads_nothing() {
    let stand = Stand::new(open());
    stand.http.judge_hosts(|host| !host.starts_with("evil.example"));
    with(&stand, |send| async move {
        for method in ["GET", "HEAD", "PROPFIND", "PUT"] {
            let uri = "https://evil.example/share/";
            let asked = http::Request::builder().method(method).uri(uri).body(()).unwrap();
            assert_eq!(ask(&send, asked, b"").await.0, 421, "{method}");
        }
        assert_eq!(ask(&send, request("GET", "/share/"), b"").await.0, 200);
    });
}

#[test]
fn files_go_up_and_down() {
    let stand = Stand::new(open());
    with(&stand, |send| async move {
        for size in [0, 5, 100_000, 3_000_000] {
            let body: Vec<u8> = (0..size).map(|n| (n % 253) as u8).collect();
            let path = format!("/share/f{size}");
            assert_eq!(ask(&send, request("PUT", &path), &body).await.0, 201);
            let (status, got) = ask(&send, request("GET", &path), b"").await;
            assert_eq!((status, got == body), (200, true), "{size}");
        }
        assert_eq!(ask(&send, request("GET", "/share/%2e%2e/%2f"), b"").await.0, 400);
        assert_eq!(ask(&send, request("GET", "/none"), b"").await.0, 404);
        let (status, page) = ask(&send, request("GET", "/share/"), b"").await;
        assert_eq!(status, 200);
        assert!(page.ends_with(b"</html>\n"));
        assert_eq!(ask(&send, request("HEAD", "/share/f5"), b"").await, (200, Vec::new()));
    });
}

#[test]
fn a_stream_that_waits_does_not_hold_others_up() {
    let stand = Stand::new(open());
    with(&stand, |send| async move {
        let body = vec![b'x'; 4_000_000];
        assert_eq!(ask(&send, request("PUT", "/share/large"), &body).await.0, 201);
        // The body of this response is not read.
        let mut first = send.clone().ready().await.unwrap();
        let (slow, _) = first.send_request(request("GET", "/share/large"), true).unwrap();
        let slow = slow.await.unwrap();
        let many = (0..50).map(|n| {
            let send = send.clone();
            tokio::task::spawn_local(async move {
                let path = format!("/share/f{n}");
                assert_eq!(ask(&send, request("PUT", &path), path.as_bytes()).await.0, 201);
                assert_eq!(ask(&send, request("GET", &path), b"").await.1, path.as_bytes());
            })
        });
        for one in many.collect::<Vec<_>>() {
            one.await.unwrap();
        }
        drop(slow);
    });
}

#[test]
fn a_file_that_is_replaced_or_removed_comes_to_its_end() {
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    let (share, data) = (scratch.0.join("share"), vec![b'x'; 4_000_000]);
    for removed in [false, true] {
        scratch.file("share/f", &data);
        scratch.file("new", b"new");
        let (share, new, data) = (share.clone(), scratch.0.join("new"), data.clone());
        with(&stand, |send| async move {
            let mut send = send.ready().await.unwrap();
            let (answer, _) = send.send_request(request("GET", "/share/f"), true).unwrap();
            let mut body = answer.await.unwrap().into_body();
            // The window of the stream holds a part of it.
            let mut all = body.data().await.unwrap().unwrap().to_vec();
            match removed {
                true => std::fs::remove_file(share.join("f")).unwrap(),
                false => std::fs::rename(new, share.join("f")).unwrap(),
            }
            body.flow_control().release_capacity(all.len()).unwrap();
            while let Some(part) = body.data().await {
                let part = part.expect("the stream goes on");
                body.flow_control().release_capacity(part.len()).unwrap();
                all.extend_from_slice(&part);
            }
            assert!(all == data, "removed {removed}: {}", all.len());
        });
    }
}

/// Connections that send requests and do not read.
const GREEDY: usize = 16;
/// Requests on each of them.
const ASKED: usize = 64;
/// What one of them may receive while its response is being sent.
const STREAM: usize = 8 << 10;
/// What the server may hold, on two cores.
const BYTES: usize = 32 << 20;

/// A connection that has requested a file many times, and reads no response: the holder of the
/// future does not poll it any more.
async fn greedy(stand: &Stand) -> impl Future {
    let mut config = stand.believes();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(stand.secure).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let mut builder = h2::client::Builder::new();
    let builder = builder.initial_window_size(1 << 30).initial_connection_window_size(1 << 30);
    let (mut send, connection) = builder.handshake::<_, Bytes>(stream).await.unwrap();
    let mut connection = Box::pin(connection);
    let mut answers = Vec::new();
    for _ in 0..ASKED {
        let ready = std::future::poll_fn(|cx| send.poll_ready(cx));
        tokio::select! {
            ready = ready => ready.unwrap(),
            _ = connection.as_mut() => panic!("it has ended"),
        }
        answers.push(send.send_request(request("GET", "/share/large"), true).unwrap().0);
    }
    // The first answer has come when the requests before it have left. While streams of other
    // connections are being computed, there may be no room for it: it is requested again.
    loop {
        let first = tokio::select! {
            answer = answers.remove(0) => answer,
            _ = connection.as_mut() => panic!("it has ended"),
        };
        let Err(error) = first else { break };
        assert_eq!(error.reason(), Some(h2::Reason::REFUSED_STREAM), "{error}");
        let ready = std::future::poll_fn(|cx| send.poll_ready(cx));
        tokio::select! {
            ready = ready => ready.unwrap(),
            _ = connection.as_mut() => panic!("it has ended"),
        }
        answers.push(send.send_request(request("GET", "/share/large"), true).unwrap().0);
    }
    async move {
        let _kept = (send, answers);
        connection.await
    }
}

#[test]
fn unread_responses_are_in_the_account_and_leave_it() {
    let stand = Stand::over(Scene::with_bytes(Service::Http, BYTES), open());
    let budgets = Arc::clone(&stand.scene.files.engine.budgets);
    let held = || usize::try_from(budgets.bytes()).unwrap();
    with(&stand, |send| async move {
        let body = vec![b'x'; 4_000_000];
        assert_eq!(ask(&send, request("PUT", "/share/large"), &body).await.0, 201);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let wait = |what: &str, is_so: &dyn Fn(usize) -> bool| {
        let until = base::clock::Deadline::after(std::time::Duration::from_secs(30));
        while !is_so(held()) {
            assert!(!until.passed(), "{what}: {} bytes are held", held());
            std::thread::yield_now();
        }
    };
    wait("at rest", &|held| held == 0);
    let connections = runtime.block_on(async {
        let mut all = Vec::new();
        for _ in 0..GREEDY {
            all.push(Box::pin(greedy(&stand).await));
        }
        all
    });
    // What one connection has does not grow with its streams.
    wait("in the account", &|held| held >= GREEDY * HTTP2_SEND_BUFFER / 2);
    let most = GREEDY * (HTTP2_SEND_BUFFER + 4 * RECEIVE_BUFFER + ASKED * STREAM);
    let mut client = stand.client();
    assert_eq!(client.get("/share/large", &[]).status, 200, "others are answered");
    assert!(held() <= most.min(BYTES), "{} bytes are held", held());
    drop((connections, client));
    drop(runtime);
    wait("given back", &|held| held == 0);
}

/// Streams of one connection, in the test of what they hold.
const STREAMS: usize = 100;

/// Begins an upload of which nothing comes.
async fn begin_upload(send: &SendRequest<Bytes>, n: usize) -> (Answer, h2::SendStream<Bytes>) {
    let mut send = send.clone().ready().await.unwrap();
    let mut request = request("PUT", &format!("/share/f{n}"));
    request.headers_mut().insert("content-length", http::HeaderValue::from_static("10"));
    send.send_request(request, false).unwrap()
}

type Answer = h2::client::ResponseFuture;

#[test]
fn streams_are_in_the_account_and_refused_without_room() {
    let stand = Stand::over(Scene::with_bytes(Service::Http, 4 << 20), open());
    let budgets = Arc::clone(&stand.scene.files.engine.budgets);
    let held = || usize::try_from(budgets.bytes()).unwrap();
    with(&stand, |send| async move {
        let mut streams = Vec::new();
        for n in 0..STREAMS {
            streams.push(begin_upload(&send, n).await);
        }
        // The last one is refused; no answer comes to those that wait for their bodies.
        let (refused, _) = streams.pop().unwrap();
        let error = refused.await.unwrap_err();
        assert_eq!(error.reason(), Some(h2::Reason::REFUSED_STREAM), "{error}");
        drop(streams);
        // They are released as the server learns of the resets.
        let again = || async {
            let mut send = send.clone().ready().await.unwrap();
            let (answer, _) = send.send_request(request("GET", "/share/"), true).unwrap();
            answer.await
        };
        while let Err(error) = again().await {
            assert_eq!(error.reason(), Some(h2::Reason::REFUSED_STREAM), "{error}");
        }
    });
    let until = base::clock::Deadline::after(std::time::Duration::from_secs(30));
    while held() > 0 {
        assert!(!until.passed(), "{} bytes are held", held());
        std::thread::yield_now();
    }
}
