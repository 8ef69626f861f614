//! A line taken apart into words as a shell does it: blanks separate, quotes and backslashes keep
//! together, `#` at the start of a word begins a comment.

/// One word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Without its quotes.
    pub text: String,
    /// Byte offset of its first character, quotes included.
    pub start: usize,
    /// Byte offset behind its last character.
    pub end: usize,
}

/// Quotes are left open, or the line ends with a backslash: more must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished;

/// The words of `line`.
///
/// # Errors
/// [`Unfinished`].
pub fn split(line: &str) -> Result<Vec<Word>, Unfinished> {
    match lenient(line) {
        (words, true) => Ok(words),
        (_, false) => Err(Unfinished),
    }
}

/// The words of a line that is still being typed, and whether it is complete.
pub fn lenient(line: &str) -> (Vec<Word>, bool) {
    let mut words = Vec::new();
    let mut open: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        if quote.is_none() && c.is_whitespace() {
            words.extend(open.take().map(|word| Word { end: at, ..word }));
            continue;
        }
        // A backslash at the end of a line joins it with the next.
        if quote != Some('\'') && line.get(at..).is_some_and(|rest| rest.starts_with("\\\n")) {
            chars.next();
            continue;
        }
        if quote.is_none() && open.is_none() && c == '#' {
            return (words, true);
        }
        let word = open.get_or_insert_with(|| Word { text: String::new(), start: at, end: at });
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (Some('\''), c) => word.text.push(c),
            (_, '\\') => match chars.next() {
                // Within double quotes only what would end them needs it.
                Some((_, c)) if quote.is_none() || c == '"' || c == '\\' => word.text.push(c),
                Some((_, c)) => word.text.extend(['\\', c]),
                None => {
                    words.extend(open.take().map(|word| Word { end: line.len(), ..word }));
                    return (words, false);
                }
            },
            (_, c) => word.text.push(c),
        }
    }
    words.extend(open.map(|word| Word { end: line.len(), ..word }));
    (words, quote.is_none())
}

/// A word as it must be typed to be one word again.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:,=@+%*~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
