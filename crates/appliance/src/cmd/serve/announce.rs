//! What `serve` says when it is ready: for people, or as one JSON line for programs.

use base::protocol::{Protocol, ShareMode};
use control::appliance::{Appliance, ShareStatus};
use control::certificates::node::OWN;
use control::state::files::write_atomic;
use serde_json::{Value, json};
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
    /// Name and password of a user who was made now.
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
            let line = json!({
                "pid": std::process::id(),
                "admin": admin,
                "login": login,
                "shares": shares(&status.shares),
            });
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

    /// What clients need to verify a certificate that this server has signed.
    fn certificate_file(&self) -> String {
        if self.running.certificates.shown_name() != OWN {
            return String::new();
        }
        let path = self.running.parts.state.join("certificate.pem");
        field("", &format!("self-signed; for clients: curl --cacert {}", path.display()))
    }

    /// How logical units are used. The secret in it lets initiators in, so that it is in no log.
    fn luns(&self) -> String {
        let mut text = String::new();
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

    /// How to sign in. What lets anybody in goes to the terminal, and into no log: a first password
    /// is put into a file then, which only root and the serving user can read.
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

/// `{NAME: {"nfs3": URL, …}, …}`.
fn shares(shares: &[ShareStatus]) -> Value {
    let ways = |share: &ShareStatus| {
        let ways = share.access.iter().map(|a| (a.protocol.clone(), a.url.clone().into()));
        (share.name.clone(), Value::Object(ways.collect()))
    };
    Value::Object(shares.iter().map(ways).collect())
}
