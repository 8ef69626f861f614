//! A client that has vanished is noticed.

use super::*;

#[tokio::test]
async fn the_kernel_watches_each_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (_client, accepted) = tokio::join!(TcpStream::connect(at), listener.accept());
    let stream = accepted.unwrap().0;
    let socket = SockRef::from(&stream);
    watch_client(SockRef::from(&stream)).unwrap();
    assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_IDLE);
    assert_eq!(socket.tcp_user_timeout().unwrap(), Some(SEND_TIME_MAX));
}
