//! The configuration of certificates, and its problems.

use std::collections::BTreeMap;

use base::clock::NS_PER_S;
use base::node::Path;
use base::units::utc;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::acme::{Acme, Proof};
use super::node::OWN;
use super::pair::{Chain, Pair, Wrong};
use crate::tree::{Document, Problem, Transition};

/// All of it.
#[derive(Default)]
pub struct Settings {
    /// Which is to be shown.
    pub in_use: String,
    /// Names in addition to the host's own.
    pub names: Vec<String>,
    /// All but the server's own.
    pub items: BTreeMap<String, Item>,
}

/// One certificate.
#[derive(Clone, PartialEq, Eq)]
pub enum Item {
    /// Set as chain and key.
    Supplied {
        /// PEM.
        chain: Option<String>,
        /// PEM.
        key: Option<String>,
    },
    /// By ACME.
    Acme(Acme),
}

/// The node of certificates.
pub fn certificates() -> Path {
    Path::of(&["configuration", "certificates"])
}

impl Settings {
    /// The certificates of `document`; `secret` returns the secrets that it refers to.
    pub fn of(document: &Document, secret: &dyn Fn(&Path, &str) -> Option<String>) -> Self {
        let at = certificates();
        let names = document.items(&at).into_iter().filter(|name| name != OWN);
        let items = names.map(|name| {
            let item = item(document, &at.join(&name), secret);
            (name, item)
        });
        Self {
            in_use: document.text(&at, "in_use").unwrap_or_else(|| OWN.to_owned()),
            names: document.texts(&at, "names"),
            items: items.collect(),
        }
    }
}

fn item(document: &Document, at: &Path, secret: &dyn Fn(&Path, &str) -> Option<String>) -> Item {
    if document.text(at, "source").as_deref() != Some("acme") {
        return Item::Supplied { chain: document.text(at, "chain"), key: secret(at, "key") };
    }
    let port = document.integer(at, "http_port").and_then(|port| u16::try_from(port).ok());
    let http = document.text(at, "challenge").as_deref() == Some("http-01");
    Item::Acme(Acme {
        directory: document.text(at, "directory").unwrap_or_default(),
        agreed: document.bool(at, "terms_agreed"),
        contacts: document.texts(at, "contacts"),
        domains: document.texts(at, "domains"),
        proof: port.filter(|_| http).map_or(Proof::Tls, Proof::Http),
        authorities: document.text(at, "authorities"),
    })
}

/// What is wrong with the configuration that is to be. What is not there yet is not wrong: it may
/// come from another server, without its secrets.
pub fn check(transition: &Transition<'_>, now_ns: u64) -> Vec<Problem> {
    let (at, new) = (certificates(), transition.new);
    if !transition.old.differs_in(new, &at) {
        return Vec::new();
    }
    let wanted = Settings::of(new, &|path, property| transition.secret(path, property));
    let mut problems = Vec::new();
    if wanted.in_use != OWN && !wanted.items.contains_key(&wanted.in_use) {
        let sentence = format!("unknown certificate {:?}", wanted.in_use);
        let hint = "set in_use to another one, in the same commit if need be";
        problems.push(Problem::conflict(&at, &sentence, hint).property("in_use"));
    }
    for (name, item) in &wanted.items {
        let at = at.join(name);
        let problem = match item {
            _ if new.text(&at, "source").as_deref() == Some(OWN) => {
                let sentence = "there is only one self-signed certificate";
                Some(Problem::new(&at, sentence, "choose supplied or acme").property("source"))
            }
            Item::Supplied { chain, key } => {
                let changed =
                    |name| transition.old.set_value(&at, name) != new.set_value(&at, name);
                let look = changed("chain") || changed("key");
                let pair = (chain.as_deref(), key.as_deref());
                look.then(|| supplied(pair, now_ns / NS_PER_S).err()).flatten().map(|wrong| {
                    let property = if wrong.key { "key" } else { "chain" };
                    Problem::new(&at, &wrong.sentence, wrong.hint).property(property)
                })
            }
            Item::Acme(acme) => order(&at, acme).err(),
        };
        problems.extend(problem);
    }
    problems
}

fn supplied((chain, key): (Option<&str>, Option<&str>), now: u64) -> Result<(), Wrong> {
    let Some(chain) = chain else { return Ok(()) };
    let facts = match key {
        Some(key) => Pair::read(chain, key)?.facts,
        None => Chain::read(chain)?.facts,
    };
    if facts.ends <= now {
        let sentence = format!("the certificate expired at {} UTC", utc(facts.ends.cast_signed()));
        return Err(Wrong { key: false, sentence, hint: "request a new one" });
    }
    Ok(())
}

fn order(at: &Path, acme: &Acme) -> Result<(), Problem> {
    let wrong = |property: &str, sentence: &str, hint: &str| {
        Err(Problem::new(at, sentence, hint).property(property))
    };
    if acme.domains.is_empty() {
        return wrong("domains", "it has no names", "set the names to include");
    }
    if !acme.directory.starts_with("https://") {
        return wrong("directory", "an ACME server uses https", "use https://");
    }
    if let Some(pem) = &acme.authorities {
        let all = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        if all.is_ok_and(|all| !all.is_empty()) {
            return Ok(());
        }
        return wrong("authorities", "it contains no certificate", "supply the PEM of the CA");
    }
    Ok(())
}
