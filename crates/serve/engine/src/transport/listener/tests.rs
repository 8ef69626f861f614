//! When a listener has ended, it has ended for all copies of its descriptor.

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
