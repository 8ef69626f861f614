//! A server that is asked through its socket.

use super::*;
use std::io::{Read, Write};

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
    let mut api = QueriedServer::connect(ServerApi::Local(path.clone()), "iscsi").unwrap();
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
