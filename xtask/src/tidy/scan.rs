//! A scanner that knows just enough of Rust: it blanks comments and literals, and finds functions
//! by matching braces. Line numbers stay what they were.

/// What a piece of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Comment,
    /// A string literal with its prefix and quotes.
    String,
    Character,
    Code,
}

/// The pieces of a file in order: what each is, and its bytes.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = (Piece, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let next = bytes.get(at + 1);
        let (piece, end) = match bytes.get(at)? {
            b'/' if next == Some(&b'/') => (Piece::Comment, line_end(bytes, at)),
            b'/' if next == Some(&b'*') => (Piece::Comment, comment_end(bytes, at)),
            b'"' => (Piece::String, string_end(bytes, at)),
            b'r' if !after_word(bytes, at) => raw(bytes, at, at),
            b'b' if !after_word(bytes, at) && next == Some(&b'r') => raw(bytes, at, at + 1),
            b'\'' => (Piece::Character, char_end(bytes, at)),
            _ => (Piece::Code, at + 1),
        };
        let start = std::mem::replace(&mut at, end);
        Some((piece, start..end))
    })
}

/// A raw string with its `r` at `r`, or a byte of code.
fn raw(bytes: &[u8], at: usize, r: usize) -> (Piece, usize) {
    raw_end(bytes, r).map_or((Piece::Code, at + 1), |end| (Piece::String, end))
}

/// `text` with the content of comments, strings and characters replaced by spaces.
pub fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    // The quote of a lifetime stays.
    for (_, range) in
        pieces(bytes).filter(|(piece, range)| *piece != Piece::Code && range.len() > 1)
    {
        for byte in out[range].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    }
    // Only whole literals were blanked, and those end at character boundaries.
    String::from_utf8_lossy(&out).into_owned()
}

/// The pieces of a kind, each with the line that it begins in.
fn texts(text: &str, wanted: Piece) -> Vec<(usize, &str)> {
    let (mut found, mut line) = (Vec::new(), 1);
    for (piece, range) in pieces(text.as_bytes()) {
        let Some(part) = text.get(range) else { continue };
        if piece == wanted {
            found.push((line, part));
        }
        line += part.matches('\n').count();
    }
    found
}

/// The string literals of `text` with their lines; escapes stay, continued lines are joined.
pub fn literals(text: &str) -> Vec<(usize, String)> {
    let strings = texts(text, Piece::String).into_iter();
    let inner = |literal: &str| {
        literal.trim_start_matches(['b', 'r']).trim_matches(['"', '#']).replace("\\\n", " ")
    };
    strings.map(|(line, literal)| (line, inner(literal))).collect()
}

/// The comments of `text`, line by line, without their marks.
pub fn comments(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, comment) in texts(text, Piece::Comment) {
        for (more, text) in comment.split('\n').enumerate() {
            let text = text.trim_start_matches(['/', '!', '*', ' ']).trim_end_matches(['*', '/']);
            found.push((line + more, text.to_owned()));
        }
    }
    found
}

fn after_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n)
}

fn comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i + 1 < bytes.len() {
        match (bytes[i], bytes[i + 1]) {
            (b'/', b'*') => (depth, i) = (depth + 1, i + 2),
            (b'*', b'/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut i = at + 1;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    bytes.len()
}

/// End of a raw string that starts with the `r` at `at`; `None` when it is something else.
fn raw_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|b| **b == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let body = &bytes[open + 1..];
    let found = body.windows(close.len()).position(|w| w == close.as_slice());
    Some(found.map_or(bytes.len(), |n| open + 1 + n + close.len()))
}

/// End of a character literal, or the next byte when the quote begins a lifetime.
fn char_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at + 1) {
        Some(b'\\') => {
            let mut i = at + 3;
            while i < bytes.len() && bytes[i] != b'\'' {
                i += 1;
            }
            (i + 1).min(bytes.len())
        }
        Some(first) => {
            let length = match first {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            if bytes.get(at + 1 + length) == Some(&b'\'') { at + 2 + length } else { at + 1 }
        }
        None => at + 1,
    }
}

/// A function and the lines from `fn` to its closing brace.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line of `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub length: usize,
}

/// The functions with a body in blanked code.
pub fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut line = 1;
    for at in 0..bytes.len() {
        if bytes[at] == b'\n' {
            line += 1;
        }
        let is_fn = bytes[at..].starts_with(b"fn ") && !after_word(bytes, at);
        if is_fn
            && let Some(name) = word_at(bytes, at + 3)
            && let Some(open) = body_open(bytes, at)
        {
            let close = matching(bytes, open);
            let length = 1 + bytes[at..close].iter().filter(|b| **b == b'\n').count();
            found.push(Function { name, line, length });
        }
    }
    found
}

fn word_at(bytes: &[u8], at: usize) -> Option<String> {
    let word: Vec<u8> = bytes[at..].iter().copied().take_while(|b| is_word(*b)).collect();
    (!word.is_empty()).then(|| String::from_utf8_lossy(&word).into_owned())
}

/// Position of the `{` that opens a function's body; `None` for a mere signature.
fn body_open(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(i),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn matching(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0;
    for (i, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    bytes.len()
}
