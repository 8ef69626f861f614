//! When a listener has ended, it has ended for all copies of its descriptor; and what the kernel
//! watches on the connections that it accepts.

use std::io::ErrorKind;
use std::net::Ipv4Addr;

use super::super::budget::Limits;
use super::*;

#[tokio::test]
async fn it_does_not_listen_any_more_although_a_copy_of_the_descriptor_is_open() {
    // No other test takes ports of this address.
    let listener = listen(SocketAddr::from((Ipv4Addr::new(127, 0, 43, 4), 0))).unwrap();
    let at = listener.local_addr().unwrap();
    let copy = listener.try_clone().unwrap();
    let (end, ending) = watch::channel(false);
    let budgets = Arc::new(Budgets::new(Limits::default()));
    end.send_replace(true);
    accept((listener, ()), Vec::new(), budgets, ending).await.unwrap();
    assert_eq!(TcpStream::connect(at).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    listen(at).expect("the port is free");
    drop(copy);
}

#[tokio::test]
async fn a_peer_that_has_vanished_is_noticed_on_every_accepted_connection() {
    let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let at = listener.local_addr().unwrap();
    let (end, ending) = watch::channel(false);
    let budgets = Arc::new(Budgets::new(Limits::default()));
    let (queue, mut accepted) = mpsc::channel(1);
    let accepting = accept((listener, ()), vec![queue], budgets, ending);
    let both = async {
        let _client = tokio::net::TcpStream::connect(at).await.unwrap();
        let (one, ()) = accepted.recv().await.unwrap();
        let socket = SockRef::from(&one.stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_IDLE);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(SEND_TIME_MAX));
        assert!(socket.tcp_nodelay().unwrap());
        end.send_replace(true);
    };
    tokio::join!(async { accepting.await.unwrap() }, both);
}
