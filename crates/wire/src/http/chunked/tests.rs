//! Bodies in chunks, cut at every byte, and what is none.

use super::*;

/// Decodes what comes in pieces of `piece` bytes; the data and how many bytes the body took.
fn decode(text: &[u8], piece: usize) -> Result<(Vec<u8>, usize), ChunkError> {
    let (mut chunks, mut data, mut at) = (Chunks::default(), Vec::new(), 0);
    while !chunks.has_ended() && at < text.len() {
        let end = text.len().min(at + piece);
        match chunks.step(&text[at..end])? {
            ChunkStep::Skip(n) => at += n,
            ChunkStep::Data(n) => {
                data.extend_from_slice(&text[at..at + n]);
                at += n;
            }
            ChunkStep::End => break,
        }
    }
    if chunks.has_ended() { Ok((data, at)) } else { Err(ChunkError) }
}

#[test]
fn data_is_found_whatever_the_pieces() {
    let body = b"5\r\nhello\r\n00A;x=\"y\"\r\n, world---\r\n0\r\nT: 1\r\nU: 2\r\n\r\n";
    let text = [&body[..], b"GET /next"].concat();
    for piece in 1..text.len() {
        let (data, used) = decode(&text, piece).unwrap();
        assert_eq!((data.as_slice(), used), (&b"hello, world---"[..], body.len()), "{piece}");
    }
    assert_eq!(decode(b"0\r\n\r\n", 9).unwrap(), (Vec::new(), 5));
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    for text in [
        &b"5\nhello\r\n0\r\n\r\n"[..],
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"\r\n0\r\n\r\n",
        b"-1\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"0000000000000000005\r\nhello\r\n0\r\n\r\n",
        b"5;a\nb\r\nhello\r\n0\r\n\r\n",
        b"0\r\nT: 1\n\r\n",
        b"0\r\n\rX",
    ] {
        assert_eq!(decode(text, 64), Err(ChunkError), "{:?}", String::from_utf8_lossy(text));
    }
    let long =
        [b"5;".as_slice(), &[b'a'; HTTP_CHUNK_LINE_MAX + 2], b"\r\nhello\r\n0\r\n\r\n"].concat();
    assert_eq!(decode(&long, 64), Err(ChunkError));
    let long = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(HTTP_HEAD_MAX), b"\r\n"].concat();
    assert_eq!(decode(&long, 64), Err(ChunkError));
}
