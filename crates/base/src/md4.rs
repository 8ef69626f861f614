//! MD4 (RFC 1320), of which NTLM makes its hash of a password. It is broken; nothing else uses it.

/// The digest of a message.
pub fn digest(message: &[u8]) -> [u8; 16] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let (blocks, rest) = message.as_chunks::<64>();
    blocks.iter().for_each(|block| compress(&mut state, block));
    let mut last = rest.to_vec();
    last.push(0x80);
    last.resize(if last.len() <= 56 { 56 } else { 120 }, 0);
    last.extend_from_slice(&(message.len() as u64).wrapping_mul(8).to_le_bytes());
    last.as_chunks::<64>().0.iter().for_each(|block| compress(&mut state, block));
    let mut out = [0; 16];
    for (place, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *place = word.to_le_bytes();
    }
    out
}

/// Words of a block in the order of the second and of the third round.
const SECOND: [usize; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
const THIRD: [usize; 16] = [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15];

fn compress(state: &mut [u32; 4], block: &[u8; 64]) {
    let mut words = [0; 16];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..48 {
        let at = step % 16;
        let (mixed, word, shifts) = match step / 16 {
            0 => ((b & c) | (!b & d), words[at], [3, 7, 11, 19]),
            1 => {
                let most = (b & c) | (b & d) | (c & d);
                (most.wrapping_add(0x5a82_7999), words[SECOND[at]], [3, 5, 9, 13])
            }
            _ => ((b ^ c ^ d).wrapping_add(0x6ed9_eba1), words[THIRD[at]], [3, 9, 11, 15]),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(word).rotate_left(shifts[step % 4]);
        (a, b, c, d) = (d, sum, b, c);
    }
    for (word, new) in state.iter_mut().zip([a, b, c, d]) {
        *word = word.wrapping_add(new);
    }
}
