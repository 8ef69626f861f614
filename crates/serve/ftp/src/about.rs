//! Requests for information about the server and the session, and the options that a client sets:
//! FEAT, HELP, SYST, STAT, OPTS, TYPE, STRU, MODE; and where data connections come about: PORT,
//! PASV and so on.

use std::net::SocketAddr;

use wire::ftp::facts::Facts;
use wire::ftp::request::{Epsv, Opts, Type};
use wire::ftp::{Verb, addr};

use super::answer::{Answer, Outcome};
use super::data::{self, PORT_MIN, Plan};
use super::session::Session;
use super::settings::TlsUse;
use super::state::Algorithm;

/// FEAT (RFC 2389 §3).
pub(super) fn feat(s: &Session) -> Outcome {
    let mut lines: Vec<String> = Vec::new();
    if s.settings.tls != TlsUse::Off && s.server.tls.is_some() {
        lines.extend(["AUTH TLS", "PBSZ", "PROT"].map(str::to_owned));
    }
    let hashes = Algorithm::ALL.map(|algorithm| {
        format!("{}{}", algorithm.name(), if algorithm == s.state.hash { "*" } else { "" })
    });
    let fixed = ["AVBL", "CLNT", "EPRT", "EPSV"];
    lines.extend(fixed.map(str::to_owned));
    lines.push(format!("HASH {}", hashes.join(";")));
    lines.extend(["HOST", "LANG EN*", "MDTM", "MFMT"].map(str::to_owned));
    lines.push(format!("MLST {}", s.state.facts.feature()));
    let fixed = ["PASV", "RANG STREAM", "REST STREAM", "SITE CHMOD", "SITE UTIME", "SIZE"];
    lines.extend(fixed.map(str::to_owned));
    lines.extend(["TVFS", "UTF8"].map(str::to_owned));
    let lines = lines.into_iter().map(String::into_bytes).collect();
    Ok(Answer::lines(211, "Beyond RFC 959:", lines))
}

/// HELP.
pub(super) fn help(of: Option<&[u8]>) -> Outcome {
    let Some(of) = of else {
        let offered: Vec<_> = Verb::ALL.iter().filter(|verb| verb.offered()).collect();
        let row = |verbs: &[&Verb]| {
            verbs.iter().map(|verb| format!("{:<6}", verb.name())).collect::<String>().into_bytes()
        };
        return Ok(Answer::lines(214, "Commands:", offered.chunks(8).map(row).collect()));
    };
    // `HELP SITE CHMOD` is answered as `HELP SITE`.
    let first = of.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default();
    match Verb::parse(first) {
        Ok(verb) => Ok(Answer::of(214, verb.help())),
        Err(_) => Err(Answer::of(501, "Unrecognized command.")),
    }
}

/// STAT without a path.
pub(super) fn stat(s: &Session) -> Outcome {
    let who = match &s.who {
        Some(who) => format!("signed in as {}", who.person.name),
        None => "not signed in".to_owned(),
    };
    let protected = |on: bool| if on { "protected by TLS" } else { "not encrypted" };
    let kind = if s.state.data_type == Type::Ascii { "ASCII" } else { "binary" };
    let lines = vec![
        format!("From {}, {who}.", s.peer.ip()),
        format!(
            "Commands are {}, data is {}.",
            protected(s.state.secure),
            protected(s.state.protect)
        ),
        format!("TYPE: {kind}, STRU: file, MODE: stream."),
    ];
    let lines = lines.into_iter().map(String::into_bytes).collect();
    Ok(Answer::lines(211, "State of this session:", lines))
}

/// TYPE.
pub(super) fn set_type(s: &mut Session, to: Type) -> Outcome {
    s.state.data_type = to;
    Ok(match to {
        Type::Ascii => Answer::of(200, "TYPE is ASCII now."),
        Type::Image => Answer::of(200, "TYPE set to binary."),
    })
}

/// STRU, and MODE: each with one value (RFC 1123 §4.1.2.3 allows it).
pub(super) fn only(letter: u8, right: u8) -> Outcome {
    match letter == right {
        true => Ok(Answer::of(200, "So it is.")),
        false => Err(Answer::of(504, "Unimplemented.")),
    }
}

/// REST (RFC 3659 §5): an offset into what is sent; in ASCII only the beginning is known.
pub(super) fn rest(s: &mut Session, offset: u64) -> Outcome {
    if s.state.data_type == Type::Ascii && offset > 0 {
        return Err(Answer::of(501, "Resuming transfers not allowed in ASCII mode."));
    }
    s.state.rest = offset;
    Ok(Answer::with(350, format!("The next transfer starts at {offset}.")))
}

/// OPTS.
pub(super) fn opts(s: &mut Session, what: Opts<'_>) -> Outcome {
    match what {
        Opts::Utf8(true) => Ok(Answer::of(200, "UTF-8 it is.")),
        Opts::Utf8(false) => Err(Answer::of(504, "Names are bytes, and shown as they are.")),
        Opts::Mlst(facts) => {
            s.state.facts = Facts::parse(facts);
            let list = s.state.facts.list();
            Ok(Answer::with(200, format!("MLST OPTS {list}").trim_end().to_owned()))
        }
        Opts::Hash(None) => Ok(Answer::of(200, s.state.hash.name())),
        Opts::Hash(Some(name)) => {
            let same = |a: &&Algorithm| a.name().as_bytes().eq_ignore_ascii_case(name);
            let Some(algorithm) = Algorithm::ALL.iter().find(same) else {
                return Err(Answer::of(501, "Unknown algorithm; see FEAT."));
            };
            s.state.hash = *algorithm;
            Ok(Answer::of(200, algorithm.name()))
        }
    }
}

/// LANG (RFC 2640 §4).
pub(super) fn lang(language: Option<&[u8]>) -> Outcome {
    let known = language.is_none_or(|l| {
        l.split(|b| *b == b'-').next().is_some_and(|l| l.eq_ignore_ascii_case(b"EN"))
    });
    match known {
        true => Ok(Answer::of(200, "Language set to English.")),
        false => Err(Answer::of(504, "Only English is supported.")),
    }
}

/// HOST (RFC 7151): there is one server here, whatever it is called.
pub(super) fn host(s: &Session) -> Outcome {
    match s.state.signed_in || s.state.user.is_some() {
        true => Err(Answer::of(503, "HOST comes before USER.")),
        false => Ok(Answer::of(220, "Sign in with USER.")),
    }
}

/// ABOR while nothing is transferred.
pub(super) fn abor(s: &mut Session) -> Outcome {
    s.plan = Plan::None;
    Ok(Answer::of(225, "No transfer to abort."))
}

/// PORT and EPRT.
pub(super) fn port(s: &mut Session, to: SocketAddr) -> Outcome {
    s.plan = Plan::None;
    if to.ip().to_canonical() != s.peer.ip() {
        return Err(Answer::of(501, "No data connection to a foreign address."));
    }
    if to.port() < PORT_MIN {
        return Err(Answer::of(501, "No data connection to a privileged port."));
    }
    s.plan = Plan::Active(to);
    Ok(Answer::of(200, "Noted."))
}

fn wait(s: &mut Session) -> Result<u16, Answer> {
    s.plan = Plan::None;
    let place = data::place(&s.core, s.peer.ip())?;
    match data::wait_at(s.local.ip(), s.settings.passive_ports.as_ref()) {
        Ok((listener, port)) => {
            s.plan = Plan::Passive(listener, place);
            Ok(port)
        }
        Err(e) => Err(Answer::with(425, format!("No port available: {e}."))),
    }
}

/// PASV.
pub(super) fn pasv(s: &mut Session) -> Outcome {
    let shown = s.settings.masquerade_address.map_or(s.local.ip(), Into::into);
    if data::v4(shown, 0).is_none() {
        return Err(Answer::of(425, "Not available over IPv6: use EPSV."));
    }
    let port = wait(s)?;
    let at = data::v4(shown, port).map(addr::port_text).unwrap_or_default();
    Ok(Answer::with(227, format!("Entering Passive Mode ({at}).")))
}

/// EPSV.
pub(super) fn epsv(s: &mut Session, what: Epsv) -> Outcome {
    match what {
        Epsv::All => {
            s.state.epsv_all = true;
            return Ok(Answer::of(200, "EPSV only."));
        }
        Epsv::Family(family) if (family == 1) != s.local.is_ipv4() => {
            let right = if s.local.is_ipv4() { 1 } else { 2 };
            return Err(Answer::with(
                522,
                format!("Network protocol not supported, use ({right})."),
            ));
        }
        _ => {}
    }
    let port = wait(s)?;
    Ok(Answer::with(229, format!("Entering Extended Passive Mode {}", addr::epsv_text(port))))
}
