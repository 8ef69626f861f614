//! Challenge responses: the requests of a CA, and the removal of the response with its order.

use std::net::Ipv4Addr;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

#[test]
fn an_address_is_asked_for_by_its_name_in_the_reverse_tree() {
    assert_eq!(asked_as("NAS.example."), "nas.example");
    assert_eq!(asked_as("192.0.2.7"), "7.2.0.192.in-addr.arpa");
    let six = asked_as("2001:db8::7");
    assert!(six.starts_with("7.0.0.0.") && six.ends_with("8.b.d.0.1.0.0.2.ip6.arpa"), "{six}");
}

#[test]
fn a_proof_goes_with_its_order() {
    let answers = Arc::new(Answers::default());
    let answer = answers.over_tls("NAS.example", &[7; 32]).unwrap();
    assert!(answers.certificate("nas.EXAMPLE").is_some());
    assert!(answers.certificate("other").is_none());
    drop(answer);
    assert!(answers.certificate("nas.example").is_none());
    assert!(answers.over_tls("nas", &[7; 31]).is_err(), "no digest");
}

async fn asked(at: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: nas\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn http_serves_the_tokens_and_nothing_else() {
    let answers = Arc::new(Answers::default());
    // A port that is free now, at an address that no other test takes ports of.
    let free = std::net::TcpListener::bind((Ipv4Addr::new(127, 0, 43, 3), 0)).unwrap();
    let at = free.local_addr().unwrap();
    drop(free);
    let listening = serve(at, answers.clone()).await.unwrap();
    let ask = async {
        let answer = answers.over_http("token", "token.thumb");
        let good = asked(at, "/.well-known/acme-challenge/token").await;
        assert!(
            good.starts_with("HTTP/1.1 200 ") && good.ends_with("\r\n\r\ntoken.thumb"),
            "{good}"
        );
        for path in ["/", "/.well-known/acme-challenge/other", "/.well-known/acme-challenge/"] {
            assert!(asked(at, path).await.starts_with("HTTP/1.1 404 "), "{path}");
        }
        drop(answer);
        let gone = asked(at, "/.well-known/acme-challenge/token").await;
        assert!(gone.starts_with("HTTP/1.1 404 "), "{gone}");
    };
    tokio::select! {
        () = ask => {}
        never = listening => match never {},
    }
}
