//! The name under which a browser keeps what it is sent.

use super::request::percent_encode;

/// `Content-Disposition` with a name in both forms (RFC 6266 §4.3).
pub fn attachment(name: &[u8]) -> String {
    let plain: String = String::from_utf8_lossy(name)
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%') || c == ' ' { c } else { '_' }
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{}", percent_encode(name))
}
