//! Time comes in through here, so that a test can hand in its own.
//!
//! The request path stamps with [`stamp`]: the processor's cycle counter where it is invariant,
//! scaled to nanoseconds of the wall clock; a stamp costs a few nanoseconds and no system call.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// A source of time. Pure state machines take one of these, or plain nanoseconds.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary start; never goes back.
    fn monotonic_ns(&self) -> u64;
    /// Nanoseconds since the Unix epoch.
    fn wall_ns(&self) -> u64;
}

/// The machine's own clocks.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn monotonic_ns(&self) -> u64 {
        monotonic_ns()
    }
    fn wall_ns(&self) -> u64 {
        wall_ns()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `now_ns` on both faces.
    pub fn at(now_ns: u64) -> Self {
        Self { now_ns: AtomicU64::new(now_ns) }
    }
    /// Moves both faces forward.
    pub fn advance(&self, by: Duration) {
        self.now_ns.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn monotonic_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }
    fn wall_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }
}

/// `CLOCK_REALTIME` in nanoseconds since the epoch.
pub fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

/// `CLOCK_MONOTONIC` in nanoseconds since the first call in this process.
pub fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A moment of this process's clock until which something is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    at_ns: u64,
}

impl Deadline {
    /// The moment that lies `wait` ahead; one too far to be counted is never reached.
    pub fn after(wait: Duration) -> Self {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        Self { at_ns: monotonic_ns().saturating_add(wait_ns) }
    }
    /// Whether it has passed.
    pub fn passed(self) -> bool {
        monotonic_ns() >= self.at_ns
    }
    /// The time until then, `None` when it has passed.
    pub fn left(self) -> Option<Duration> {
        let left_ns = self.at_ns.saturating_sub(monotonic_ns());
        (left_ns > 0).then(|| Duration::from_nanos(left_ns))
    }
}

/// Distance of two readings of a clock up to which another one that was read between them has the
/// same moment, ns: undisturbed it takes less, and a thread that loses its processor is away for
/// many times as long.
const TOGETHER_NS: u64 = 1_000;
/// Readings of two clocks until the nearest are taken.
const TOGETHER_TRIES: u32 = 16;

/// Two clocks at one moment. A thread can lose its processor between two readings, for tens of
/// milliseconds on a busy machine: the first clock is read before and after the second, and again
/// until both readings are at most `near` apart.
fn together(
    mut first: impl FnMut() -> u64,
    mut second: impl FnMut() -> u64,
    near: u64,
) -> (u64, u64) {
    let mut read = || {
        let (before, other) = (first(), second());
        let apart = first().wrapping_sub(before);
        (apart, (before.wrapping_add(apart / 2), other))
    };
    let mut best = read();
    for _ in 1..TOGETHER_TRIES {
        if best.0 <= near {
            break;
        }
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// The wall clock's time at which another clock of nanoseconds, which is read by `clock`, showed or
/// will show `at_ns`.
pub fn wall_ns_at(clock: impl FnMut() -> u64, at_ns: u64) -> u64 {
    let (now, wall) = together(clock, wall_ns, TOGETHER_NS);
    wall.saturating_add_signed(at_ns.wrapping_sub(now) as i64)
}

/// How cycle counts become wall nanoseconds: `ns = (cycles * mult) >> 32 + offset`.
struct Scale {
    mult: u64,
    start_cycles: u64,
}

/// What stamps are read from.
enum Stamps {
    Cycles(Scale),
    /// The cycle counter is not invariant.
    Wall,
    /// Of a test.
    Manual,
}

static STAMPS: OnceLock<Stamps> = OnceLock::new();
/// The time of [`Stamps::Manual`].
static MANUAL_NS: AtomicU64 = AtomicU64::new(0);
/// Wall time at `start_cycles`; moved by [`discipline`] only.
static OFFSET_NS: AtomicI64 = AtomicI64::new(0);

/// How long the cycle counter is watched at start; 10 ms give 1 part in 100 000 or better.
const CALIBRATION: Duration = Duration::from_millis(10);

/// Beyond this the wall clock was stepped and the stamps follow at once; below it, they drift
/// along so that no second is repeated.
const STEP_NS: i64 = 50_000_000;

/// Measures the cycle counter. Called once at start; [`stamp`] works without it, but slower.
pub fn calibrate() {
    STAMPS.get_or_init(|| measure().map_or(Stamps::Wall, Stamps::Cycles));
    discipline();
}

/// Wall time in nanoseconds since the epoch, cheaply. Agrees with [`wall_ns`] to some
/// microseconds after [`discipline`], and never goes back between two of its calls on a core
/// unless the wall clock was stepped.
#[inline]
pub fn stamp() -> u64 {
    match STAMPS.get() {
        Some(Stamps::Cycles(scale)) => {
            (since_start(scale, cycles()) as i64 + OFFSET_NS.load(Ordering::Relaxed)) as u64
        }
        Some(Stamps::Manual) => MANUAL_NS.load(Ordering::SeqCst),
        Some(Stamps::Wall) | None => wall_ns(),
    }
}

/// Has all stamps of this process show `now_ns` until they are moved ([`advance_stamps`]): for a
/// test in a process of its own. False if they are read from another clock already.
pub fn stop_stamps(now_ns: u64) -> bool {
    MANUAL_NS.store(now_ns, Ordering::SeqCst);
    matches!(STAMPS.get_or_init(|| Stamps::Manual), Stamps::Manual)
}

/// Moves stamps forward that were stopped.
pub fn advance_stamps(by: Duration) {
    MANUAL_NS.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
}

/// Brings the stamps back to the wall clock; called once a second, off the request path.
/// Returns how far they were off, in nanoseconds.
pub fn discipline() -> i64 {
    let Some(Stamps::Cycles(scale)) = STAMPS.get() else { return 0 };
    let since = || since_start(scale, cycles());
    let (since, wall) = together(since, wall_ns, TOGETHER_NS);
    let wanted = wall as i64 - since as i64;
    let have = OFFSET_NS.load(Ordering::Relaxed);
    let off = wanted - have;
    // A small lead is taken back slowly, so that two stamps do not change places.
    let by = if off.abs() > STEP_NS || have == 0 || off > 0 { off } else { off / 16 };
    OFFSET_NS.store(have + by, Ordering::Relaxed);
    off
}

#[inline]
fn since_start(scale: &Scale, cycles: u64) -> u64 {
    let passed = cycles.wrapping_sub(scale.start_cycles);
    ((u128::from(passed) * u128::from(scale.mult)) >> 32) as u64
}

fn measure() -> Option<Scale> {
    if !invariant() {
        return None;
    }
    let start = Instant::now();
    let elapsed = || start.elapsed().as_nanos() as u64;
    let (t0, c0) = together(elapsed, cycles, TOGETHER_NS);
    while start.elapsed() < CALIBRATION {
        std::hint::spin_loop();
    }
    let (t1, c1) = together(elapsed, cycles, TOGETHER_NS);
    let ran = c1.checked_sub(c0).filter(|n| *n > 0)?;
    let mult = (u128::from(t1.saturating_sub(t0)) << 32) / u128::from(ran);
    Some(Scale { mult: u64::try_from(mult).ok()?, start_cycles: c0 })
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn cycles() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and has no side effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
fn invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    // CPUID 0x80000007 EDX bit 8: the counter runs at one rate in all states.
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant() -> bool {
    false
}

#[cfg(test)]
mod tests;
