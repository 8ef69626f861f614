//! What the kernel holds of a connection without having sent it follows the rate of the peer.

use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;

/// Both ends of a connection, the server's as a listener prepares it.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let at = listener.local_addr().expect("its address");
    let (client, server) = tokio::join!(TcpStream::connect(at), listener.accept());
    let server = server.expect("accepted").0;
    limit_unsent(SockRef::from(&server));
    (client.expect("connected"), server)
}

#[test]
fn it_is_what_the_peer_takes_in_a_few_milliseconds() {
    for (rate, bytes) in [
        (0, SOCKET_UNSENT_MIN),
        // 25 and 200 Mbit/s, 1 and 100 Gbit/s.
        (3_000_000, SOCKET_UNSENT_MIN),
        (25_000_000, 128 << 10),
        (125_000_000, 1 << 20),
        (12_500_000_000, SOCKET_UNSENT_MAX),
        (u64::MAX, SOCKET_UNSENT_MAX),
    ] {
        assert_eq!(unsent_at(rate) as usize, bytes, "{rate}");
    }
}

#[tokio::test]
async fn a_socket_holds_little_that_is_not_sent() {
    const SIZE: usize = 8 << 20;
    let (mut client, server) = pair().await;
    /// The largest packet of the kernel.
    const PACKET: usize = 64 << 10;
    // What the client's kernel receives before the client does.
    let received = SockRef::from(&client).recv_buffer_size().expect("its size");
    let (data, mut taken) = (vec![0; SIZE], 0);
    server.writable().await.expect("room");
    while let Ok(count) = server.try_write(&data) {
        taken += count;
    }
    let unsent = taken.saturating_sub(received);
    assert!(unsent <= SOCKET_UNSENT_MIN + PACKET, "{taken} bytes, {received} at the client");
    // A peer that takes all of it at once may have more in flight.
    let mut peer = Peer::default();
    let both = tokio::join!(bytes(&server, &data, false, &mut peer), async {
        let mut read = vec![0; taken + SIZE];
        client.read_exact(&mut read).await
    });
    both.0.expect("sent");
    both.1.expect("received");
    let limit = SockRef::from(&server).tcp_notsent_lowat().expect("a limit") as usize;
    assert!((SOCKET_UNSENT_MIN..=SOCKET_UNSENT_MAX).contains(&limit), "{limit}");
    assert!(delivery_rate(&server) > 0);
}

#[tokio::test]
async fn requests_that_come_meanwhile_have_come_then() {
    /// More than the kernel holds at both ends when half of it is received.
    const SIZE: usize = 32 << 20;
    let (mut client, server) = pair().await;
    SockRef::from(&client).set_recv_buffer_size(64 << 10).expect("a small one");
    let (data, mut peer) = (vec![0; SIZE], Peer::default());
    let exchange = async {
        use tokio::io::AsyncWriteExt;
        let mut read = vec![0; SIZE / 2];
        client.read_exact(&mut read).await.expect("a half");
        client.write_all(&[1; 100]).await.expect("a request");
        client.read_exact(&mut read).await.expect("the rest");
    };
    tokio::join!(exchange, async { bytes(&server, &data, false, &mut peer).await.expect("sent") });
    let before = base::clock::stamp();
    peer.arrivals.received(100);
    assert!(peer.arrivals.at(0) < before, "it waited in the kernel");
}
