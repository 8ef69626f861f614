//! The small headers of WebDAV (RFC 4918 §10). Values are text without the header's name.

/// How deep a method goes (§10.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The resource.
    Zero,
    /// And its members.
    One,
    /// And theirs, all the way down.
    Infinity,
}

impl Depth {
    /// Reads the header; `None` if it is none of the three.
    pub fn parse(value: &str) -> Option<Self> {
        match value.trim() {
            "0" => Some(Self::Zero),
            "1" => Some(Self::One),
            deep if deep.eq_ignore_ascii_case("infinity") => Some(Self::Infinity),
            _ => None,
        }
    }
}

/// `Overwrite` (§10.6): whether COPY and MOVE may replace what is there. `None` if it is neither.
pub fn overwrite(value: &str) -> Option<bool> {
    match value.trim() {
        "T" | "t" => Some(true),
        "F" | "f" => Some(false),
        _ => None,
    }
}

/// `Timeout` (§10.7): for how many seconds a lock is wanted, `u64::MAX` for `Infinite`; the first
/// that is understood of a list. `None` if none is: then the server chooses.
pub fn timeout(value: &str) -> Option<u64> {
    value.split(',').map(str::trim).find_map(|one| {
        if one.eq_ignore_ascii_case("infinite") {
            return Some(u64::MAX);
        }
        let seconds = one.get(..7).filter(|word| word.eq_ignore_ascii_case("second-"));
        let digits = one.get(7..).filter(|_| seconds.is_some())?;
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        // More than can be counted is as good as for ever.
        plain.then(|| digits.parse().unwrap_or(u64::MAX))
    })
}

/// `Lock-Token` (§10.5): the token within its angle brackets.
pub fn lock_token(value: &str) -> Option<&str> {
    let token = value.trim().strip_prefix('<')?.strip_suffix('>')?;
    let whole = !token.is_empty() && !token.contains(['<', '>']);
    whole.then_some(token)
}

/// Where a URL leads: an authority, if it names one, and a path that is still encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// Host and port, without user information.
    pub authority: Option<&'a str>,
    /// The path, from its first slash on; no query and no fragment.
    pub path: &'a str,
}

/// Reads a `Simple-ref` (§8.3): `Destination` (§10.3), the tags of `If`. An absolute URL of HTTP or
/// HTTPS or an absolute path. The scheme is ignored: behind a proxy that terminates TLS it differs
/// from ours.
pub fn target(value: &str) -> Option<Target<'_>> {
    let value = value.trim();
    let cut = value.find(['?', '#']).map_or(Some(value), |at| value.get(..at))?;
    if !cut.bytes().all(|b| b.is_ascii_graphic() || b >= 0x80) {
        return None;
    }
    if cut.starts_with('/') && !cut.starts_with("//") {
        return Some(Target { authority: None, path: cut });
    }
    let (scheme, rest) = cut.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let at = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(at)?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = if path.is_empty() { "/" } else { path };
    (!authority.is_empty()).then_some(Target { authority: Some(authority), path })
}

/// Whether two authorities are the same place, whatever the port that goes without saying.
pub fn same_authority(a: &str, b: &str) -> bool {
    fn plain(authority: &str) -> &str {
        let port = authority.strip_suffix(":80").or_else(|| authority.strip_suffix(":443"));
        port.unwrap_or(authority)
    }
    plain(a.trim()).eq_ignore_ascii_case(plain(b.trim()))
}

#[cfg(test)]
mod tests;
