//! Lines of authorized keys, as sshd(8) describes them: options, type, key, comment.

use super::codec::Reader;
use super::key;

/// Longest line; an RSA key of 16 384 bits with its options is a quarter of that.
const LINE_MAX: usize = 16 << 10;

/// A key that may sign in, and under which conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizedKey {
    /// The key as it is on the wire.
    pub blob: Vec<u8>,
    /// `cert-authority`: the key is that of a CA; certificates that it has signed are accepted.
    pub authority: bool,
    /// Patterns of addresses from which it may be used, if not from everywhere.
    pub from: Option<String>,
    /// Names of which a certificate must have one, if not the user's own name.
    pub principals: Option<String>,
    /// Until when, as it is written: `YYYYMMDD[Z]` or `YYYYMMDDHHMM[SS][Z]`.
    pub expiry: Option<String>,
    /// The key is restricted to one command, which this server cannot run: it must be refused.
    pub command: bool,
    /// What follows the key.
    pub comment: String,
}

impl AuthorizedKey {
    /// Reads one line. None for empty lines, comments and what is not well-formed.
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.len() > LINE_MAX {
            return None;
        }
        let mut key = Self::default();
        let (first, rest) = split_word(line);
        let rest = if is_key_type(first) {
            line
        } else {
            key.options(first)?;
            rest
        };
        let (kind, rest) = split_word(rest);
        let (text, comment) = split_word(rest);
        key.blob = key::from_base64(text)?;
        key.comment = comment.to_owned();
        // The type is in the key as well; both must agree.
        (Reader::new(&key.blob).name("key type").ok()? == kind).then_some(key)
    }

    fn options(&mut self, text: &str) -> Option<()> {
        for option in split_quoted(text, ',') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = || {
                let quoted = value.strip_prefix('"')?.strip_suffix('"')?;
                Some(quoted.replace("\\\"", "\""))
            };
            match name.to_ascii_lowercase().as_str() {
                "cert-authority" => self.authority = true,
                "from" => self.from = Some(value()?),
                "principals" => self.principals = Some(value()?),
                "expiry-time" => self.expiry = Some(value()?),
                "command" => self.command = true,
                // They restrict, or set, what this server does not offer.
                "restrict"
                | "agent-forwarding"
                | "no-agent-forwarding"
                | "port-forwarding"
                | "no-port-forwarding"
                | "pty"
                | "no-pty"
                | "user-rc"
                | "no-user-rc"
                | "X11-forwarding"
                | "x11-forwarding"
                | "no-x11-forwarding"
                | "environment"
                | "permitopen"
                | "permitlisten"
                | "tunnel"
                | "no-touch-required" => {}
                // An unknown option may be a restriction.
                _ => return None,
            }
        }
        Some(())
    }
}

fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|p| word.starts_with(p)) && !word.contains(['=', ','])
}

/// Up to the first blank that is not in quotes, and what follows it.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let word = split_quoted(text, ' ').next().unwrap_or_default();
    let tab = split_quoted(text, '\t').next().unwrap_or_default();
    let word = if tab.len() < word.len() { tab } else { word };
    (word, text.get(word.len()..).unwrap_or_default().trim_start())
}

/// Pieces between `separator`s that are not in quotes.
fn split_quoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c| {
        if escaped {
            escaped = false;
            return false;
        }
        escaped = quoted && c == '\\';
        quoted ^= c == '"';
        c == separator && !quoted
    })
}

/// Whether `text` matches a list of patterns with `*`, `?` and, before one, `!` for not
/// (ssh_config(5), PATTERNS). None of a list that is empty.
pub fn matches_list(text: &str, patterns: &str) -> bool {
    let mut matched = false;
    for pattern in patterns.split(',').map(str::trim) {
        match pattern.strip_prefix('!') {
            Some(not) if matches(text.as_bytes(), not.as_bytes()) => return false,
            Some(_) => {}
            None => matched |= matches(text.as_bytes(), pattern.as_bytes()),
        }
    }
    matched
}

/// Whether `text` matches `pattern` with `*` and `?`, in a time of their product at most.
fn matches(text: &[u8], pattern: &[u8]) -> bool {
    let (mut t, mut p, mut star) = (0, 0, None);
    while let Some(byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted.eq_ignore_ascii_case(byte) => {
                t += 1;
                p += 1;
            }
            _ => match star {
                // The last star takes one more.
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|b| *b == b'*')
}
