//! Forms of texts, each with a pure check. What only the running machine can know (is there such a
//! file, such a host) is not asked here.

use std::net::IpAddr;

use crate::base64;
use crate::text::decimal;

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One line of anything.
    Line,
    /// Any text, with line ends.
    Lines,
    /// A name of something: letters, digits, `.`, `_`, `-`, beginning with a letter or digit.
    Name,
    /// The name of a host, or an address.
    Host,
    /// An address, version 4 or 6.
    Address,
    /// An address with the length of its prefix, as 10.0.0.0/8.
    Network,
    /// A DNS domain.
    Domain,
    /// An absolute path of the machine.
    Path,
    /// An address of mail.
    Email,
    /// A URL with http or https.
    Url,
    /// An SSH public key, as in `authorized_keys`, without options.
    SshKey,
    /// A rule of exports(5): CLIENT(OPTIONS).
    ExportRule,
    /// A permission: `SCOPE:read`, `SCOPE:change`, or `*`.
    Permission,
    /// PEM blocks.
    Pem,
}

impl Shape {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Lines => "lines",
            Self::Name => "name",
            Self::Host => "host",
            Self::Address => "address",
            Self::Network => "network",
            Self::Domain => "domain",
            Self::Path => "path",
            Self::Email => "email",
            Self::Url => "url",
            Self::SshKey => "ssh-key",
            Self::ExportRule => "export-rule",
            Self::Permission => "permission",
            Self::Pem => "pem",
        }
    }

    /// What is good, for people.
    pub fn described(self) -> &'static str {
        match self {
            Self::Line => "one line of text",
            Self::Lines => "text",
            Self::Name => {
                "a name (letters, digits, '.', '_' and '-', starting with a letter or digit)"
            }
            Self::Host => "a host name or address",
            Self::Address => "an IP address, for example 10.0.0.7 or fd00::7",
            Self::Network => "a network, for example 10.0.0.0/8 or fd00::/64",
            Self::Domain => "a domain, for example example.org",
            Self::Path => "an absolute path, for example /srv/data",
            Self::Email => "an e-mail address, for example anna@example.org",
            Self::Url => "a URL, for example https://example.org/hook",
            Self::SshKey => "an SSH public key, for example ssh-ed25519 AAAA… anna",
            Self::ExportRule => "a rule CLIENT(OPTIONS), for example 10.0.0.0/24(rw,root_squash)",
            Self::Permission => "SCOPE:read, SCOPE:change or *",
            Self::Pem => "PEM, from -----BEGIN to -----END",
        }
    }

    /// Checks a text.
    ///
    /// # Errors
    /// One sentence that states what would be valid.
    pub fn check(self, text: &str) -> Result<(), String> {
        let many_lines = matches!(self, Self::Lines | Self::Pem);
        let forbidden =
            |c: char| c.is_control() && !(many_lines && matches!(c, '\n' | '\r' | '\t'));
        if text.chars().any(forbidden) {
            return Err("it contains a control character".to_owned());
        }
        let good = match self {
            Self::Line | Self::Lines => true,
            Self::Name => is_name(text),
            Self::Host => is_address(text) || is_host(text),
            Self::Address => is_address(text),
            Self::Network => is_network(text),
            Self::Domain => is_host(text),
            Self::Path => text.starts_with('/') && !text.split('/').any(|part| part == ".."),
            Self::Email => text.rsplit_once('@').is_some_and(|(who, at)| {
                !who.is_empty() && !who.contains(char::is_whitespace) && is_host(at)
            }),
            Self::Url => is_url(text),
            Self::SshKey => is_ssh_key(text),
            Self::ExportRule => is_export_rule(text),
            Self::Permission => is_permission(text),
            Self::Pem => {
                let text = text.trim();
                text.starts_with("-----BEGIN ") && text.ends_with("-----")
            }
        };
        if good { Ok(()) } else { Err(format!("it is not {}", self.described())) }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphanumeric())
        && text.chars().all(|c| c.is_alphanumeric() || "._-".contains(c))
}

fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    decimal::<u8>(length).is_some_and(|length| length <= most)
}

/// RFC 1123 §2.1, and the underscore that is in use.
fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    text.len() <= 253 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or("");
        !host.is_empty() && !text.contains(char::is_whitespace) && !host.contains('@')
    })
}

/// RFC 4253 §6.6: the blob begins with the length of the type's name and the name.
fn is_ssh_key(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let (Some(kind), Some(blob)) = (words.next(), words.next()) else { return false };
    let known = ["ssh-ed25519", "ssh-rsa", "sk-ssh-ed25519@openssh.com"].contains(&kind)
        || kind.starts_with("ecdsa-sha2-nistp")
        || kind == "sk-ecdsa-sha2-nistp256@openssh.com";
    let letters = blob.trim_end_matches('=').as_bytes();
    let Some(bytes) = base64::decode(letters) else { return false };
    let length = (kind.len() as u32).to_be_bytes();
    known
        && bytes
            .strip_prefix(length.as_slice())
            .is_some_and(|rest| rest.starts_with(kind.as_bytes()) && rest.len() > kind.len())
}

/// The form only: what options there are is known where the rules are.
fn is_export_rule(text: &str) -> bool {
    let (client, options) = match text.split_once('(') {
        Some((client, rest)) => (client, rest.strip_suffix(')')),
        None => (text, Some("")),
    };
    let plain = |part: &str| !part.contains(|c: char| c.is_whitespace() || "()".contains(c));
    !client.is_empty() && plain(client) && options.is_some_and(plain)
}

fn is_permission(text: &str) -> bool {
    let scope = |scope: &str| {
        scope == "*"
            || !scope.is_empty()
                && scope.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    match text.split_once(':') {
        Some((name, level)) => scope(name) && matches!(level, "read" | "change"),
        None => text == "*",
    }
}
