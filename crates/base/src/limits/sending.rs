//! Limits of sending: what the kernel holds of a connection, and how long an operation lasts of
//! which the reply has left the server and not arrived.

use std::time::Duration;

/// Bytes that the kernel may hold of a connection without having sent them (`TCP_NOTSENT_LOWAT`,
/// tcp(7)), at least: half of its largest packet, of which it takes the rest as well. They count as
/// sent in the latency of operations; with the 4 MiB of Linux (`tcp_wmem`) a read of 1 MiB over a
/// slow link would seem to take no time.
pub const SOCKET_UNSENT_MIN: usize = 32 << 10;
/// The same at most: what Linux gives a socket to send.
pub const SOCKET_UNSENT_MAX: usize = 4 << 20;
/// Between both it is what the peer takes in this time, so that a fast link does not run dry until
/// a busy core comes back to the connection, and a slow one hides no more of an operation.
pub const SOCKET_UNSENT_TIME: Duration = Duration::from_millis(5);
/// Bytes sent since the last operation of a connection from which on the server looks how much of
/// them the peer has not acknowledged: a smaller reply is one burst, and need not pay for a look.
pub const ACK_LOOK_BYTES: u64 = 16 << 10;
/// What the peer acknowledges within this time has arrived: between two looks nothing is known, and
/// timers are no finer. On a local network no operation waits for a look.
pub const ACK_LOOK_MIN: Duration = Duration::from_millis(2);
/// Between two looks at a connection at most: a rate that has risen is noticed.
pub const ACK_LOOK_MAX: Duration = Duration::from_millis(20);
/// Batches of operations of one connection that wait for an acknowledgement: what a socket holds is
/// at most as many large replies. Operations beyond them end when their reply was handed over.
pub const ACK_BATCHES_MAX: usize = 64;
/// How long a connection that the server has closed stays open until its last bytes are
/// acknowledged: some seconds of what a socket holds at 1 Mbit/s. The kernel sends them anyway.
pub const ACK_WAIT_MAX: Duration = Duration::from_secs(10);
