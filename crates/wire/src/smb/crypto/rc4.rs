//! RC4, with which NTLM carries the key of a session. It is broken; nothing else uses it.

/// A stream of bytes that others are combined with.
#[derive(Clone)]
pub struct Rc4 {
    state: [u8; 256],
    i: u8,
    j: u8,
}

impl Rc4 {
    /// The stream of a key of 1 to 256 bytes.
    pub fn new(key: &[u8]) -> Self {
        let mut state = [0; 256];
        for (at, byte) in state.iter_mut().enumerate() {
            *byte = at as u8;
        }
        let mut j = 0u8;
        for (i, key) in (0..=255u8).zip(key.iter().cycle()) {
            j = j.wrapping_add(state[usize::from(i)]).wrapping_add(*key);
            state.swap(usize::from(i), usize::from(j));
        }
        Self { state, i: 0, j: 0 }
    }

    /// Encrypts or decrypts, which is the same.
    pub fn apply(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.i = self.i.wrapping_add(1);
            let a = self.state[usize::from(self.i)];
            self.j = self.j.wrapping_add(a);
            let b = self.state[usize::from(self.j)];
            self.state.swap(usize::from(self.i), usize::from(self.j));
            *byte ^= self.state[usize::from(a.wrapping_add(b))];
        }
    }
}
