//! Signing in (RFC 959 §4.1.1) and protecting the connections (RFC 4217).

use files::SpanFacts as _;
use std::time::Duration;

use base::clock::{Deadline, monotonic_ns};
use base::limits::FTP_WRONG_STEP;
use vfs::identity::{Person, Refused};
use vfs::share::rules::Transport;
use wire::ftp::Verb;

use super::answer::{Answer, Outcome};
use super::next::Next;
use super::session::Session;
use super::settings::{LoginRoot, TlsUse};
use files::{Caller, Links, VPath};

/// Names for anonymous sign-in (RFC 1635).
const ANONYMOUS: [&[u8]; 2] = [b"anonymous", b"ftp"];

fn wants_anonymous(s: &Session, name: &[u8]) -> bool {
    s.settings.anonymous && ANONYMOUS.contains(&name)
}

/// USER.
pub(super) fn user(s: &mut Session, name: &[u8]) -> Outcome {
    s.who = None;
    s.state.sign_out();
    s.state.user = Some(name.to_vec());
    match wants_anonymous(s, name) {
        true => Ok(Answer::of(331, "Anonymous access: any password is accepted.")),
        // The same whether or not there is such a user.
        false => Ok(Answer::of(331, "Password, please.")),
    }
}

/// PASS.
pub(super) async fn pass(s: &mut Session, password: &[u8]) -> Next {
    let Some(name) = s.state.user.take() else {
        let text = match s.state.signed_in {
            true => "User already authenticated.",
            false => "Login with USER first.",
        };
        return Next::Answer(Answer::of(503, text));
    };
    let began_ns = monotonic_ns();
    let judged = match wants_anonymous(s, &name) {
        true => Ok(s.core.files.identity.anonymous()),
        false => judge(s, &name, password).await,
    };
    let answer = match judged {
        Ok(person) => match enter(s, person).await {
            Ok(answer) => return Next::Answer(answer),
            Err(answer) => answer,
        },
        Err(Refused::Wrong) => Answer::of(530, "Authentication failed."),
        Err(wait @ Refused::Wait(_)) => Answer::with(530, format!("{wait}.")),
    };
    delay(began_ns).await;
    match s.state.count_wrong(s.settings.attempts_max) {
        true => Next::Leave(Answer::of(421, "Maximum login attempts. Disconnecting.")),
        false => Next::Answer(answer),
    }
}

/// Until a whole number of steps has passed since the password came: the time of the answer does
/// not reveal what was found.
async fn delay(began_ns: u64) {
    let step = FTP_WRONG_STEP.as_nanos() as u64;
    let taken = monotonic_ns().saturating_sub(began_ns);
    let rest = Duration::from_nanos(step - taken % step);
    if let Some(left) = Deadline::after(rest).left() {
        tokio::time::sleep(left).await;
    }
}

async fn judge(
    s: &Session,
    name: &[u8],
    password: &[u8],
) -> Result<std::sync::Arc<Person>, Refused> {
    let (Ok(name), Ok(password)) = (std::str::from_utf8(name), std::str::from_utf8(password))
    else {
        return Err(Refused::Wrong);
    };
    let files = &s.core.files;
    files.sign_ins.password(&files.identity, s.peer.ip(), name, password).await
}

/// Signs in a user after the password was verified.
async fn enter(s: &mut Session, person: std::sync::Arc<Person>) -> Outcome {
    s.users = s.core.files.identity.generation();
    let transport = if s.state.secure { Transport::Tls } else { Transport::Plain };
    let (service, home) = (s.core.files.service, person.home.clone());
    let who = Caller::new(person, (s.peer, s.client), transport, service);
    let home = match home.as_deref().map(VPath::parse) {
        Some(Ok(home)) => {
            let found = s.core.find(&who, &home, Links::Follow).await;
            let there = match found {
                Ok(found) => s.may_enter(&who, &found).await.is_ok(),
                Err(_) => false,
            };
            there.then_some(home)
        }
        _ => None,
    };
    let (root, here) = match (s.settings.login_root, home) {
        (LoginRoot::Shares, home) => (VPath::ROOT, home.unwrap_or(VPath::ROOT)),
        (LoginRoot::Home, Some(home)) => (home, VPath::ROOT),
        (LoginRoot::Home, None) => return Err(Answer::of(530, "No home directory.")),
    };
    let who = who.rooted(root.clone());
    s.state.sign_in(root, here);
    s.span.by(&who);
    let answer = Answer::with(230, format!("Signed in as {}.", who.person.name));
    s.who = Some(who);
    Ok(answer)
}

/// REIN: resets the session, with the same protection of commands.
pub(super) fn reinitialize(s: &mut Session) -> Outcome {
    s.state.reinitialize();
    s.who = None;
    s.plan = Default::default();
    Ok(Answer::of(220, "Sign in with USER."))
}

/// AUTH (RFC 4217 §4). `SSL` is taken for the same: the handshake negotiates the version.
pub(super) fn auth(s: &mut Session, mechanism: &[u8]) -> Next {
    let mechanism = mechanism.trim_ascii().to_ascii_uppercase();
    let known: [&[u8]; 4] = [b"TLS", b"TLS-C", b"TLS-P", b"SSL"];
    let answer = match &s.server.tls {
        _ if s.settings.tls == TlsUse::Off => Answer::of(502, "TLS is not offered."),
        None => Answer::of(431, "No certificate available."),
        Some(_) if s.state.secure => Answer::of(503, "This connection is already encrypted."),
        Some(_) if !known.contains(&mechanism.as_slice()) => Answer::of(504, "AUTH TLS, please."),
        Some(tls) => {
            s.tls = Some(tls.for_one_client());
            // The user had signed in unencrypted (RFC 4217 §4).
            s.state.sign_out();
            s.who = None;
            s.state.protect = mechanism == b"TLS-P";
            return Next::Secure(Answer::of(234, "Begin with TLS."));
        }
    };
    Next::Answer(answer)
}

/// PBSZ: 0 is the only size that TLS has (RFC 4217 §8).
pub(super) fn pbsz(s: &mut Session, size: u64) -> Outcome {
    if !s.state.secure {
        return Err(Answer::of(503, "AUTH TLS first."));
    }
    s.state.sized = true;
    match size {
        0 => Ok(Answer::of(200, "PBSZ=0")),
        _ => Ok(Answer::of(200, "PBSZ=0, for TLS has no other.")),
    }
}

/// PROT (RFC 4217 §9).
pub(super) fn prot(s: &mut Session, level: u8) -> Outcome {
    if !s.state.secure {
        return Err(Answer::of(503, "AUTH TLS first."));
    }
    if !s.state.sized {
        return Err(Answer::of(503, "PBSZ 0 first."));
    }
    match level {
        b'P' => {
            s.state.protect = true;
            Ok(Answer::of(200, "Data will be encrypted."))
        }
        b'C' if s.settings.protect_data => Err(Answer::of(534, "Data must be encrypted.")),
        b'C' => {
            s.state.protect = false;
            Ok(Answer::of(200, "Data will not be encrypted."))
        }
        b'S' | b'E' => Err(Answer::of(536, "Protection level not supported.")),
        _ => Err(Answer::of(504, "PROT C or PROT P, please.")),
    }
}

/// CCC: refused, commands stay encrypted (RFC 4217 §6 lets the server refuse): an attacker could
/// inject commands into an unencrypted connection.
pub(super) fn ccc(s: &Session) -> Outcome {
    match s.state.secure {
        true => Err(Answer::of(534, "Commands stay encrypted.")),
        false => Err(Answer::with(
            533,
            format!("{} requires an encrypted control connection.", Verb::Ccc.name()),
        )),
    }
}
