//! Where the time of an operation went: its latency divided among phases, in eight bytes.
//!
//! A record keeps parts of its latency, not times: they always add up to it, and an operation of
//! microseconds has the same precision as one of minutes.

/// What an operation does, or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Phase {
    /// It waits to begin, or for its client: what is in no other phase.
    Queue,
    /// It runs on the thread of its connection.
    Inline,
    /// It waits for a thread of the pool.
    PoolWait,
    /// It runs on a thread of the pool.
    Pool,
    /// It waits until what it has changed is on disk.
    Flush,
    /// Its reply is ready and has not left, or has not arrived.
    Send,
}

impl Phase {
    /// All of them, in the order in which an operation has them.
    pub const ALL: [Self; 6] =
        [Self::Queue, Self::Inline, Self::PoolWait, Self::Pool, Self::Flush, Self::Send];

    /// Its name in filters.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Inline => "inline",
            Self::PoolWait => "pool-wait",
            Self::Pool => "pool",
            Self::Flush => "flush",
            Self::Send => "send",
        }
    }

    /// What it is, for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Queue => "queued",
            Self::Inline => "inline",
            Self::PoolWait => "waiting for the pool",
            Self::Pool => "pool",
            Self::Flush => "flush",
            Self::Send => "send",
        }
    }

    /// The phase of this name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.id() == id || phase.label() == id)
    }
}

/// Parts that a latency is divided into: 0.02 % each, and five of them fit into a word.
pub const PARTS: u64 = (1 << BITS) - 1;
const BITS: u32 = 12;
/// Phases that are kept: the first has the rest.
const KEPT: usize = Phase::ALL.len() - 1;
const _: () = assert!(BITS as usize * KEPT <= 64);

/// The parts of one latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseParts(u64);

impl PhaseParts {
    /// Of a latency of which this many nanoseconds went to the phases behind the first, in their
    /// order. What they have together beyond the latency is cut off from the end.
    #[inline]
    pub fn of(latency_ns: u64, ns: [u64; KEPT]) -> Self {
        if latency_ns == 0 {
            return Self::default();
        }
        // Sums are rounded, not the phases: no error adds up. 24 bits are enough for 12.
        let scale = PARTS as f32 / latency_ns as f32;
        let (mut bits, mut sum_ns, mut before) = (0, 0_u64, 0);
        for (n, ns) in ns.into_iter().enumerate() {
            sum_ns = sum_ns.saturating_add(ns).min(latency_ns);
            let upto = ((sum_ns as f32 * scale + 0.5) as u64).min(PARTS);
            bits |= (upto - before) << (BITS as usize * n);
            before = upto;
        }
        Self(bits)
    }

    /// All of it in one phase.
    pub const fn all_in(phase: Phase) -> Self {
        match phase as u32 {
            0 => Self(0),
            n => Self(PARTS << (BITS * (n - 1))),
        }
    }

    /// As a word of a record.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// From a word of a record.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The parts of the phases behind the first.
    #[inline]
    pub fn kept(self) -> [u64; KEPT] {
        std::array::from_fn(|n| self.0 >> (BITS as usize * n) & PARTS)
    }

    /// How many of [`PARTS`] each phase has.
    #[inline]
    pub fn parts(self) -> [u64; Phase::ALL.len()] {
        let kept = self.kept();
        let rest = PARTS.saturating_sub(kept.iter().sum());
        std::array::from_fn(|n| n.checked_sub(1).map_or(rest, |n| kept[n]))
    }

    /// How many of [`PARTS`] a phase has.
    pub fn part(self, phase: Phase) -> u64 {
        self.parts()[phase as usize]
    }

    /// How many nanoseconds of a latency each phase has; together the latency.
    pub fn ns(self, latency_ns: u64) -> [u64; Phase::ALL.len()] {
        let (mut sum, mut before) = (0, 0);
        self.parts().map(|parts| {
            sum += parts;
            let upto = (u128::from(latency_ns) * u128::from(sum) / u128::from(PARTS)) as u64;
            std::mem::replace(&mut before, upto).abs_diff(upto)
        })
    }
}

/// The time of an operation in progress: what each phase had so far, and since when it is in the
/// present one. It reads no clock itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseClock {
    since_ns: u64,
    /// From [`Phase::Inline`] to [`Phase::Flush`].
    ns: [u64; KEPT - 1],
}

impl PhaseClock {
    /// Of an operation that came at `arrived_ns`, and is queued since.
    #[inline]
    pub const fn new(arrived_ns: u64) -> Self {
        Self { since_ns: arrived_ns, ns: [0; KEPT - 1] }
    }

    /// It continues at `now_ns`: until then it was queued.
    #[inline]
    pub const fn resume(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
    }

    /// It was in `phase` until `now_ns`.
    #[inline]
    pub fn spent(&mut self, phase: Phase, now_ns: u64) {
        let spent_ns = now_ns.saturating_sub(self.since_ns);
        if let Some(ns) = (phase as usize).checked_sub(1).and_then(|n| self.ns.get_mut(n)) {
            *ns = ns.saturating_add(spent_ns);
        }
        self.since_ns = now_ns;
    }

    /// A part of it has run elsewhere, with a clock of its own.
    pub fn add(&mut self, part: &Self) {
        self.ns.iter_mut().zip(part.ns).for_each(|(ns, more)| *ns = ns.saturating_add(more));
    }

    /// The same once its reply is being sent: so long it was not.
    pub fn add_while_sending(&mut self, part: &Self) {
        self.add(part);
        self.since_ns = self.since_ns.saturating_add(part.ns.iter().sum());
    }

    /// What its latency was spent with, if its reply left at `done_ns`: since it was ready, with
    /// sending.
    #[inline]
    pub fn parts(&self, latency_ns: u64, done_ns: u64) -> PhaseParts {
        let [inline, wait, pool, flush] = self.ns;
        let send = done_ns.saturating_sub(self.since_ns);
        PhaseParts::of(latency_ns, [inline, wait, pool, flush, send])
    }
}

#[cfg(test)]
mod tests;
