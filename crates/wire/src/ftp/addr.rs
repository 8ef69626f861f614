//! Addresses of data connections: `h1,h2,h3,h4,p1,p2` (RFC 959 §4.1.2) and `|family|host|port|`
//! (RFC 2428 §2).

use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use super::Malformed;

/// A decimal number of digits only.
pub(super) fn number<T: TryFrom<u64>>(text: &[u8]) -> Result<T, Malformed> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let value = std::str::from_utf8(text).ok().filter(|_| digits).and_then(|t| t.parse().ok());
    value.and_then(|value: u64| T::try_from(value).ok()).ok_or(Malformed::Number)
}

/// The parameter of PORT.
///
/// # Errors
/// It is none.
pub fn port(text: &[u8]) -> Result<SocketAddrV4, Malformed> {
    let mut fields = text.trim_ascii().split(|b| *b == b',');
    let mut six = [0u8; 6];
    for place in &mut six {
        let field = fields.next().ok_or(Malformed::Port)?;
        *place = number(field.trim_ascii()).map_err(|_| Malformed::Port)?;
    }
    let [a, b, c, d, high, low] = six;
    match fields.next() {
        None => Ok(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))),
        Some(_) => Err(Malformed::Port),
    }
}

/// An address as PORT and the reply to PASV have it.
pub fn port_text(addr: SocketAddrV4) -> String {
    let [a, b, c, d] = addr.ip().octets();
    let [high, low] = addr.port().to_be_bytes();
    format!("{a},{b},{c},{d},{high},{low}")
}

/// The address in a reply to PASV: wherever the six numbers are (RFC 1123 §4.1.2.6).
///
/// # Errors
/// There is none.
pub fn pasv_reply(text: &[u8]) -> Result<SocketAddrV4, Malformed> {
    let start = text.iter().position(u8::is_ascii_digit).ok_or(Malformed::Address)?;
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.iter().position(|b| !b.is_ascii_digit() && *b != b',').unwrap_or(rest.len());
    port(rest.get(..end).unwrap_or_default())
}

/// The parameter of EPRT.
///
/// # Errors
/// It is none, or of another family.
pub fn eprt(text: &[u8]) -> Result<SocketAddr, Malformed> {
    let (delimiter, rest) = text.trim_ascii().split_first().ok_or(Malformed::Eprt)?;
    if !(33..=126).contains(delimiter) {
        return Err(Malformed::Eprt);
    }
    let fields: Vec<&[u8]> = rest.splitn(5, |b| b == delimiter).collect();
    let [family, host, port, b""] = fields.as_slice() else { return Err(Malformed::Eprt) };
    let host = std::str::from_utf8(host).map_err(|_| Malformed::Eprt)?;
    let ip: IpAddr = match *family {
        b"1" => host.parse().map(IpAddr::V4).map_err(|_| Malformed::Eprt)?,
        b"2" => host.parse().map(IpAddr::V6).map_err(|_| Malformed::Eprt)?,
        _ if number::<u64>(family).is_ok() => return Err(Malformed::Family),
        _ => return Err(Malformed::Eprt),
    };
    Ok(SocketAddr::new(ip, number(port).map_err(|_| Malformed::Eprt)?))
}

/// An address as EPRT has it.
pub fn eprt_text(addr: SocketAddr) -> String {
    let family = if addr.is_ipv4() { 1 } else { 2 };
    format!("|{family}|{}|{}|", addr.ip(), addr.port())
}

/// The port in a reply to EPSV (RFC 2428 §3).
///
/// # Errors
/// There is none.
pub fn epsv_reply(text: &[u8]) -> Result<u16, Malformed> {
    let open = text.iter().rposition(|b| *b == b'(').ok_or(Malformed::Address)?;
    let inside = text.get(open + 1..).unwrap_or_default();
    let close = inside.iter().position(|b| *b == b')').ok_or(Malformed::Address)?;
    let (delimiter, rest) =
        inside.get(..close).and_then(<[u8]>::split_first).ok_or(Malformed::Address)?;
    let fields: Vec<&[u8]> = rest.splitn(5, |b| b == delimiter).collect();
    let [b"", b"", port, b""] = fields.as_slice() else { return Err(Malformed::Address) };
    number(port).map_err(|_| Malformed::Address)
}

/// The port as the reply to EPSV has it.
pub fn epsv_text(port: u16) -> String {
    format!("(|||{port}|)")
}
