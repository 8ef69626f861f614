//! Where an SMB share is, and how it is accessed: the URLs that begin with `smb:`.
//!
//! `smb://USER[:PASSWORD]@HOST[:PORT]/SHARE[/FOLDER][?dialect=3.1.1][&signing=aes-gmac]
//! [&cipher=aes128-gcm][&password-file=FILE][&password-env=NAME]`. Messages are signed unless
//! `signing=off`, and encrypted if there is a cipher or the server requires it. The password is
//! where that of the other services is ([`Secret`]).

use crate::client::service::at::{Secret, decoded, encoded};
use base::protocol::ports;
use std::fmt;
use wire::smb::negotiate::{Cipher, Dialect, Signing};

/// Dialects by their names in a URL.
const DIALECTS: [(&str, Dialect); 4] = [
    ("2.1", Dialect::SMB210),
    ("3.0", Dialect::SMB300),
    ("3.0.2", Dialect::SMB302),
    ("3.1.1", Dialect::SMB311),
];
/// Signing algorithms by their names in a URL.
const SIGNINGS: [(&str, Signing); 3] = [
    ("hmac-sha256", Signing::HmacSha256),
    ("aes-cmac", Signing::AesCmac),
    ("aes-gmac", Signing::AesGmac),
];
/// Ciphers by their names in a URL, as those of SFTP and TLS are written.
const CIPHERS: [(&str, Cipher); 4] = [
    ("aes128-gcm", Cipher::Aes128Gcm),
    ("aes256-gcm", Cipher::Aes256Gcm),
    ("aes128-ccm", Cipher::Aes128Ccm),
    ("aes256-ccm", Cipher::Aes256Ccm),
];

/// What of its messages a client signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sign {
    /// All, by the best algorithm that the server has.
    #[default]
    Best,
    /// All, by this algorithm.
    By(Signing),
    /// None; a server that requires signatures refuses it.
    Off,
}

/// Where a share is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmbAt {
    /// The user.
    pub user: String,
    /// With what.
    pub secret: Secret,
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The share.
    pub share: String,
    /// A folder in it, without slashes at its ends; empty for the share itself.
    pub path: String,
    /// The only dialect that is offered.
    pub dialect: Dialect,
    /// What is signed.
    pub sign: Sign,
    /// What everything is encrypted with; `None` if only what the server requires is encrypted.
    pub cipher: Option<Cipher>,
}

impl SmbAt {
    /// Reads what follows `smb:`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(rest: &str) -> Result<Self, &'static str> {
        let rest = rest.strip_prefix("//").ok_or("needs // and a host")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').ok_or("needs the name of a share")?;
        let (user, server) = authority.rsplit_once('@').ok_or("needs a user")?;
        let (user, secret) = match user.split_once(':') {
            Some((user, password)) => (user, Secret::Given(decoded(password)?)),
            None => (user, Secret::Unsaid),
        };
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| "has a port that is not a number")?)
            }
            _ => (server, ports::SMB.number),
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        let path = decoded(path.trim_matches('/'))?;
        if path.contains(['\0', '\\']) || path.split('/').any(|part| part == "..") {
            return Err("has an invalid path");
        }
        let (share, path) = path.split_once('/').unwrap_or((&path, ""));
        let mut at = Self {
            user: decoded(user)?,
            secret,
            host,
            port,
            share: share.to_owned(),
            path: path.to_owned(),
            dialect: Dialect::SMB311,
            sign: Sign::default(),
            cipher: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            at.option(pair)?;
        }
        at.checked()
    }

    fn option(&mut self, pair: &str) -> Result<(), &'static str> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        match name {
            "dialect" => {
                self.dialect = by_name(&DIALECTS, &value)
                    .ok_or("has a dialect other than 2.1, 3.0, 3.0.2 and 3.1.1")?;
            }
            "signing" if value == "off" => self.sign = Sign::Off,
            "signing" => {
                let signing = by_name(&SIGNINGS, &value);
                self.sign = Sign::By(
                    signing
                        .ok_or("has signing other than off, hmac-sha256, aes-cmac and aes-gmac")?,
                );
            }
            "cipher" => {
                let cipher = by_name(&CIPHERS, &value);
                self.cipher = Some(cipher.ok_or(
                    "has a cipher other than aes128-gcm, aes256-gcm, aes128-ccm and aes256-ccm",
                )?);
            }
            "password-file" => self.secret = Secret::File(value.into()),
            "password-env" => self.secret = Secret::Env(value),
            _ => {
                return Err("has an option other than dialect=, signing=, cipher=, \
                            password-file= and password-env=");
            }
        }
        Ok(())
    }

    fn checked(self) -> Result<Self, &'static str> {
        if self.host.is_empty() || self.user.is_empty() {
            return Err("needs a user and a host");
        }
        if self.share.is_empty() {
            return Err("needs the name of a share");
        }
        let signings: &[Signing] = match self.dialect {
            Dialect::SMB210 => &[Signing::HmacSha256],
            Dialect::SMB311 => &Signing::ALL,
            _ => &[Signing::AesCmac],
        };
        let ciphers: &[Cipher] = match self.dialect {
            Dialect::SMB210 => &[],
            Dialect::SMB311 => &Cipher::ALL,
            _ => &[Cipher::Aes128Ccm],
        };
        if matches!(self.sign, Sign::By(signing) if !signings.contains(&signing)) {
            return Err("has signing that its dialect does not have");
        }
        if self.cipher.is_some_and(|cipher| !ciphers.contains(&cipher)) {
            return Err("has a cipher that its dialect does not have");
        }
        Ok(self)
    }

    /// The whole URL, with the password if that is in it: for an agent.
    pub fn url(&self) -> String {
        self.written(true)
    }

    fn written(&self, with_password: bool) -> String {
        let mut out = format!("smb://{}", encoded(&self.user, false));
        if let (Secret::Given(password), true) = (&self.secret, with_password) {
            out += &format!(":{}", encoded(password, false));
        }
        let host = &self.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        out += &format!("@{host}:{}/{}", self.port, encoded(&self.share, false));
        if !self.path.is_empty() {
            out += &format!("/{}", encoded(&self.path, true));
        }
        let sign = match self.sign {
            Sign::Best => None,
            Sign::By(signing) => Some(name_of(&SIGNINGS, signing)),
            Sign::Off => Some("off"),
        };
        let dialect = Some(self.dialect).filter(|dialect| *dialect != Dialect::SMB311);
        let (file, env) = match &self.secret {
            Secret::File(file) => (Some(encoded(&file.display().to_string(), true)), None),
            Secret::Env(name) => (None, Some(encoded(name, true))),
            Secret::Given(_) | Secret::Unsaid => (None, None),
        };
        let options = [
            ("dialect", dialect.map(|dialect| name_of(&DIALECTS, dialect).to_owned())),
            ("signing", sign.map(str::to_owned)),
            ("cipher", self.cipher.map(|cipher| name_of(&CIPHERS, cipher).to_owned())),
            ("password-file", file),
            ("password-env", env),
        ];
        let mut separator = '?';
        for (name, value) in options {
            if let Some(value) = value {
                out += &format!("{}{name}={value}", std::mem::replace(&mut separator, '&'));
            }
        }
        out
    }
}

/// Without the password: this is what results and messages say.
impl fmt::Display for SmbAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(false))
    }
}

fn by_name<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|row| row.0 == name).map(|row| row.1)
}

fn name_of<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|row| row.1 == value).map_or("?", |row| row.0)
}

#[cfg(test)]
mod tests;
