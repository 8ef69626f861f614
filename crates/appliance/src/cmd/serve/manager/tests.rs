//! The notifications that the service manager receives, by either kind of socket.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::send;

fn receives_ready(listener: &UnixDatagram, name: &str) {
    send(name.as_ref(), "READY=1").unwrap();
    let mut heard = [0; 32];
    let n = listener.recv(&mut heard).unwrap();
    assert_eq!(&heard[..n], b"READY=1");
}

#[test]
fn it_is_notified_by_path_and_by_abstract_name() {
    let path = std::env::temp_dir().join(format!("plimsoll-notify-{}", std::process::id()));
    receives_ready(&UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();

    let name = format!("plimsoll-notify-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    receives_ready(&UnixDatagram::bind_addr(&address).unwrap(), &format!("@{name}"));
}

#[test]
fn a_missing_socket_is_an_error_and_no_panic() {
    assert!(send("/nonexistent/notify".as_ref(), "READY=1").is_err());
}
