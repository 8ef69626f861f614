//! Arbitrary messages for tests, made out of a string of random bytes: what proptest shrinks is
//! that string, and borrowed members borrow from it.

/// Hands out parts of the random bytes; zeros when they are used up.
pub struct Gen<'a> {
    rest: &'a [u8],
}

/// Something that random bytes can be turned into.
pub trait Arb<'a>: Sized {
    /// Makes one.
    fn arb(g: &mut Gen<'a>) -> Self;
}

impl<'a> Gen<'a> {
    /// Draws from `entropy`.
    pub fn new(entropy: &'a [u8]) -> Self {
        Self { rest: entropy }
    }

    /// The next value of any type.
    pub fn arb<T: Arb<'a>>(&mut self) -> T {
        T::arb(self)
    }

    /// Some bytes, at most `max` and mostly few.
    pub fn bytes(&mut self, max: usize) -> &'a [u8] {
        let want = match self.byte() {
            0 => max,
            n => usize::from(n) % 41,
        };
        self.take(want.min(max))
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Up to `max` items.
    pub fn list<T: Arb<'a>>(&mut self, max: usize) -> Vec<T> {
        let count = usize::from(self.byte()) % (max + 1);
        (0..count).map(|_| self.arb()).collect()
    }

    fn take(&mut self, want: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at(want.min(self.rest.len()));
        self.rest = rest;
        head
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let got = self.take(N);
        out[..got.len()].copy_from_slice(got);
        out
    }
}

impl Arb<'_> for u32 {
    fn arb(g: &mut Gen<'_>) -> Self {
        Self::from_be_bytes(g.array())
    }
}

impl Arb<'_> for u64 {
    fn arb(g: &mut Gen<'_>) -> Self {
        Self::from_be_bytes(g.array())
    }
}

impl Arb<'_> for bool {
    fn arb(g: &mut Gen<'_>) -> Self {
        g.byte() & 1 == 1
    }
}

impl Arb<'_> for () {
    fn arb(_: &mut Gen<'_>) -> Self {}
}

impl<const N: usize> Arb<'_> for [u8; N] {
    fn arb(g: &mut Gen<'_>) -> Self {
        g.array()
    }
}

impl Arb<'_> for i64 {
    fn arb(g: &mut Gen<'_>) -> Self {
        Self::from_be_bytes(g.array())
    }
}

impl<'a, T: Arb<'a>, const MAX: usize> Arb<'a> for crate::xdr::Seq<T, MAX> {
    fn arb(g: &mut Gen<'a>) -> Self {
        Self(g.list(MAX.min(3)))
    }
}

impl<'a, T: Arb<'a>> Arb<'a> for Option<T> {
    fn arb(g: &mut Gen<'a>) -> Self {
        if g.arb() { Some(g.arb()) } else { None }
    }
}

mod messages;
