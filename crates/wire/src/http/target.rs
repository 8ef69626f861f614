//! Targets of requests: what they name, decoded once.

use base::limits::HTTP_TARGET_MAX;
use base::text::{percent, put_percent};

/// What a request is about: the path of the target, decoded and without dot segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Absolute; bytes, not text. `/` is above all shares; no slash at the end otherwise. `*` is
    /// the whole server (OPTIONS).
    pub path: Vec<u8>,
    /// Whether it ended with a slash, as the names of collections do.
    pub slash: bool,
    /// What was behind the question mark, as it came.
    pub query: String,
}

/// What is wrong with a target: the peer's fault (400, or 414 if it is too long).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Longer than [`HTTP_TARGET_MAX`].
    #[error("the target is too long")]
    TooLong,
    /// Not of a form of RFC 9112 §3.2.
    #[error("the target is neither a path nor a URL")]
    Form,
    /// A percent sign without two digits, or a name with a NUL or a slash in it.
    #[error("the target contains an invalid name")]
    Name,
}

impl Target {
    /// Takes a target apart: `/path?query`, a whole URL, or `*`.
    ///
    /// # Errors
    /// It is none of these, or names what no file can be called.
    pub fn parse(target: &[u8]) -> Result<Self, TargetError> {
        if target.len() > HTTP_TARGET_MAX {
            return Err(TargetError::TooLong);
        }
        if target == b"*" {
            return Ok(Self { path: target.to_vec(), ..Self::default() });
        }
        let target = match authority(target) {
            Some((_, rest)) => rest,
            None => target,
        };
        // A fragment is not part of a request (RFC 9112 §3.2). A client that sends one means a part
        // of the file: a DELETE must not remove the file.
        if target.contains(&b'#') {
            return Err(TargetError::Form);
        }
        let (path, query) = match target.iter().position(|b| *b == b'?') {
            Some(at) => (target.get(..at), target.get(at + 1..)),
            None => (Some(target), None),
        };
        let query = String::from_utf8_lossy(query.unwrap_or_default()).into_owned();
        // A URL of a host alone.
        let path = path.filter(|path| !path.is_empty() || target.is_empty()).unwrap_or(b"/");
        let (path, slash) = decode_path(path)?;
        Ok(Self { path, slash, query })
    }

    /// The value of a parameter of the query, decoded, if it is there and text.
    pub fn parameter(&self, name: &str) -> Option<String> {
        form_value(&self.query, name)
    }
}

/// The value of `name` in `a=b&c=d`, decoded (WHATWG URL §5.1), if it is there and text.
pub fn form_value(form: &str, name: &str) -> Option<String> {
    form.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if key != name {
            return None;
        }
        let value: Vec<u8> =
            value.bytes().map(|b| if b == b'+' { b' ' } else { b }).collect::<Vec<_>>();
        percent_decode(&value).and_then(|value| String::from_utf8(value).ok())
    })
}

/// Authority and the rest of an absolute URL (`http://host:port/path`).
pub fn authority(url: &[u8]) -> Option<(&[u8], &[u8])> {
    let scheme = |s: &str| {
        let head = url.get(..s.len())?;
        if head.eq_ignore_ascii_case(s.as_bytes()) { url.get(s.len()..) } else { None }
    };
    let rest = scheme("http://").or_else(|| scheme("https://"))?;
    let end = rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    Some((rest.get(..end)?, rest.get(end..)?))
}

/// Decodes a path and removes dot segments (RFC 3986 §5.2.4): never above `/`. Also returns whether
/// it ended with a slash.
///
/// # Errors
/// It does not begin with a slash, or a name in it is none.
pub fn decode_path(path: &[u8]) -> Result<(Vec<u8>, bool), TargetError> {
    let inner = path.strip_prefix(b"/").ok_or(TargetError::Form)?;
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut slash = inner.is_empty();
    for segment in inner.split(|b| *b == b'/') {
        let name = percent_decode(segment).ok_or(TargetError::Name)?;
        if name.iter().any(|b| matches!(b, 0 | b'/')) {
            return Err(TargetError::Name);
        }
        slash = matches!(name.as_slice(), b"" | b"." | b"..");
        match name.as_slice() {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            _ => names.push(name),
        }
    }
    let mut whole = Vec::with_capacity(path.len());
    for name in &names {
        whole.push(b'/');
        whole.extend_from_slice(name);
    }
    if names.is_empty() {
        whole.push(b'/');
        slash = true;
    }
    Ok((whole, slash))
}

/// Decodes `%41`; `None` when a percent sign is not followed by two digits.
pub fn percent_decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        let digit = |b: Option<&u8>| b.and_then(|b| char::from(*b).to_digit(16));
        match byte {
            b'%' => out.push((digit(rest.next())? * 16 + digit(rest.next())?) as u8),
            byte => out.push(*byte),
        }
    }
    Some(out)
}

/// Encodes a path for a target or a `href`: everything but unreserved characters and slashes
/// (RFC 3986 §2.3).
pub fn percent_encode(path: &[u8]) -> String {
    percent(path, UNESCAPED)
}

/// The same, added to a text.
pub fn put_percent_encoded(path: &[u8], out: &mut String) {
    put_percent(path, UNESCAPED, out);
}

/// What stands for itself in a path, in addition to letters and digits.
const UNESCAPED: &[u8] = b"-._~/";

#[cfg(test)]
mod tests;
