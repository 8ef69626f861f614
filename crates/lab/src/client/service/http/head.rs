//! The head of an answer (RFC 9112 §4 to §6): as much of it as this client needs.

/// How the body ends (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// After this number of bytes.
    Bytes(u64),
    /// By the chunked transfer coding (RFC 9112 §7.1).
    Chunked,
    /// With the connection.
    ToEnd,
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// The reason phrase (RFC 9112 §4).
    pub reason: String,
    /// How the body ends.
    pub length: Length,
    /// The server ends the connection behind it.
    pub closes: bool,
    /// Where a redirection leads (RFC 9110 §10.2.2).
    pub location: Option<String>,
}

impl Head {
    /// The head at the beginning of `input`, and how many bytes it takes; `None` when more must
    /// come.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(input: &[u8]) -> Result<Option<(Self, usize)>, &'static str> {
        let Some(end) = input.windows(4).position(|w| w == b"\r\n\r\n") else { return Ok(None) };
        let text = input.get(..end).unwrap_or_default();
        let text = std::str::from_utf8(text).map_err(|_| "a header that is not text")?;
        let mut lines = text.split("\r\n");
        let mut first = lines.next().unwrap_or_default().splitn(3, ' ');
        let version = first.next().unwrap_or_default();
        if !version.starts_with("HTTP/1.") {
            return Err("an answer that is not HTTP/1");
        }
        let status = first.next().and_then(|s| s.parse().ok()).ok_or("an answer without status")?;
        let reason = first.next().unwrap_or_default().to_owned();
        let closes = version == "HTTP/1.0";
        let mut head = Self { status, reason, length: Length::ToEnd, closes, location: None };
        for line in lines {
            let (name, value) = line.split_once(':').ok_or("a field without a colon")?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" if head.length != Length::Chunked => {
                    let bytes =
                        value.parse().map_err(|_| "a Content-Length that is not a number")?;
                    head.length = Length::Bytes(bytes);
                }
                "location" => head.location = Some(value.to_owned()),
                "transfer-encoding" => head.length = Length::Chunked,
                "connection" => {
                    head.closes = value.eq_ignore_ascii_case("close")
                        || head.closes && !value.eq_ignore_ascii_case("keep-alive");
                }
                _ => {}
            }
        }
        Ok(Some((head, end + 4)))
    }
}
