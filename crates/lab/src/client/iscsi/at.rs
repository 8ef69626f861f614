//! Where a logical unit is, and how it is accessed: the URLs that begin with `iscsi:`, as libiscsi
//! has them.
//!
//! `iscsi://[USER%SECRET@]HOST[:PORT]/TARGET/LUN[?digests=header,data][&password-file=FILE]
//! [&password-env=NAME][&target-user=USER][&target-password-file=FILE]`. With a secret for the
//! target this has to prove itself, too.

use crate::client::service::at::{Secret, decoded, encoded};
use base::protocol::ports;
use std::fmt;
use std::path::PathBuf;
use wire::iscsi::Digests;
use wire::scsi::lun::Lun;

/// Where a logical unit is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IscsiAt {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// iSCSI name of the target.
    pub target: String,
    /// Number of the unit; it has an address.
    pub lun: u16,
    /// The user for CHAP; `None` for no authentication.
    pub user: Option<String>,
    /// With what.
    pub secret: Secret,
    /// What the target proves itself with: its name, and the file with its secret.
    pub own: Option<(String, PathBuf)>,
    /// Checksums that are asked for.
    pub digests: Digests,
}

impl IscsiAt {
    /// Reads what follows `iscsi:`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(rest: &str) -> Result<Self, &'static str> {
        let rest = rest.strip_prefix("//").ok_or("needs // and a host")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) =
            rest.split_once('/').ok_or("needs a target and the number of a unit")?;
        let (target, lun) = path.split_once('/').ok_or("needs the number of a unit")?;
        let lun: u16 = lun.parse().map_err(|_| "has a unit that is not a number")?;
        Lun::of(lun).ok_or("has a unit above 16383, the highest number with an address")?;
        let (user, server) = match authority.rsplit_once('@') {
            Some((user, server)) => (Some(user), server),
            None => (None, authority),
        };
        let (user, secret) = match user.map(|user| user.split_once(['%', ':']).ok_or(user)) {
            None => (None, Secret::Unsaid),
            Some(Err(user)) => (Some(user.to_owned()), Secret::Unsaid),
            Some(Ok((user, secret))) => (Some(user.to_owned()), Secret::Given(decoded(secret)?)),
        };
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| "has a port that is not a number")?)
            }
            _ => (server, ports::ISCSI.number),
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        if host.is_empty() || target.is_empty() {
            return Err("has no host, or no target");
        }
        let (target, own, digests) = (target.to_owned(), None, Digests::default());
        let mut at = Self { host, port, target, lun, user, secret, own, digests };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            at.option(pair)?;
        }
        if at.own.is_some() && at.user.is_none() {
            return Err("asks the target to prove itself to nobody: it needs a user");
        }
        Ok(at)
    }

    fn option(&mut self, pair: &str) -> Result<(), &'static str> {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        let own = |own: &Option<(String, PathBuf)>| own.clone().unwrap_or_default();
        match name {
            "digests" => {
                self.digests = match value.as_str() {
                    "none" => Digests { header: false, data: false },
                    "header" => Digests { header: true, data: false },
                    "data" => Digests { header: false, data: true },
                    "header,data" => Digests { header: true, data: true },
                    _ => return Err("has digests other than none, header, data and header,data"),
                };
            }
            "password-file" => self.secret = Secret::File(value.into()),
            "password-env" => self.secret = Secret::Env(value),
            "target-user" => self.own = Some((value, own(&self.own).1)),
            "target-password-file" => self.own = Some((own(&self.own).0, value.into())),
            _ => {
                return Err("has an option other than digests=, password-file=, password-env=, \
                            target-user= and target-password-file=");
            }
        }
        Ok(())
    }

    /// The address of the unit: above 255 in the flat space format.
    pub fn address(&self) -> Lun {
        Lun::of(self.lun).unwrap_or_default()
    }

    /// The whole URL, with the secret if that is in it: for an agent.
    pub fn url(&self) -> String {
        self.written(true)
    }

    fn written(&self, with_secret: bool) -> String {
        let mut out = "iscsi://".to_owned();
        if let Some(user) = &self.user {
            out += user;
            if let (Secret::Given(secret), true) = (&self.secret, with_secret) {
                out += &format!("%{}", encoded(secret, false));
            }
            out.push('@');
        }
        let host = &self.host;
        out += &if host.contains(':') { format!("[{host}]") } else { host.clone() };
        out += &format!(":{}/{}/{}", self.port, self.target, self.lun);
        let digests = match (self.digests.header, self.digests.data) {
            (false, false) => None,
            (true, false) => Some("header".to_owned()),
            (false, true) => Some("data".to_owned()),
            (true, true) => Some("header,data".to_owned()),
        };
        let path = |path: &PathBuf| encoded(&path.display().to_string(), true);
        let (file, name) = match &self.secret {
            Secret::File(file) => (Some(path(file)), None),
            Secret::Env(name) => (None, Some(encoded(name, true))),
            Secret::Given(_) | Secret::Unsaid => (None, None),
        };
        let own = self.own.as_ref();
        let options = [
            ("digests", digests),
            ("password-file", file),
            ("password-env", name),
            ("target-user", own.map(|(user, _)| encoded(user, true))),
            ("target-password-file", own.map(|(_, file)| path(file))),
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

/// Without the secret: this is what results and messages say.
impl fmt::Display for IscsiAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(false))
    }
}

#[cfg(test)]
mod tests;
