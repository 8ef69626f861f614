//! Where a service is that transfers files, and how it is accessed: the URLs of [`Target`] from
//! `ftp:` to `webdavs:`.
//!
//! A password need not be in the URL, where a list of processes shows it: `?password-file=` and
//! `?password-env=` say where it is, and [`PASSWORD_ENV`] is looked at without being named.
//!
//! [`Target`]: crate::client::Target

use super::super::ClientError;
pub use base::protocol::Scheme;
use base::protocol::ports;
use base::text::decimal;
use base::text::{UNRESERVED, percent};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// The environment variable with the password, unless the URL specifies another source.
pub const PASSWORD_ENV: &str = "PLIMSOLL_LAB_PASSWORD";

/// Where a password is.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// In [`PASSWORD_ENV`], if anywhere.
    Unsaid,
    /// Here.
    Given(String),
    /// In a file, without its line end.
    File(PathBuf),
    /// In an environment variable of this name.
    Env(String),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsaid => f.write_str("Unsaid"),
            Self::Given(_) => f.write_str("Given(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Env(name) => f.debug_tuple("Env").field(name).finish(),
        }
    }
}

impl Secret {
    /// The password.
    ///
    /// # Errors
    /// The file cannot be read, or the variable is not set.
    pub fn read(&self) -> Result<String, ClientError> {
        match self {
            Self::Given(password) => Ok(password.clone()),
            Self::Unsaid => Ok(std::env::var(PASSWORD_ENV).unwrap_or_default()),
            Self::Env(name) => std::env::var(name).map_err(|_| {
                ClientError::Target(name.clone(), "is not a set environment variable")
            }),
            Self::File(path) => {
                let fail = ClientError::io(format!("read the password file {}", path.display()));
                let text = std::fs::read_to_string(path).map_err(fail)?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}

/// How the server is verified, and what is to be negotiated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// Fingerprint of the certificate (SHA-256 in hexadecimal) or of the host key (`SHA256:…`).
    pub pin: Option<String>,
    /// Take any certificate or host key.
    pub insecure: bool,
    /// Authorities in PEM, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The cipher, as `aes128-gcm`.
    pub cipher: Option<String>,
    /// The version of TLS, `1.2` or `1.3`.
    pub tls: Option<String>,
    /// FTP that begins with TLS.
    pub implicit: bool,
}

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceAt {
    /// Which.
    pub scheme: Scheme,
    /// The user.
    pub user: Option<String>,
    /// With what.
    pub secret: Secret,
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The folder, from `/`, without a slash at its end; `/` itself is empty.
    pub path: String,
    /// The terms.
    pub terms: Terms,
}

impl ServiceAt {
    /// Reads what follows `SCHEME:`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(scheme: Scheme, rest: &str) -> Result<Self, &'static str> {
        let rest = rest.strip_prefix("//").ok_or("needs // and a host")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').ok_or("needs the path of a share")?;
        let (user, server) = match authority.rsplit_once('@') {
            Some((user, server)) => (Some(user), server),
            None => (None, authority),
        };
        let (user, secret) = match user.map(|u| u.split_once(':').ok_or(u)) {
            None => (None, Secret::Unsaid),
            Some(Err(user)) => (Some(decoded(user)?), Secret::Unsaid),
            Some(Ok((user, password))) => (Some(decoded(user)?), Secret::Given(decoded(password)?)),
        };
        let mut at = Self {
            scheme,
            user,
            secret,
            host: String::new(),
            port: 0,
            path: String::new(),
            terms: Terms::default(),
        };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            at.option(pair)?;
        }
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, decimal(port).ok_or("has a port that is not a number")?)
            }
            _ if at.terms.implicit => (server, ports::FTPS.number),
            _ => (server, scheme.port()),
        };
        (at.host, at.port) = (host.trim_matches(['[', ']']).to_owned(), port);
        let path = decoded(path)?;
        if path.contains(['\r', '\n', '\0']) || path.split('/').any(|part| part == "..") {
            return Err("has an invalid path");
        }
        at.path = format!("/{}", path.trim_matches('/')).trim_end_matches('/').to_owned();
        if at.host.is_empty() { Err("has no host") } else { at.checked() }
    }

    fn option(&mut self, pair: &str) -> Result<(), &'static str> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        match (name, value.is_empty()) {
            ("insecure", true) => self.terms.insecure = true,
            ("implicit", true) => self.terms.implicit = true,
            ("pin", false) => self.terms.pin = Some(value),
            ("ca", false) => self.terms.ca = Some(value.into()),
            ("cipher", false) => self.terms.cipher = Some(value),
            ("tls", false) => self.terms.tls = Some(value),
            ("password-file", false) => self.secret = Secret::File(value.into()),
            ("password-env", false) => self.secret = Secret::Env(value),
            _ => {
                return Err("has an option other than pin=, insecure, ca=, cipher=, tls=, \
                            implicit, password-file= and password-env=");
            }
        }
        Ok(())
    }

    fn checked(self) -> Result<Self, &'static str> {
        let terms = &self.terms;
        if !self.scheme.is_secure() && *terms != Terms::default() {
            return Err("has an option that requires TLS or SSH");
        }
        if terms.implicit && self.scheme != Scheme::Ftps {
            return Err("is not FTP, which alone can be implicit");
        }
        if self.scheme.plain().is_none() && (terms.tls.is_some() || terms.ca.is_some()) {
            return Err("is not TLS, which alone has versions and authorities");
        }
        if self.scheme == Scheme::Sftp && self.user.is_none() {
            return Err("needs a user");
        }
        if terms.insecure && terms.pin.is_some() {
            return Err("has a pin and is insecure: choose one");
        }
        Ok(self)
    }

    /// The same folder without TLS: with FTP at the same port, else at the port that is as far
    /// from its standard one as this.
    ///
    /// # Errors
    /// Why not.
    pub fn without_tls(&self) -> Result<Self, &'static str> {
        let plain = self.scheme.plain().ok_or("its protocol is always encrypted")?;
        let has_secret = self.user.is_some() || self.secret != Secret::Unsaid;
        let address = self.host.parse().unwrap_or(IpAddr::from([0; 16]));
        if has_secret && self.host != "localhost" && !address.is_loopback() {
            return Err("the password would leave this machine unencrypted");
        }
        let offset = match self.scheme {
            Scheme::Ftps if self.terms.implicit => self.port.checked_sub(ports::FTPS.number),
            scheme => self.port.checked_sub(scheme.port()),
        };
        let port = offset.and_then(|offset| plain.port().checked_add(offset));
        let port = port.ok_or("the port without TLS is not known")?;
        let terms = Terms::default();
        Ok(Self { scheme: plain, port, terms, ..self.clone() })
    }

    /// The whole URL, with the password if that is in it: for an agent.
    pub fn url(&self) -> String {
        self.written(true)
    }

    fn written(&self, with_password: bool) -> String {
        let mut out = format!("{}://", self.scheme.name());
        if let Some(user) = &self.user {
            out += &encoded(user, false);
            if let (Secret::Given(password), true) = (&self.secret, with_password) {
                out += &format!(":{}", encoded(password, false));
            }
            out.push('@');
        }
        let host = &self.host;
        out += &if host.contains(':') { format!("[{host}]") } else { host.clone() };
        out += &format!(":{}{}", self.port, encoded(&self.path, true));
        if self.path.is_empty() {
            out.push('/');
        }
        let mut separator = '?';
        let mut option = |name: &str, value: Option<&str>| {
            out.push(std::mem::replace(&mut separator, '&'));
            out += name;
            if let Some(value) = value {
                out += &format!("={}", encoded(value, true));
            }
        };
        let terms = &self.terms;
        [("insecure", terms.insecure), ("implicit", terms.implicit)]
            .into_iter()
            .filter(|o| o.1)
            .for_each(|(name, _)| option(name, None));
        let path = |path: &PathBuf| path.display().to_string();
        let (ca, file, env) = match &self.secret {
            Secret::File(file) => (terms.ca.as_ref().map(path), Some(path(file)), None),
            Secret::Env(name) => (terms.ca.as_ref().map(path), None, Some(name.clone())),
            _ => (terms.ca.as_ref().map(path), None, None),
        };
        let values = [
            ("pin", terms.pin.clone()),
            ("ca", ca),
            ("cipher", terms.cipher.clone()),
            ("tls", terms.tls.clone()),
            ("password-file", file),
            ("password-env", env),
        ];
        for (name, value) in values {
            value.iter().for_each(|value| option(name, Some(value)));
        }
        out
    }
}

/// Without the password: this is what results and messages say.
impl fmt::Display for ServiceAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(false))
    }
}

/// A word of a command line without the password that a URL in it has.
pub fn without_password(word: &str) -> String {
    let Some((before, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // What parts them is a colon, or with iSCSI a percent sign.
    let parts: &[char] = if before == "iscsi" { &[':', '%'] } else { &[':'] };
    match authority.rsplit_once('@').map(|(user, server)| (user.split_once(parts), server)) {
        Some((Some((user, _)), server)) => format!("{before}://{user}@{server}{path}"),
        _ => word.to_owned(),
    }
}

/// Bytes as a URL has them (RFC 3986 §2.1); of a path the slashes stay.
pub fn encoded(text: &str, path: bool) -> String {
    percent(text.as_bytes(), if path { b"-._~/:" } else { UNRESERVED })
}

/// What a part of a URL stands for.
pub fn decoded(text: &str) -> Result<String, &'static str> {
    let wrong = "has an invalid percent-encoding";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>().ok_or(wrong)?;
        let digits = std::str::from_utf8(digits).map_err(|_| wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| wrong)
}

#[cfg(test)]
mod tests;
