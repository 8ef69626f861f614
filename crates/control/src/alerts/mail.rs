//! Mail by submission: RFC 5321 and 6409, STARTTLS of RFC 3207, PLAIN and LOGIN of RFC 4954. One
//! message, one connection; no more of SMTP than that takes.

use std::path::Path;

use base::base64;
use base::node::Shape;

use super::connect::{DeliveryError, Wire};
use super::message::Message;
use crate::state::files::random_hex;

/// The port of submission (RFC 6409 §3.1).
pub(super) const SUBMISSION: u16 = 587;
/// Lines of a mail that leave as they are (RFC 5321 §4.5.3.1.6 has 1000 with their end).
const LINE_MAX: usize = 900;
/// Bytes that one encoded word of a header carries: its line stays below 76 (RFC 2047 §2).
const WORD_MAX: usize = 42;

/// How a connection is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Security {
    None,
    StartTls,
    Tls,
}

/// The server that takes mail from us.
pub(super) struct Smtp {
    pub host: String,
    pub port: u16,
    pub security: Security,
    /// Name and password, if the server requires them.
    pub user: Option<(String, String)>,
    pub from: String,
}

/// Sends a message to all of `to`.
///
/// # Errors
/// It was delivered to none, or not to all of them.
pub(super) fn send(
    smtp: &Smtp,
    to: &[String],
    trusted: Option<&Path>,
    message: &Message,
) -> Result<(), DeliveryError> {
    let mut wire = Wire::open(&smtp.host, smtp.port)?;
    if smtp.security == Security::Tls {
        wire.secure(trusted)?;
    }
    expect(&mut wire, "the greeting", b'2')?;
    let mut offers = hello(&mut wire, message)?;
    if smtp.security == Security::StartTls {
        if !offers.iter().any(|offer| offer == "STARTTLS") {
            let why = format!("{} does not offer STARTTLS", wire.at);
            return Err(DeliveryError::Ours(why));
        }
        command(&mut wire, "STARTTLS", "STARTTLS", b'2')?;
        wire.secure(trusted)?;
        offers = hello(&mut wire, message)?;
    }
    if let Some((user, password)) = &smtp.user {
        sign_in(&mut wire, &offers, user, password)?;
    }
    command(&mut wire, &format!("MAIL FROM:<{}>", smtp.from), "the sender", b'2')?;
    let mut refused = None;
    let mut taken = 0;
    for address in to {
        match command(&mut wire, &format!("RCPT TO:<{address}>"), address, b'2') {
            Ok(_) => taken += 1,
            Err(e @ DeliveryError::Refused { .. }) => refused = Some(e),
            Err(e) => return Err(e),
        }
    }
    if let Some(error) = refused.take_if(|_| taken == 0) {
        return Err(error);
    }
    command(&mut wire, "DATA", "the mail", b'3')?;
    wire.send(&mail(smtp, to, message))?;
    expect(&mut wire, "the mail", b'2')?;
    // The mail is accepted; the reply to QUIT does not matter.
    drop(wire.send(b"QUIT\r\n"));
    match refused {
        // Those that took it must not get it again.
        Some(DeliveryError::Refused { at, said, .. }) => {
            Err(DeliveryError::Refused { at, said, again: false })
        }
        _ => Ok(()),
    }
}

/// Sends EHLO; returns the extensions of the server, in capitals.
fn hello(wire: &mut Wire, message: &Message) -> Result<Vec<String>, DeliveryError> {
    let host = message.appliance.as_str();
    let host = if Shape::Domain.check(host).is_ok() { host } else { "localhost" };
    let offers = command(wire, &format!("EHLO {host}"), "EHLO", b'2')?;
    Ok(offers.iter().map(|offer| offer.to_ascii_uppercase()).collect())
}

fn sign_in(
    wire: &mut Wire,
    offers: &[String],
    user: &str,
    password: &str,
) -> Result<(), DeliveryError> {
    let ways = offers.iter().find_map(|offer| offer.strip_prefix("AUTH"));
    let offered = |way: &str| ways.is_some_and(|ways| ways.split([' ', '=']).any(|w| w == way));
    if offered("PLAIN") || !offered("LOGIN") {
        let both = base64::encode(format!("\0{user}\0{password}").as_bytes());
        return command(wire, &format!("AUTH PLAIN {both}"), "the password", b'2').map(drop);
    }
    command(wire, "AUTH LOGIN", "AUTH", b'3')?;
    command(wire, &base64::encode(user.as_bytes()), "the user", b'3')?;
    command(wire, &base64::encode(password.as_bytes()), "the password", b'2').map(drop)
}

/// Sends a line and reads the reply. Errors never contain the line: it may be a password.
fn command(
    wire: &mut Wire,
    line: &str,
    what: &str,
    class: u8,
) -> Result<Vec<String>, DeliveryError> {
    wire.send(format!("{line}\r\n").as_bytes())?;
    expect(wire, what, class)
}

/// Takes an answer (RFC 5321 §4.2): its lines without codes, if it is of this class.
fn expect(wire: &mut Wire, what: &str, class: u8) -> Result<Vec<String>, DeliveryError> {
    let mut lines = Vec::new();
    loop {
        let line = wire.line()?;
        let (code, rest) = line.split_at_checked(3).unwrap_or((&line, ""));
        let more = rest.starts_with('-');
        lines.push(rest.get(1..).unwrap_or_default().to_owned());
        if more {
            continue;
        }
        if code.as_bytes().first() == Some(&class) {
            return Ok(lines);
        }
        let said: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
        let said = format!("{what}: {said}");
        let again = code.starts_with('4');
        return Err(DeliveryError::Refused { at: wire.at.clone(), said, again });
    }
}

/// Head and text (RFC 5322), with the end of DATA.
pub(super) fn mail(smtp: &Smtp, to: &[String], message: &Message) -> Vec<u8> {
    let text = message.text();
    let simple = text.is_ascii() && text.lines().all(|line| line.len() < LINE_MAX);
    let (encoding, body) = match simple {
        true => ("7bit", text),
        false => {
            let all = base64::encode(text.as_bytes());
            let lines: Vec<&str> = all.as_bytes().chunks(76).filter_map(ascii).collect();
            ("base64", lines.join("\n"))
        }
    };
    let domain = smtp.from.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
    let head = [
        format!("From: {}", smtp.from),
        format!("To: {}", to.join(",\r\n ")),
        format!("Subject: {}", header(&message.subject())),
        format!("Date: {}", message.date()),
        format!("Message-ID: <{}@{domain}>", random_hex::<16>()),
        "Auto-Submitted: auto-generated".to_owned(),
        "MIME-Version: 1.0".to_owned(),
        "Content-Type: text/plain; charset=utf-8".to_owned(),
        format!("Content-Transfer-Encoding: {encoding}"),
    ];
    let mut all = head.join("\r\n") + "\r\n\r\n";
    for line in body.lines() {
        // RFC 5321 §4.5.2.
        if line.starts_with('.') {
            all.push('.');
        }
        all += line;
        all += "\r\n";
    }
    all += ".\r\n";
    all.into_bytes()
}

fn ascii(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// A text as the value of a header: encoded words where it is not ASCII or too long (RFC 2047).
fn header(text: &str) -> String {
    if text.is_ascii() && text.len() < LINE_MAX {
        return text.to_owned();
    }
    let mut words = vec![String::new()];
    for letter in text.chars() {
        let full = words.last().is_none_or(|word| word.len() + letter.len_utf8() > WORD_MAX);
        if full {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    let word = |word: &String| format!("=?UTF-8?B?{}?=", base64::encode(word.as_bytes()));
    words.iter().map(word).collect::<Vec<_>>().join("\r\n ")
}
