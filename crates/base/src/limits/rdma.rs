//! Limits of RPC over RDMA: headers, credits, registered memory. Part of [`super`], where all
//! others are.

use std::time::Duration;

use super::RPC_RECORD_MAX;

// --- wire: what a peer may send ---------------------------------------------------------------

/// Most segments of one chunk: 1 MiB in pages of 16 KiB. Linux registers it as one to nine.
pub const RDMA_SEGMENTS_MAX: usize = 64;
/// Most segments of the read list: a long call, and in addition data of WRITE.
pub const RDMA_READ_SEGMENTS_MAX: usize = 2 * RDMA_SEGMENTS_MAX;
/// Most chunks of the write list: one for each READ of a compound; Linux sends one.
pub const RDMA_WRITE_CHUNKS_MAX: usize = 16;
/// Most bytes of a call with parts that are read from the client: as many as a record may have.
pub const RDMA_CALL_MAX: usize = RPC_RECORD_MAX;

// --- verbs and serve: connections ---------------------------------------------------------------

/// Bytes of one SEND, both ways (the inline threshold): what Linux offers, so that most calls and
/// replies without data need no chunk.
pub const RDMA_INLINE: usize = 4096;
/// Bytes of one SEND to a client that offers nothing (RFC 8166 §3.3.2).
pub const RDMA_INLINE_DEFAULT: usize = 1024;
/// Most credits that one connection is granted: what Linux requests. Each is a posted receive.
pub const RDMA_CREDITS_MAX: u32 = 128;
/// Backchannel calls that a client may leave unanswered; each reply needs a posted receive.
pub const RDMA_BACK_CREDITS: u32 = 16;
/// Connections at once: with their receives they hold 160 MiB.
pub const RDMA_CONNECTIONS_MAX: usize = 256;
/// Of these, those of one address: as with other services it leaves a quarter to others.
pub const RDMA_CONNECTIONS_CLIENT_MAX: usize = RDMA_CONNECTIONS_MAX / 4 * 3;
/// A connection without a request for this time can be evicted for a new one when no permit is
/// left: a peer that has vanished sends nothing, and RDMA has no keepalive. Clients of Linux
/// disconnect when they have been idle for five minutes, and connect again for the next request.
pub const RDMA_IDLE_MIN: Duration = Duration::from_secs(60);
/// Evicted connections that have not ended yet, each with its receives: 10 MiB together.
pub const RDMA_CLOSING_MAX: usize = RDMA_CONNECTIONS_MAX / 16;
/// Most registered bytes, over all connections: beyond, connections are refused and calls wait.
pub const RDMA_REGISTERED_MAX: usize = 512 << 20;
/// Of these, those that the connections of one address hold for data in flight, in addition to
/// their receives. With a reply of 1.25 MiB more for each of its connections, and 120 MiB of
/// receives, it leaves some 50 MiB to others.
pub const RDMA_ADDRESS_BYTES_MAX: usize = 3 * RDMA_CONNECTION_BYTES_MAX;
/// Registered bytes that one connection may hold for data in flight, in addition to its receives.
pub const RDMA_CONNECTION_BYTES_MAX: usize = 32 << 20;
/// A device that has gone, or has not come yet, is looked for again after this time.
pub const RDMA_LISTEN_AGAIN: Duration = Duration::from_secs(5);
