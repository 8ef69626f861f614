//! Answers of the API, as they come over a socket.

use super::*;

#[test]
fn plain_and_chunked_answers() {
    let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"pid\":7}";
    assert_eq!(body(plain).unwrap()["pid"], 7);
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        4\r\n{\"pi\r\n5;x=y\r\nd\":7}\r\n0\r\n\r\n";
    assert_eq!(body(chunked).unwrap()["pid"], 7);
    assert_eq!(body(b"HTTP/1.1 401 No\r\n\r\n{}"), None);
    assert_eq!(
        body(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
        None
    );
    assert_eq!(body(b"nonsense"), None);
}

#[test]
fn a_server_is_asked_through_its_socket() {
    let path = std::env::temp_dir().join(format!("plimsoll-api-{}.sock", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        // The status, then six statistics.
        let answer = |_| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let n = stream.read(&mut request).unwrap();
            let pid = std::process::id();
            write!(stream, "HTTP/1.1 200 OK\r\n\r\n{{\"pid\":{pid}}}").unwrap();
            String::from_utf8_lossy(&request[..n]).into_owned()
        };
        (0..7).map(answer).collect::<Vec<_>>()
    });
    let mut api = LocalApi::connect(path.clone(), "iscsi").unwrap();
    let found = api.statistics(10.0, 12.0);
    let asked = server.join().unwrap();
    assert!(asked[0].starts_with("GET /api/v1/status HTTP/1.1\r\n"));
    // What the server saw of the operations that were measured, whatever their protocol.
    assert!(asked.iter().any(|path| path.contains("stat=iscsi.ops%5Blatency%5D&from=10&to=12")));
    assert!(found.contains_key("iscsi.ops[latency]"), "{found:?}");
    assert_eq!(api.describe().pid, Some(std::process::id()));
    // Its machine is seen by other means.
    assert!(api.sample().is_none());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn mean_of_a_latency_breakdown() {
    let data = serde_json::json!({"buckets": [
        {"low": 0, "high": 200, "average": 3.0}, {"low": 400, "high": 600, "average": 1.0}]});
    assert_eq!(mean_latency(&data), Some(200.0));
    assert_eq!(mean_latency(&serde_json::json!({"buckets": []})), None);
}
