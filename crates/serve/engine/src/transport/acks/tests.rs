//! When operations end of which the peer has yet to receive the replies.

use std::time::Duration;

use base::clock::Deadline;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// More than the client's kernel receives before the client does.
const REPLY: usize = 2 << 20;

/// Bytes per second that the server sends: the rate of loopback would take no time for a reply.
const RATE: u32 = 20 << 20;

/// Limits what a socket sends (`SO_MAX_PACING_RATE`, socket(7)).
fn limit_rate(socket: &TcpStream) {
    let (rate, length) = (RATE, size_of::<u32>() as libc::socklen_t);
    // SAFETY: the option is read from a local number of the length that is given.
    let done = unsafe {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const rate).cast(), length)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Both ends of a connection of which the server has sent a reply that the client does not read.
async fn sent(bytes: usize) -> (TcpStream, TcpStream, OpenAcks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let at = listener.local_addr().expect("its address");
    let (client, server) = tokio::join!(TcpStream::connect(at), listener.accept());
    let (client, server) = (client.expect("connected"), server.expect("accepted").0);
    let socket = socket2::SockRef::from(&server);
    socket.set_send_buffer_size(2 * REPLY).expect("room");
    limit_rate(&server);
    let acks = OpenAcks::new(&server);
    server.writable().await.expect("room");
    let taken = server.try_write(&vec![7; bytes]).expect("taken by the kernel");
    acks.get().count(taken);
    (client, server, acks)
}

/// What the client has yet to receive of these bytes. The kernel's rate is that of a burst, by
/// which they are received at once, until it has seen what the limit permits.
async fn not_received(acks: &OpenAcks, bytes: usize) -> InFlight {
    let until = Deadline::after(Duration::from_secs(60));
    loop {
        acks.get().count(bytes);
        if let Some(last) = acks.get().in_flight() {
            return last;
        }
        assert!(!until.passed(), "the client receives no more than fits its socket");
        tokio::time::sleep(ACK_LOOK_MIN).await;
    }
}

fn operation(number: u8) -> Operation {
    (1, PhaseClock::new(1), OpRecord { op: number, ..OpRecord::default() })
}

/// The operations of what a watch finds, once there are some.
async fn ended(watch: &AckWatch) -> Vec<Ended> {
    let until = Deadline::after(Duration::from_secs(60));
    loop {
        let left = until.left().expect("in time");
        tokio::time::timeout(left, watch.due()).await.expect("in time");
        let ended = watch.look();
        if !ended.is_empty() {
            return ended;
        }
    }
}

#[tokio::test]
async fn an_operation_lasts_until_the_peer_has_its_reply() {
    let (mut client, _server, acks) = sent(REPLY).await;
    let watch = Rc::<AckWatch>::default();
    let last = not_received(&acks, REPLY).await;
    watch.wait(acks.get(), &last, vec![operation(3)]);
    let before_ns = stamp();
    for _ in 0..3 {
        watch.due().await;
        assert!(watch.look().is_empty(), "the client has read nothing");
    }
    let unread_ns = stamp();
    let mut read = vec![0; REPLY / 2];
    let reads = async { while client.read(&mut read).await.expect("bytes") > 0 {} };
    let ended = tokio::select! {
        ended = ended(&watch) => ended,
        () = reads => panic!("the connection has ended"),
    };
    let [(done_ns, operations)] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(operations[..], [operation(3)]);
    assert!((before_ns..=stamp()).contains(done_ns) && *done_ns + 4_000_000 > unread_ns);
    assert!(!acks.get().are_awaited());
}

#[tokio::test]
async fn operations_end_at_once_where_the_reply_is_small_or_received() {
    let (_client, server, acks) = sent(ACK_LOOK_BYTES as usize - 1).await;
    assert!(acks.get().in_flight().is_none(), "one burst");
    let small = server.try_write(&vec![7; 64 << 10]).expect("taken by the kernel");
    acks.get().count(small);
    let until = Deadline::after(Duration::from_secs(60));
    while tcp_info::unacknowledged(server.as_raw_fd()) > 0 {
        assert!(!until.passed(), "the client's kernel receives it");
        tokio::task::yield_now().await;
    }
    assert!(acks.get().in_flight().is_none(), "received");
    let none = OpenAcks::default();
    none.get().count(REPLY);
    assert!(none.get().in_flight().is_none(), "no socket");
}

#[tokio::test]
async fn operations_end_with_their_connection() {
    let (client, server, acks) = sent(REPLY).await;
    let watch = Rc::<AckWatch>::default();
    for number in 0..2 {
        let last = not_received(&acks, REPLY).await;
        watch.wait(acks.get(), &last, vec![operation(number)]);
    }
    drop((server, acks));
    let ended = ended(&watch).await;
    let operations: Vec<_> = ended.into_iter().flat_map(|(_, operations)| operations).collect();
    assert_eq!(operations, [operation(0), operation(1)]);
    watch.look();
    assert!(watch.queues.borrow().is_empty());
    drop(client);
}

#[tokio::test]
async fn a_batch_for_each_place_and_no_more() {
    let (_client, _server, acks) = sent(REPLY).await;
    let watch = Rc::<AckWatch>::default();
    for _ in 0..ACK_BATCHES_MAX {
        let last = not_received(&acks, REPLY).await;
        watch.wait(acks.get(), &last, vec![operation(0)]);
    }
    assert!(acks.get().in_flight().is_none(), "counted when it was handed over");
}

#[tokio::test]
async fn a_closed_connection_stays_until_its_last_bytes_are_received_but_not_for_ever() {
    for reads in [true, false] {
        let (mut client, server, acks) = sent(REPLY).await;
        let wait_max = if reads { ACK_WAIT_MAX } else { Duration::from_millis(50) };
        let watch = Rc::new(AckWatch { wait_max, ..AckWatch::default() });
        let last = not_received(&acks, REPLY).await;
        watch.wait(acks.get(), &last, vec![operation(9)]);
        let held = Rc::new(());
        socket2::SockRef::from(&server).shutdown(std::net::Shutdown::Write).expect("closed");
        watch.close(server, acks, Box::new(Rc::clone(&held)));
        watch.look();
        assert_eq!(Rc::strong_count(&held), 2, "in flight");
        let all = async {
            let mut read = Vec::new();
            if reads {
                client.read_to_end(&mut read).await.expect("all of it");
                assert_eq!(read.len(), REPLY);
            }
        };
        let (ended, ()) = tokio::join!(ended(&watch), all);
        assert_eq!(ended.len(), 1);
        watch.look();
        assert_eq!(Rc::strong_count(&held), 1, "reads: {reads}");
    }
}
