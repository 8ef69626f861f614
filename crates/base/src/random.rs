//! Randomness comes in through here: from the kernel in service, from a seed in a test.

/// A source of random numbers. Not for keys unless it is [`SystemRandom`].
pub trait Random: Send {
    /// The next 64 random bits.
    fn next_u64(&mut self) -> u64;

    /// A number below `bound` (0 when `bound` is 0), with a bias below 2^-32 for small bounds.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Fills `out` with random bytes.
    fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// The kernel's generator, for keys, verifiers and tokens.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn next_u64(&mut self) -> u64 {
        let mut word = [0; 8];
        self.fill(&mut word);
        u64::from_le_bytes(word)
    }

    fn fill(&mut self, out: &mut [u8]) {
        let mut done = 0;
        while done < out.len() {
            let rest = &mut out[done..];
            // SAFETY: the pointer and length describe `rest`, which outlives the call.
            let n = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
            match n {
                n if n > 0 => done += n as usize,
                // Interrupted before the pool was ready: ask again. Nothing else can happen to
                // a valid buffer, and there is no safe way on without keys.
                _ => std::thread::yield_now(),
            }
        }
    }
}

/// SplitMix64: small, fast, the same on every machine for the same seed.
#[derive(Debug, Clone)]
pub struct SeededRandom {
    state: u64,
}

impl SeededRandom {
    /// A generator that repeats itself for the same `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }
}

impl Random for SeededRandom {
    fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
