//! A command with its parameters, both directions.

use core::net::{SocketAddr, SocketAddrV4};

use super::addr::{self, number};
use super::{Malformed, Verb, date, line};

/// How data is represented (RFC 959 §3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    /// Text: lines end with CR LF on the wire.
    #[default]
    Ascii,
    /// Bytes as they are: `I`, and `L 8`.
    Image,
}

/// The argument of EPSV (RFC 2428 §3 and §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epsv {
    /// A port of the address that this connection has.
    SameAddress,
    /// A port of this family's (1 or 2).
    Family(u8),
    /// Only EPSV will be used from now on.
    All,
}

/// The commands of SITE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site<'a> {
    /// Permission bits of a file.
    Chmod(u32, &'a [u8]),
    /// When a file was changed: seconds and nanoseconds since the epoch.
    Utime((i64, u32), &'a [u8]),
    /// The list of SITE commands.
    Help,
}

/// What OPTS sets (RFC 2389 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opts<'a> {
    /// UTF-8 on or off.
    Utf8(bool),
    /// The facts that MLST and MLSD return (RFC 3659 §7.9).
    Mlst(&'a [u8]),
    /// The algorithm of HASH; without one, which it is.
    Hash(Option<&'a [u8]>),
}

/// A command. Paths are as the client wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// A command with nothing behind it: CDUP, QUIT, REIN, PASV, ABOR, PWD, SYST, FEAT, CCC.
    Bare(Verb),
    /// A command with a name, a path or another text behind it.
    Text(Verb, &'a [u8]),
    /// A command with optional text: LIST, NLST, STAT, MLST, MLSD, STOU, HELP, LANG, AVBL, NOOP.
    Maybe(Verb, Option<&'a [u8]>),
    /// ALLO, REST or PBSZ and its number.
    Number(Verb, u64),
    /// PORT.
    Port(SocketAddrV4),
    /// EPRT.
    Eprt(SocketAddr),
    /// EPSV.
    Epsv(Epsv),
    /// TYPE.
    Type(Type),
    /// STRU, MODE or PROT and its letter, in capitals.
    Code(Verb, u8),
    /// RANG: first and last byte. The last below the first takes the range away.
    Rang(u64, u64),
    /// MFMT: the time in seconds and nanoseconds since the epoch, and the path.
    Mfmt((i64, u32), &'a [u8]),
    /// SITE.
    Site(Site<'a>),
    /// OPTS.
    Opts(Opts<'a>),
}

/// What came as a command: also what is none has a verb if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// The verb, if there is such a one.
    pub verb: Option<Verb>,
    /// The whole.
    pub request: Result<Request<'a>, Malformed>,
}

/// Reads a line, which [`line::unescape`] went over.
pub fn parse(line: &[u8]) -> Parsed<'_> {
    // Verbs are ASCII: what is left of a Synch that was not sent as Telnet wants it is none.
    let junk = line.iter().take_while(|b| !b.is_ascii()).count();
    let line = line.get(junk..).unwrap_or_default();
    let (name, rest) = match line.iter().position(|b| *b == b' ') {
        Some(at) => (line.get(..at).unwrap_or_default(), line.get(at + 1..)),
        None => (line, None),
    };
    match Verb::parse(name) {
        Err(error) => Parsed { verb: None, request: Err(error) },
        Ok(verb) => Parsed { verb: Some(verb), request: parameters(verb, rest) },
    }
}

fn parameters(verb: Verb, rest: Option<&[u8]>) -> Result<Request<'_>, Malformed> {
    use Verb as V;
    if !verb.offered() {
        return Err(Malformed::NotOffered);
    }
    let rest = rest.filter(|rest| !rest.is_empty());
    if rest.is_some_and(|rest| rest.iter().any(|b| matches!(b, 0 | b'\n'))) {
        return Err(Malformed::Byte);
    }
    let text = rest.ok_or(Malformed::Missing);
    Ok(match verb {
        V::Cdup | V::Quit | V::Rein | V::Pasv | V::Abor | V::Pwd | V::Syst | V::Feat | V::Ccc => {
            if rest.is_some_and(|rest| !rest.trim_ascii().is_empty()) {
                return Err(Malformed::Unexpected);
            }
            Request::Bare(verb)
        }
        V::List | V::Nlst | V::Stat => Request::Maybe(verb, rest.and_then(without_options)),
        V::Mlst | V::Mlsd | V::Stou | V::Help | V::Lang | V::Avbl | V::Noop => {
            Request::Maybe(verb, rest)
        }
        // An empty password is one.
        V::Pass => Request::Text(verb, rest.unwrap_or_default()),
        V::Allo => {
            // `ALLO n R m`: what follows the first number concerns records (RFC 959 §4.1.3).
            let first = text?.split(|b| *b == b' ').next().unwrap_or_default();
            Request::Number(verb, number(first)?)
        }
        V::Rest | V::Pbsz => Request::Number(verb, number(text?.trim_ascii())?),
        V::Port => Request::Port(addr::port(text?)?),
        V::Eprt => Request::Eprt(addr::eprt(text?)?),
        V::Epsv => Request::Epsv(epsv(rest.map(<[u8]>::trim_ascii))?),
        V::Type => Request::Type(data_type(text?.trim_ascii())?),
        V::Stru | V::Mode | V::Prot => match text?.trim_ascii() {
            [letter] => Request::Code(verb, letter.to_ascii_uppercase()),
            _ => return Err(Malformed::Parameter),
        },
        V::Rang => {
            let (first, last) = two(text?)?;
            Request::Rang(number(first)?, number(last.trim_ascii())?)
        }
        V::Mfmt => {
            let (time, path) = two(text?)?;
            Request::Mfmt(date::time(time)?, path)
        }
        V::Site => Request::Site(site(text?)?),
        V::Opts => Request::Opts(opts(text?)?),
        _ => Request::Text(verb, text?),
    })
}

/// A word and what follows the space behind it.
fn two(text: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let at = text.iter().position(|b| *b == b' ').ok_or(Malformed::Missing)?;
    let (word, rest) = (text.get(..at), text.get(at + 1..).filter(|rest| !rest.is_empty()));
    Ok((word.unwrap_or_default(), rest.ok_or(Malformed::Missing)?))
}

/// Clients send the options of ls, though no RFC has any: they are passed over. Without
/// them one space is before the path, as everywhere, and more are a part of its name.
fn without_options(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    while rest.first() == Some(&b'-') {
        let end = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
        rest = rest.get(end..).unwrap_or_default().trim_ascii_start();
    }
    (!rest.trim_ascii().is_empty()).then_some(rest)
}

fn epsv(text: Option<&[u8]>) -> Result<Epsv, Malformed> {
    match text {
        None => Ok(Epsv::SameAddress),
        Some(all) if all.eq_ignore_ascii_case(b"ALL") => Ok(Epsv::All),
        Some(family) => match number::<u64>(family).map_err(|_| Malformed::Parameter)? {
            1 => Ok(Epsv::Family(1)),
            2 => Ok(Epsv::Family(2)),
            _ => Err(Malformed::Family),
        },
    }
}

/// `A`, `A N`, `I`, `L 8`; other formats and sizes do not exist here.
fn data_type(text: &[u8]) -> Result<Type, Malformed> {
    match text.to_ascii_uppercase().as_slice() {
        b"A" | b"A N" | b"AN" => Ok(Type::Ascii),
        b"I" | b"L 8" | b"L8" => Ok(Type::Image),
        _ => Err(Malformed::Parameter),
    }
}

fn site(text: &[u8]) -> Result<Site<'_>, Malformed> {
    let end = text.iter().position(|b| *b == b' ').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    match word.to_ascii_uppercase().as_slice() {
        b"HELP" => Ok(Site::Help),
        b"CHMOD" => {
            let (mode, path) = two(rest)?;
            let digits = !mode.is_empty() && mode.iter().all(|b| (b'0'..=b'7').contains(b));
            let mode = std::str::from_utf8(mode).ok().filter(|_| digits);
            let mode = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok());
            let mode = mode.filter(|mode| *mode <= 0o7777).ok_or(Malformed::Number)?;
            Ok(Site::Chmod(mode, path))
        }
        b"UTIME" => utime(rest),
        _ => Err(Malformed::Parameter),
    }
}

/// `UTIME time path`, and the older `UTIME path atime mtime ctime UTC`.
fn utime(text: &[u8]) -> Result<Site<'_>, Malformed> {
    let (first, rest) = two(text)?;
    if let Ok(time) = date::time(first) {
        return Ok(Site::Utime(time, rest));
    }
    let (text, zone) = last_word(text)?;
    if !zone.eq_ignore_ascii_case(b"UTC") {
        return Err(Malformed::Time);
    }
    let (text, _change) = last_word(text)?;
    let (text, modify) = last_word(text)?;
    let (path, _access) = last_word(text)?;
    Ok(Site::Utime(date::time(modify)?, path))
}

fn last_word(text: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let at =
        text.iter().rposition(|b| *b == b' ').filter(|at| *at > 0).ok_or(Malformed::Missing)?;
    Ok((text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()))
}

fn opts(text: &[u8]) -> Result<Opts<'_>, Malformed> {
    let end = text.iter().position(|b| *b == b' ').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let rest = rest.trim_ascii();
    match word.to_ascii_uppercase().as_slice() {
        b"UTF8" | b"UTF-8" => match rest.to_ascii_uppercase().as_slice() {
            b"" | b"ON" | b"NLST" => Ok(Opts::Utf8(true)),
            b"OFF" => Ok(Opts::Utf8(false)),
            _ => Err(Malformed::Parameter),
        },
        b"MLST" => Ok(Opts::Mlst(rest)),
        b"HASH" => Ok(Opts::Hash((!rest.is_empty()).then_some(rest))),
        _ => Err(Malformed::Parameter),
    }
}

impl Request<'_> {
    /// Its verb.
    pub fn verb(&self) -> Verb {
        match self {
            Self::Bare(verb) | Self::Text(verb, _) | Self::Maybe(verb, _) => *verb,
            Self::Number(verb, _) | Self::Code(verb, _) => *verb,
            Self::Port(_) => Verb::Port,
            Self::Eprt(_) => Verb::Eprt,
            Self::Epsv(_) => Verb::Epsv,
            Self::Type(_) => Verb::Type,
            Self::Rang(..) => Verb::Rang,
            Self::Mfmt(..) => Verb::Mfmt,
            Self::Site(_) => Verb::Site,
            Self::Opts(_) => Verb::Opts,
        }
    }

    /// Puts it behind `out` as a line with its end.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.verb().name().as_bytes());
        let mut word = |text: &[u8]| {
            out.push(b' ');
            line::escape(text, out);
        };
        match self {
            Self::Bare(_) | Self::Maybe(_, None) | Self::Epsv(Epsv::SameAddress) => {}
            Self::Text(_, text) | Self::Maybe(_, Some(text)) => word(text),
            Self::Number(_, n) => word(n.to_string().as_bytes()),
            Self::Code(_, letter) => word(&[*letter]),
            Self::Port(to) => word(addr::port_text(*to).as_bytes()),
            Self::Eprt(to) => word(addr::eprt_text(*to).as_bytes()),
            Self::Epsv(Epsv::Family(family)) => word(family.to_string().as_bytes()),
            Self::Epsv(Epsv::All) => word(b"ALL"),
            Self::Type(Type::Ascii) => word(b"A"),
            Self::Type(Type::Image) => word(b"I"),
            Self::Rang(first, last) => word(format!("{first} {last}").as_bytes()),
            Self::Mfmt(time, path) => {
                word(time_text(*time).as_bytes());
                word(path);
            }
            Self::Site(Site::Help) => word(b"HELP"),
            Self::Site(Site::Chmod(mode, path)) => {
                word(format!("CHMOD {mode:o}").as_bytes());
                word(path);
            }
            Self::Site(Site::Utime(time, path)) => {
                word(format!("UTIME {}", time_text(*time)).as_bytes());
                word(path);
            }
            Self::Opts(Opts::Utf8(on)) => word(if *on { b"UTF8 ON" } else { b"UTF8 OFF" }),
            Self::Opts(Opts::Mlst(facts)) => {
                word(b"MLST");
                word(facts);
            }
            Self::Opts(Opts::Hash(None)) => word(b"HASH"),
            Self::Opts(Opts::Hash(Some(algorithm))) => {
                word(b"HASH");
                word(algorithm);
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn time_text((epoch, ns): (i64, u32)) -> String {
    match ns {
        0 => date::time_text(epoch),
        ns => format!("{}.{ns:09}", date::time_text(epoch)),
    }
}
