//! Listings that stopped and can continue where they were ([`super::list`]), over all back ends of
//! this process. Each holds a descriptor and a buffer, so there are at most [`DIR_STREAMS_MAX`]: a
//! client that begins to list one directory after the other has them take each other's place. A
//! listing without its stream seeks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use base::limits::{DIR_STREAMS_MAX, DIR_STREAMS_PER_NODE};

use crate::host::lock::lock;
use crate::host::node::Node;
use crate::host::stream::Stream;

/// Streams in the order in which they were parked. One that was taken since is still in it.
static PARKED: Mutex<VecDeque<(Weak<Node>, u64)>> = Mutex::new(VecDeque::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Parks a stream of a directory; the oldest of this directory, or of all, may go for it.
pub fn park(dir: &Arc<Node>, mut stream: Stream) {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    (stream.idle, stream.parked) = (false, number);
    let gone = {
        let mut parked = lock(&dir.streams);
        parked.push(stream);
        (parked.len() > DIR_STREAMS_PER_NODE).then(|| parked.remove(0))
    };
    let oldest = {
        let mut parked = lock(&PARKED);
        parked.push_back((Arc::downgrade(dir), number));
        (parked.len() > DIR_STREAMS_MAX).then(|| parked.pop_front()).flatten()
    };
    // Neither lock is held while a descriptor is closed.
    drop(gone);
    let Some((dir, number)) = oldest else { return };
    let Some(dir) = dir.upgrade() else { return };
    let mut streams = lock(&dir.streams);
    let place = streams.iter().position(|stream| stream.parked == number);
    let gone = place.map(|place| streams.remove(place));
    drop(streams);
    drop(gone);
}
