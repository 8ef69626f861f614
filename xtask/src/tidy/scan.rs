//! A scanner that knows just enough of Rust: it blanks comments and literals, and finds functions
//! by matching braces. Line numbers stay what they were.

/// `text` with the content of comments, strings and characters replaced by spaces.
pub fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !after_word(bytes, at) => raw_end(bytes, at).unwrap_or(at + 1),
            b'b' if !after_word(bytes, at) && bytes.get(at + 1) == Some(&b'r') => {
                raw_end(bytes, at + 1).unwrap_or(at + 1)
            }
            b'\'' => char_end(bytes, at),
            _ => at + 1,
        };
        if end > at + 1 {
            for byte in &mut out[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        at = end;
    }
    // Only whole literals were blanked, and those end at character boundaries.
    String::from_utf8_lossy(&out).into_owned()
}

/// The string literals of `text` with their lines; escapes stay, continued lines are joined.
pub fn literals(text: &str) -> Vec<(usize, String)> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let string = match bytes[at] {
            b'"' => Some(string_end(bytes, at)),
            b'r' if !after_word(bytes, at) => raw_end(bytes, at),
            _ => None,
        };
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => comment_end(bytes, at),
            b'\'' => char_end(bytes, at),
            _ => string.unwrap_or(at + 1),
        };
        if string.is_some() {
            let line = 1 + bytes[..at].iter().filter(|b| **b == b'\n').count();
            let literal = String::from_utf8_lossy(&bytes[at..end.min(bytes.len())]);
            let literal = literal.trim_start_matches('r').trim_matches(['"', '#']);
            found.push((line, literal.replace("\\\n", " ")));
        }
        at = end;
    }
    found
}

/// The comments of `text`, line by line, without their marks.
pub fn comments(text: &str) -> Vec<(usize, String)> {
    let bytes = text.as_bytes();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < bytes.len() {
        let (end, is_comment) = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => (line_end(bytes, at), true),
            b'/' if bytes.get(at + 1) == Some(&b'*') => (comment_end(bytes, at), true),
            b'"' => (string_end(bytes, at), false),
            b'r' if !after_word(bytes, at) => (raw_end(bytes, at).unwrap_or(at + 1), false),
            b'\'' => (char_end(bytes, at), false),
            _ => (at + 1, false),
        };
        let piece = String::from_utf8_lossy(&bytes[at..end.min(bytes.len())]);
        for (more, text) in piece.split('\n').enumerate().filter(|_| is_comment) {
            let text = text.trim_start_matches(['/', '!', '*', ' ']).trim_end_matches(['*', '/']);
            found.push((line + more, text.to_owned()));
        }
        line += piece.matches('\n').count();
        at = end;
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
