//! The announcement of `serve` when it is ready: for people, or as one JSON line for programs.

use std::path::PathBuf;

use base::protocol::{Protocol, Service, ShareMode};
use base::text::decimal;
use control::appliance::{Access, Appliance, ShareStatus, Status};
use control::certificates::node::OWN;
use control::state::SOCKET;
use control::state::files::write_atomic;
use serde_json::{Map, Value, json};
use service::instance::Condition;
use service::luns::ways::LunAccess;
use service::reach::host;
use service::running::Running;

use super::manager::logged;
use crate::out::{self, Failure, OrFailure};

/// The file of the state directory that has the first sign-in where standard output is a log.
pub const FIRST_SIGN_IN: &str = "first-sign-in";

/// Everything that is announced.
pub struct Announcement<'a> {
    /// Whether it is one line of JSON.
    pub json: bool,
    /// What runs.
    pub running: &'a Running,
    /// Path of the one-time sign-in.
    pub login: String,
    /// Name and password of a user that this start has created.
    pub first: Option<(&'a str, &'a str)>,
}

impl Announcement<'_> {
    /// Prints it. With `--announce json` standard output gets that line alone; a new password
    /// goes to standard error then.
    ///
    /// # Errors
    /// If standard output does not take it.
    pub fn print(&self) -> Result<(), Failure> {
        let status = self.running.status();
        let at = self.running.admin.get().map(|(at, _)| host(*at)).unwrap_or_default();
        let (admin, login) = (format!("https://{at}/"), format!("https://{at}{}", self.login));
        if self.json {
            if let Some((user, password)) = self.first {
                out::note(&format!(
                    "plimsoll: created the user {user} with the password {password}"
                ));
            }
            let line = self.line(&status, &admin, &login);
            return out::print(&format!("{line}\n"));
        }
        let mut text = String::new();
        for share in &status.shares {
            let how = if share.read_only { ", read only" } else { "" };
            text += &format!("plimsoll: serving {} as \"{}\"{how}\n\n", share.dir, share.name);
            for access in &share.access {
                let protocol = Protocol::by_id(&access.protocol);
                // What needs no sign-in is mounted.
                let mounts =
                    protocol.is_some_and(|one| one.service().shares() == Some(ShareMode::Export));
                text += &field(if mounts { "mount it" } else { &access.protocol }, &access.mount);
                text += &if mounts { field("", &access.url) } else { String::new() };
                text += &access.note.as_deref().map_or(String::new(), |note| field("", note));
            }
        }
        text += &self.luns();
        text += &field("watch it", &admin);
        text +=
            &field("", &format!("certificate SHA-256 {}", self.running.certificates.fingerprint()));
        text += &self.certificate_file();
        text += &self.sign_in(&login)?;
        text += &field("files", &status.acting_as.note);
        text += &field("state", &self.running.parts.state.display().to_string());
        if !logged() {
            text += &field("end", "press Ctrl-C, or send SIGTERM to this process");
        }
        out::print(&text)
    }

    /// Every way to reach what is served, and its administration.
    fn line(&self, status: &Status, admin: &str, login: &str) -> Value {
        let state = &self.running.parts.state;
        let of = out::shell_quote(&state.to_string_lossy());
        json!({
            "pid": std::process::id(),
            "admin": admin,
            "login": login,
            "certificate": self.own_certificate(),
            "state": state,
            "socket": state.join(SOCKET),
            "cli": format!("plimsoll cli --state {of}"),
            "shares": by_name(&status.shares, |share| urls(&self.open_ways(share))),
            "access": by_name(&status.shares, |share| ways(&self.open_ways(share))),
            "luns": luns(&self.luns_served()),
        })
    }

    fn luns_served(&self) -> Vec<LunAccess> {
        if self.is_online(Service::Iscsi) {
            self.running.services.iscsi.access()
        } else {
            Vec::new()
        }
    }

    /// Whether clients can connect.
    fn is_online(&self, service: Service) -> bool {
        let mut services = self.running.services.all.iter();
        services.any(|one| {
            one.service().id() == service && matches!(one.condition(), Condition::Online(..))
        })
    }

    /// The ways to a share that are open now: a disabled service has some for the status page.
    fn open_ways<'s>(&self, share: &'s ShareStatus) -> Vec<&'s Access> {
        let is_open = |access: &&Access| {
            let protocol = Protocol::by_id(&access.protocol);
            protocol.is_none_or(|one| self.is_online(one.service()))
        };
        share.access.iter().filter(is_open).collect()
    }

    /// What clients need to verify a certificate that this server has signed.
    fn certificate_file(&self) -> String {
        let line = |path: PathBuf| {
            field("", &format!("self-signed; for clients: curl --cacert {}", path.display()))
        };
        self.own_certificate().map_or(String::new(), line)
    }

    /// The file of the server's own certificate, if that is shown.
    fn own_certificate(&self) -> Option<PathBuf> {
        let is_own = self.running.certificates.shown_name() == OWN;
        is_own.then(|| self.running.parts.state.join("certificate.pem"))
    }

    /// How logical units are used. The secret in it lets initiators in, so that it is in no log.
    fn luns(&self) -> String {
        let mut text = String::new();
        if !self.is_online(Service::Iscsi) {
            return text;
        }
        for (name, lines) in self.running.services.iscsi.ways() {
            if logged() {
                text += &field("iscsi", &format!("the unit {name}"));
                continue;
            }
            let mut title = format!("iscsi {name}");
            for line in lines {
                text += &field(&std::mem::take(&mut title), &line);
            }
        }
        text
    }

    /// How to sign in. Credentials are printed to a terminal, but never to a log: a first password
    /// is then written to a file that only root and the serving user can read.
    fn sign_in(&self, login: &str) -> Result<String, Failure> {
        let link = field("sign in", &format!("{login}  (works once)"));
        let password = |(user, password): (&str, &str), once: &str| {
            field("", &format!("user {user}, password {password}  {once}"))
        };
        match self.first {
            None if logged() => Ok(String::new()),
            None => Ok(link),
            Some(first) if !logged() => {
                Ok(link + &password(first, "(shown once; to change it: Configuration, Users)"))
            }
            Some(first) => {
                let path = self.running.parts.state.join(FIRST_SIGN_IN);
                let text = link + &password(first, "(to change it: Configuration, Users)");
                write_atomic(&path, text.as_bytes(), 0o600)
                    .or_failure("store the first sign-in")?;
                let what = format!("see {}; remove it afterwards", path.display());
                Ok(field("sign in", &what))
            }
        }
    }
}

fn field(name: &str, text: &str) -> String {
    format!("  {name:<9} {text}\n")
}

/// `{NAME: …, …}`.
fn by_name(shares: &[ShareStatus], of: impl Fn(&ShareStatus) -> Value) -> Value {
    Value::Object(shares.iter().map(|share| (share.name.clone(), of(share))).collect())
}

/// `{"nfs3": URL, …}`: the first way of a protocol by its name, others by their scheme.
fn urls(ways: &[&Access]) -> Value {
    let mut urls = Map::new();
    for Access { protocol, url, .. } in ways {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        let name = if urls.contains_key(protocol) { scheme } else { protocol };
        urls.insert(name.to_owned(), url.as_str().into());
    }
    Value::Object(urls)
}

/// `[{"protocol", "url", "port", "mount", …}, …]`: mount commands and UNC paths, too.
fn ways(ways: &[&Access]) -> Value {
    let one = |access: &&Access| {
        let mut way = json!(access);
        if let (Some(port), Some(way)) = (port(&access.url), way.as_object_mut()) {
            way.insert("port".to_owned(), port.into());
        }
        way
    };
    Value::Array(ways.iter().map(one).collect())
}

/// The port that a URL names.
fn port(url: &str) -> Option<u16> {
    let (_, rest) = url.split_once("://")?;
    let (_, port) = rest.split('/').next()?.rsplit_once(':')?;
    decimal(port)
}

/// `{"PROJECT/NAME": {"portal", "target", "lun", "url", "auth", …}, …}`. No secret is in it.
fn luns(luns: &[LunAccess]) -> Value {
    let one = |lun: &LunAccess| {
        let way = json!({
            "portal": lun.portal,
            "target": lun.target,
            "lun": lun.number,
            "url": lun.url(),
            "auth": if lun.is_open { "none" } else { "chap" },
            "user": lun.user,
            "secret_file": lun.secret_file,
        });
        (lun.name.clone(), way)
    };
    Value::Object(luns.iter().map(one).collect())
}
