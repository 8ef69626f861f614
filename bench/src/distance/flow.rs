//! The rate on the line while a job's bytes flow: from the moment at which a tenth of them have
//! crossed it to that at which nine tenths have. Sign-in, slow start of connections, and the end of
//! the transfer do not count.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use base::clock::{NS_PER_S, monotonic_ns};
use lab::bridge::control::Request;
use lab::bridge::scene;

#[cfg(test)]
mod tests;

/// Interval at which the bridge is queried.
const EVERY: Duration = Duration::from_millis(250);
/// Shortest time between the two moments, in nanoseconds: for less there are too few samples.
const SHORTEST_NS: u64 = 2 * NS_PER_S;

/// When, in nanoseconds, and how many bytes had crossed the line there by then.
pub type Sample = (u64, u64);

/// Runs a task while a bridge is watched.
pub fn watched<R>(link: &scene::Scene, work: impl FnOnce() -> R) -> (R, Vec<Sample>) {
    std::thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        let asks = scope.spawn(move || ask(link, &ended));
        let done = work();
        drop(end);
        (done, asks.join().unwrap_or_default())
    })
}

fn ask(link: &scene::Scene, ended: &Receiver<()>) -> Vec<Sample> {
    let mut samples = Vec::new();
    while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        // One that does not respond is noticed at the end of the turn.
        let bytes = link.ask(&Request::Show).ok().and_then(|it| it["forth"]["bytes_out"].as_u64());
        samples.extend(bytes.map(|bytes| (monotonic_ns(), bytes)));
    }
    samples
}

/// Bits per second of whole packets between the two moments; `None` if these are too close to each
/// other.
pub fn rate(samples: &[Sample]) -> Option<f64> {
    let all = samples.last()?.1;
    let (low, high) = (all / 10, all - all / 10);
    let (from, to) = (moment(samples, low)?, moment(samples, high)?);
    let took = to.checked_sub(from).filter(|took| *took >= SHORTEST_NS)?;
    Some((high - low) as f64 * 8.0 * NS_PER_S as f64 / took as f64)
}

/// When this many bytes had crossed, interpolated linearly between two samples.
fn moment(samples: &[Sample], bytes: u64) -> Option<u64> {
    let next = samples.iter().position(|sample| sample.1 >= bytes)?;
    let (then, had) = samples.get(next.checked_sub(1)?)?;
    let (now, has) = samples.get(next)?;
    let part = (bytes - had) as f64 / (has - had).max(1) as f64;
    Some(then + ((now - then) as f64 * part) as u64)
}
