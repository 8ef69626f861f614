//! The ASCII type: lines end with CR LF on the wire (RFC 959 §3.1.1.1) and with LF in files.

/// What the last byte of one piece means for the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    return_last: bool,
}

impl Ends {
    /// Appends a piece of a file to `out` in ASCII type: LF becomes CR LF, unless the file has that
    /// already.
    pub fn outward(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        for line in piece.split_inclusive(|b| *b == b'\n') {
            match line.split_last() {
                Some((b'\n', before)) => {
                    let there = before.last().map_or(self.return_last, |last| *last == b'\r');
                    out.extend_from_slice(before);
                    out.extend_from_slice(if there { b"\n" } else { b"\r\n" });
                    self.return_last = false;
                }
                Some((last, _)) => {
                    out.extend_from_slice(line);
                    self.return_last = *last == b'\r';
                }
                None => {}
            }
        }
    }

    /// How many bytes [`Ends::outward`] would put out.
    pub fn wire_len(&mut self, piece: &[u8]) -> u64 {
        let mut len = piece.len() as u64;
        for byte in piece {
            len += u64::from(*byte == b'\n' && !self.return_last);
            self.return_last = *byte == b'\r';
        }
        len
    }

    /// Puts what came from the wire behind `out` as it goes into a file: CR LF becomes LF. A CR at
    /// the end is kept back until it is known what follows it.
    pub fn inward(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let mut rest = piece;
        while let Some((first, after)) = rest.split_first() {
            if std::mem::take(&mut self.return_last) && *first != b'\n' {
                out.push(b'\r');
            }
            if *first == b'\r' {
                self.return_last = true;
                rest = after;
                continue;
            }
            let run = rest.iter().position(|b| *b == b'\r').unwrap_or(rest.len());
            let (plain, after) = rest.split_at(run);
            out.extend_from_slice(plain);
            rest = after;
        }
    }

    /// The retained CR, when nothing follows.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.return_last) {
            out.push(b'\r');
        }
    }
}
