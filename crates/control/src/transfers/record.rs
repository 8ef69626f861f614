//! One transfer as a line of the log, and the lossless form in which names that may be any bytes
//! are a text.

use std::fmt::Write;

use base::clock::NS_PER_S;
use base::units::{Civil, MONTHS, civil, weekday};
use serde::{Deserialize, Serialize};
use vfs::transfers::{Direction, Ended, Outcome};

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_US: u64 = 1_000;

/// A transfer that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When it began: RFC 3339, UTC, with milliseconds.
    pub start: String,
    /// When it ended.
    pub end: String,
    /// `ftp`, `ftps`, `sftp`, `http`, `https`, `webdav`.
    pub protocol: String,
    /// `download`, `upload`.
    pub direction: String,
    /// The share.
    pub share: String,
    /// The file in it, as the client named it; [`escape`] has its form.
    pub path: String,
    /// The user.
    pub user: String,
    /// The address of the client.
    pub client: String,
    /// Bytes of the file that were moved.
    pub bytes: u64,
    /// Where in the file they begin.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// `complete`, `partial`, `cut`, `failed`, `refused`.
    pub outcome: String,
    /// Why it is not complete.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// `TLSv1.3`, `SSH-2.0`; empty without encryption.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub security: String,
    /// The cipher, by the name that it has there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cipher: String,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl From<&Ended> for Record {
    fn from(ended: &Ended) -> Self {
        let path = ended.path.strip_prefix(b"/").unwrap_or(&ended.path);
        let mut parts = path.splitn(2, |byte| *byte == b'/');
        let mut part = || parts.next().unwrap_or_default();
        let (share, path) = (part(), part());
        let (security, cipher) =
            ended.security.map_or(("", ""), |with| (with.version, with.cipher));
        Self {
            start: time(ended.begun_ns),
            end: time(ended.begun_ns.saturating_add(ended.took_ns)),
            protocol: ended.protocol.name().to_owned(),
            direction: ended.direction.name().to_owned(),
            share: escape(share),
            path: escape(path),
            user: ended.person.name.clone(),
            client: ended.client.to_string(),
            bytes: ended.bytes,
            offset: ended.offset,
            duration_us: ended.took_ns / NS_PER_US,
            outcome: ended.outcome.name().to_owned(),
            reason: ended.why.clone().into_owned(),
            security: security.to_owned(),
            cipher: cipher.to_owned(),
        }
    }
}

/// `2026-11-21T22:50:11.042Z`: of one length, so that texts are in the order of times.
pub fn time(epoch_ns: u64) -> String {
    let seconds = i64::try_from(epoch_ns / NS_PER_S).unwrap_or(i64::MAX);
    let Civil { year, month, day, hour, minute, second } = civil(seconds);
    let ms = epoch_ns % NS_PER_S / NS_PER_MS;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Bytes as a text, so that [`unescape`] has them again: what is UTF-8 stays, but for `\`, which is
/// `\\`, and control characters; these and all other bytes are `\xHH` each.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let hex = |out: &mut String, byte: u8| {
        let _infallible = write!(out, "\\x{byte:02x}");
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => {
                    let mut room = [0; 4];
                    c.encode_utf8(&mut room).bytes().for_each(|byte| hex(&mut out, byte));
                }
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| hex(&mut out, *byte));
    }
    out
}

/// The bytes that [`escape`] has made this text of; `None` if it has not.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        if let Some(after) = after.strip_prefix('\\') {
            out.push(b'\\');
            rest = after;
            continue;
        }
        let hex = after.strip_prefix('x')?;
        out.push(u8::from_str_radix(hex.get(..2)?, 16).ok()?);
        rest = hex.get(2..)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Some(out)
}

impl Record {
    /// `/SHARE/path`.
    pub fn name(&self) -> String {
        format!("/{}/{}", self.share, self.path)
    }

    /// As a line for people.
    pub fn sentence(&self) -> String {
        let mut line = format!(
            "{}  {} {} {} {} by {} from {}: {} bytes in {:.3} s",
            self.end,
            self.protocol,
            self.direction,
            self.outcome,
            self.name(),
            self.user,
            self.client,
            self.bytes,
            self.duration_us as f64 / 1e6,
        );
        if self.offset > 0 {
            line += &format!(", from {} on", self.offset);
        }
        for part in [&self.reason, &self.security, &self.cipher] {
            if !part.is_empty() {
                line += ", ";
                line += part;
            }
        }
        line
    }

    /// As wu-ftpd and its successors have it (xferlog(5)), for programs that read that. Spaces and
    /// control characters of names are underscores there.
    pub fn xferlog(&self) -> String {
        let word = |text: &str| text.replace(|c: char| c.is_whitespace() || c.is_control(), "_");
        let way = if self.direction == Direction::Download.name() { "o" } else { "i" };
        let whole = if self.outcome == Outcome::Complete.name() { "c" } else { "i" };
        format!(
            "{} {} {} {} {} b _ {way} r {} {} 0 * {whole}",
            ctime(&self.end),
            self.duration_us.div_ceil(1_000_000),
            self.client,
            self.bytes,
            word(&self.name()),
            word(&self.user),
            self.protocol,
        )
    }
}

/// `Sat Nov 21 22:50:11 2026` for a time in our format; other texts unchanged.
fn ctime(time: &str) -> String {
    let shown = || {
        let number = |from: usize, to: usize| time.get(from..to)?.parse::<i64>().ok();
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let date = Civil { year, month, day, hour: 0, minute: 0, second: 0 };
        let name = MONTHS.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
        let weekday = weekday(date.seconds());
        Some(format!("{weekday} {name} {day:2} {} {year}", time.get(11..19)?))
    };
    shown().unwrap_or_else(|| time.to_owned())
}
