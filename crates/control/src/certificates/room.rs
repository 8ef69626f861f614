//! Certificates as a room of the tree: applies the configuration, selects the certificate in use,
//! reports the state of each. [`keeper`](super::keeper) does the tasks that take time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use base::clock::{Clock, NS_PER_S};
use base::limits::ACME_RETRY;
use base::node::{Path, Value};
use base::peer::host_name;
use base::units::utc;
use serde_json::{Value as Json, json};
use tokio::sync::Notify;

use super::acme::Acme;
use super::acme::issued::{Folder, Issued};
use super::node::OWN;
use super::own::Own;
use super::pair::{Pair, Wrong};
use super::shown::Shown;
use super::wanted::{Item, Settings, certificates, check};
use super::x509::Facts;
use crate::state::StateError;
use crate::state::keys::Identity;
use crate::tree::{Actor, Apply, Operational, Override, Problem, Subtree, Transition, Tree};

/// The host: the names of its certificate, and the address that a CA connects to.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its names and addresses.
    pub names: Vec<String>,
    /// Where it listens.
    pub address: IpAddr,
}

/// The room.
pub struct Certificates {
    state: PathBuf,
    pub(super) host: Host,
    pub(super) shown: Arc<Shown>,
    clock: Arc<dyn Clock>,
    /// Rung when there may be something to do.
    pub(super) wake: Notify,
    tree: OnceLock<Weak<Tree>>,
    inner: Mutex<Inner>,
    listener: OnceLock<Listener>,
}

/// Called when certificates may have changed.
type Listener = Box<dyn Fn() + Send + Sync>;

struct Inner {
    wanted: Settings,
    own: Own,
    issued: BTreeMap<String, Issued>,
    orders: BTreeMap<String, OrderState>,
    /// Why the server's own cannot be renewed.
    stuck: Option<String>,
    /// What is shown, and why it is not what is in use.
    shown: (String, Option<String>),
}

/// How orders went.
#[derive(Default, Clone)]
struct OrderState {
    /// Not before then, seconds since the epoch.
    next: u64,
    /// A renewal was requested.
    asked: bool,
    failures: u32,
    why: Option<String>,
}

/// The certificate under a name, or why there is none.
enum Have {
    Pair(Box<Facts>, Identity),
    /// Why there is none: its state, and a sentence.
    Nothing(&'static str, String),
}

impl Certificates {
    /// Takes what the configuration has, and shows it.
    ///
    /// # Errors
    /// The state directory cannot be used.
    pub fn start(
        state: &FilePath,
        host: Host,
        tree: &Arc<Tree>,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, StateError> {
        let document = tree.document();
        let wanted =
            Settings::of(&document, &|path, name| tree.secrets().get(&document, path, name));
        let names = all_names(&host.names, &wanted.names);
        let own = Own::open(state, &names, clock.wall_ns() / NS_PER_S, false)?;
        let unusable = |wrong: Wrong| StateError::Damaged {
            path: state.join("certificate.pem"),
            reason: wrong.sentence,
        };
        let shown = Shown::new(&own.identity).map_err(unusable)?;
        let inner = Inner {
            wanted,
            own,
            issued: BTreeMap::new(),
            orders: BTreeMap::new(),
            stuck: None,
            shown: (OWN.to_owned(), None),
        };
        let room = Self {
            state: state.to_owned(),
            host,
            shown,
            clock,
            wake: Notify::new(),
            tree: OnceLock::from(Arc::downgrade(tree)),
            inner: Mutex::new(inner),
            listener: OnceLock::new(),
        };
        room.read_issued();
        room.show();
        Ok(Arc::new(room))
    }

    /// What TLS shows.
    pub fn shown(&self) -> &Arc<Shown> {
        &self.shown
    }

    /// The name of what is shown.
    pub fn shown_name(&self) -> String {
        self.lock().shown.0.clone()
    }

    /// The certificate of this name, with its key.
    ///
    /// # Errors
    /// There is none that could be shown: why, one sentence.
    pub fn named(&self, name: &str) -> Result<Identity, String> {
        match self.lock().have(name) {
            Have::Pair(_, identity) => Ok(identity),
            Have::Nothing(_, why) => Err(why),
        }
    }

    /// Sets a function that is called whenever certificates may have changed, under any name. Once.
    pub fn on_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        let first = self.listener.set(Box::new(listener)).is_ok();
        debug_assert!(first, "one listens");
    }

    /// Whether the host of a request is this one: any address, `localhost`, the host's name, names
    /// that are configured, and those that one of the certificates is for. This detects pages of
    /// other sites with names that resolve to this host (DNS rebinding).
    pub fn is_own_host(&self, host: &str) -> bool {
        let Some(name) = host_name(host) else { return true };
        let is_it = |own: &str| own.eq_ignore_ascii_case(name);
        // By multicast DNS (RFC 6762 §3), and within its own domain, the first label is enough.
        let of_host = |own: &String| {
            let first = host_name(own).and_then(|own| own.split('.').next());
            is_it(own) || first.is_some_and(|own| is_it(own) || is_it(&format!("{own}.local")))
        };
        if self.host.names.iter().any(of_host) {
            return true;
        }
        let inner = self.lock();
        let of_certificate = |certificate: &str| match inner.have(certificate) {
            Have::Pair(facts, _) => facts.is_for(name),
            Have::Nothing(..) => false,
        };
        let items = inner.wanted.items.keys().map(String::as_str);
        inner.wanted.names.iter().any(|own| is_it(own))
            || std::iter::once(OWN).chain(items).any(of_certificate)
    }

    /// The branch that it handles.
    pub fn branch(self: &Arc<Self>) -> Subtree {
        Subtree::new(&["configuration", "certificates"], self.clone())
    }

    /// The fingerprint of what is shown.
    pub fn fingerprint(&self) -> String {
        self.lock().in_use().map(|facts| facts.fingerprint).unwrap_or_default()
    }

    /// What is wrong with the one in use, for the status.
    pub fn problem(&self) -> Option<String> {
        let inner = self.lock();
        inner.shown.1.clone().or_else(|| {
            let ended = inner.in_use().filter(|facts| facts.ends <= self.now())?;
            let ends = utc(ended.ends.cast_signed());
            Some(format!("the certificate {} expired at {ends} UTC", inner.shown.0))
        })
    }

    /// The warning of any of them, one sentence: it expires within `days` days, or it cannot be
    /// obtained or renewed.
    pub fn warning(&self, days: u64) -> Option<String> {
        const DAY: u64 = 86_400;
        let (now, inner) = (self.now(), self.lock());
        let of = |name: &str| {
            let why = inner.orders.get(name).and_then(|tried| tried.why.as_ref());
            let why = why.or(inner.stuck.as_ref().filter(|_| name == OWN));
            match (inner.have(name), why) {
                (Have::Pair(facts, _), _) if facts.ends <= now => {
                    let ends = utc(facts.ends.cast_signed());
                    Some(format!("the certificate {name} expired at {ends} UTC"))
                }
                (Have::Pair(..), Some(why)) => {
                    Some(format!("the certificate {name} cannot be renewed: {why}"))
                }
                (Have::Nothing(..), Some(why)) => {
                    Some(format!("the certificate {name} cannot be issued: {why}"))
                }
                (Have::Pair(facts, _), None) if facts.ends - now <= days * DAY => {
                    let ends = utc(facts.ends.cast_signed());
                    Some(format!("the certificate {name} expires at {ends} UTC"))
                }
                _ => None,
            }
        };
        let items = inner.wanted.items.keys().map(String::as_str);
        std::iter::once(OWN).chain(items).find_map(of)
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.wall_ns() / NS_PER_S
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self) -> Folder {
        Folder::of(&self.state)
    }

    /// Reads the certificates that were issued before, for the current configuration.
    fn read_issued(&self) {
        let mut inner = self.lock();
        let acme = inner.wanted.items.iter().filter(|(_, item)| matches!(item, Item::Acme(_)));
        let names: Vec<String> = acme.map(|(name, _)| name.clone()).collect();
        inner.issued.retain(|name, _| names.contains(name));
        inner.orders.retain(|name, _| names.contains(name));
        for name in names {
            if inner.issued.contains_key(&name) {
                continue;
            }
            match self.folder().read(&name) {
                Ok(found) => drop(inner.issued.insert(name, found.unwrap_or_default())),
                // It is ordered again.
                Err(e) => base::info!("certificates", "{name} cannot be loaded: {e}"),
            }
        }
    }

    /// Shows what is to be shown.
    fn show(&self) {
        let mut inner = self.lock();
        let wanted = inner.wanted.in_use.clone();
        let (name, identity, why) = match inner.have(&wanted) {
            Have::Pair(_, identity) => (wanted, identity, None),
            Have::Nothing(_, why) => {
                let why = format!("the certificate {wanted} cannot be used: {why}");
                (OWN.to_owned(), inner.own.identity.clone(), Some(why))
            }
        };
        inner.shown = (name, why);
        drop(inner);
        if let Err(wrong) = self.shown.set(&identity) {
            // It was read by the same function before: an internal error.
            base::info!("certificates", "the previous certificate stays in use: {wrong}");
        }
        if let Some(listener) = self.listener.get() {
            listener();
        }
    }

    fn take(&self, wanted: Settings) -> Result<(), StateError> {
        let names = all_names(&self.host.names, &wanted.names);
        let own = Own::open(&self.state, &names, self.now(), false)?;
        let mut inner = self.lock();
        for (name, item) in &wanted.items {
            if inner.wanted.items.get(name) != Some(item) {
                inner.orders.remove(name);
            }
        }
        inner.own = own;
        inner.wanted = wanted;
        drop(inner);
        self.read_issued();
        self.show();
        self.wake.notify_one();
        Ok(())
    }

    /// Renews the server's own certificate if it is time, or requested.
    ///
    /// # Errors
    /// The state directory cannot be written.
    pub(super) fn renew_own(&self, fresh: bool) -> Result<(), StateError> {
        let mut inner = self.lock();
        let names = all_names(&self.host.names, &inner.wanted.names);
        let before = inner.own.facts.fingerprint.clone();
        match Own::open(&self.state, &names, self.now(), fresh) {
            Ok(own) => (inner.own, inner.stuck) = (own, None),
            Err(e) => {
                inner.stuck = Some(e.to_string());
                return Err(e);
            }
        }
        let changed = before != inner.own.facts.fingerprint;
        drop(inner);
        if changed {
            base::info!("certificates", "a new self-signed certificate is in use");
            self.show();
        }
        Ok(())
    }

    /// Certificates to be ordered now.
    pub(super) fn due(&self) -> Vec<(String, Acme)> {
        let (now, inner) = (self.now(), self.lock());
        let acme = inner.wanted.items.iter().filter_map(|(name, item)| match item {
            Item::Acme(acme) => Some((name.clone(), acme.clone())),
            Item::Supplied { .. } => None,
        });
        acme.filter(|(name, acme)| inner.orders_at(name, acme).is_some_and(|at| at <= now))
            .collect()
    }

    /// When there is something to do next, seconds since the epoch.
    pub(super) fn next(&self) -> u64 {
        let inner = self.lock();
        let orders = inner.wanted.items.iter().filter_map(|(name, item)| match item {
            Item::Acme(acme) => inner.orders_at(name, acme),
            Item::Supplied { .. } => None,
        });
        orders.chain([inner.own.facts.renews()]).min().unwrap_or(u64::MAX)
    }

    /// The account at the CA, if there is one.
    pub(super) fn account(&self, name: &str, acme: &Acme) -> Option<Json> {
        let inner = self.lock();
        let issued = inner.issued.get(name).filter(|one| one.directory == acme.directory)?;
        issued.account.clone()
    }

    /// Stores what a CA has issued.
    pub(super) fn keep(&self, name: &str, change: impl FnOnce(&mut Issued)) {
        let mut inner = self.lock();
        let mut issued = inner.issued.get(name).cloned().unwrap_or_default();
        change(&mut issued);
        if let Err(e) = self.folder().write(name, &issued) {
            base::info!("certificates", "{name} could not be stored for the next start: {e}");
        }
        inner.issued.insert(name.to_owned(), issued);
    }

    /// An order has come to its end.
    pub(super) fn ordered(&self, name: &str, why_not: Option<String>) {
        let now = self.now();
        let mut inner = self.lock();
        let tried = inner.orders.entry(name.to_owned()).or_default();
        match &why_not {
            None => {
                base::info!("certificates", "{name} was issued by the CA");
                *tried = OrderState::default();
            }
            Some(why) => {
                base::info!("certificates", "{name}: {why}");
                let (first, most) = ACME_RETRY;
                let factor = 4_u32.saturating_pow(tried.failures.min(16));
                tried.failures += 1;
                tried.asked = false;
                tried.next = now + first.saturating_mul(factor).min(most).as_secs();
                tried.why = why_not;
            }
        }
        drop(inner);
        self.show();
    }

    /// Removes what is kept of certificates that are configured no more.
    pub(super) fn forget(&self) {
        let Some(tree) = self.tree.get().and_then(Weak::upgrade) else { return };
        let names = tree.document().items(&certificates());
        self.folder().keep_only(&|name| names.contains(name));
    }

    fn renew(&self, path: &Path) -> Result<Json, Problem> {
        let name = path.name().unwrap_or_default();
        if name == OWN {
            if self.lock().own.authority.is_none() {
                let sentence = "it is a file that replaces the self-signed certificate";
                let hint = "replace the file and restart, or remove it and its key";
                return Err(Problem::conflict(path, sentence, hint));
            }
            self.renew_own(true).map_err(|e| Problem::server(path, &e.to_string()))?;
            return Ok(json!({ "begun": true }));
        }
        let mut inner = self.lock();
        let Some(Item::Acme(acme)) = inner.wanted.items.get(name) else {
            let hint = "set chain and key, together";
            return Err(Problem::conflict(path, "it is a supplied certificate", hint));
        };
        if !acme.agreed {
            let sentence = "the terms of the CA are not agreed to";
            return Err(Problem::conflict(path, sentence, "set terms_agreed"));
        }
        let tried = inner.orders.entry(name.to_owned()).or_default();
        *tried = OrderState { asked: true, ..OrderState::default() };
        drop(inner);
        self.wake.notify_one();
        Ok(json!({ "begun": true }))
    }

    fn of_all(&self) -> Vec<(&'static str, Value)> {
        let problem = Value::Text(self.problem().unwrap_or_default());
        let inner = self.lock();
        let mut state = vec![("shown", Value::text(&inner.shown.0)), ("problem", problem)];
        if let Some(facts) = inner.in_use() {
            state.push(("fingerprint", Value::Text(facts.fingerprint)));
            state.push(("ends", Value::number(facts.ends)));
        }
        state
    }

    fn of_one(&self, name: &str) -> Vec<(&'static str, Value)> {
        let (now, inner) = (self.now(), self.lock());
        let mut state = vec![("in_use", Value::Bool(inner.shown.0 == name))];
        let tried = inner.orders.get(name).cloned().unwrap_or_default();
        let (kind, reason) = match inner.have(name) {
            Have::Nothing(kind, why) => (kind, why),
            Have::Pair(facts, _) => {
                state.extend([
                    ("ends", Value::number(facts.ends)),
                    ("begins", Value::number(facts.begins)),
                    ("issuer", Value::text(&facts.issuer)),
                    ("fingerprint", Value::text(&facts.fingerprint)),
                    ("names_in_it", Value::texts(&facts.names)),
                ]);
                let foreign = !self.host.names.iter().any(|name| facts.is_for(name));
                let said = match tried.why.or_else(|| inner.stuck.clone().filter(|_| name == OWN)) {
                    Some(why) => Some(format!("it cannot be renewed: {why}")),
                    None if foreign => Some(format!(
                        "it is for {}, but this host is named {}",
                        facts.names.join(", "),
                        self.host.names.join(", ")
                    )),
                    None => None,
                };
                (age(&facts, now), said.unwrap_or_default())
            }
        };
        state.extend([("state", Value::text(kind)), ("reason", Value::Text(reason))]);
        if let Some(Item::Acme(acme)) = inner.wanted.items.get(name) {
            state.extend(inner.orders_at(name, acme).map(|at| ("renews", Value::number(at))));
        } else if name == OWN {
            let Own { facts, authority, .. } = &inner.own;
            state.extend(authority.as_ref().map(|_| ("renews", Value::number(facts.renews()))));
            let pem = authority.as_deref().and_then(|pem| pem.get(pem.find("-----BEGIN")?..));
            state.extend(pem.map(|pem| ("authority", Value::text(pem))));
        }
        state
    }
}

impl Inner {
    /// The certificate under a name.
    fn have(&self, name: &str) -> Have {
        let nothing = |kind, why: &str| Have::Nothing(kind, why.to_owned());
        if name == OWN {
            return Have::Pair(Box::new(self.own.facts.clone()), self.own.identity.clone());
        }
        let (chain, key) = match self.wanted.items.get(name) {
            None => return nothing("incomplete", "no certificate has that name"),
            Some(Item::Supplied { chain, key }) => match (chain, key) {
                (Some(chain), Some(key)) => (chain, key),
                (Some(_), None) => return nothing("incomplete", "its key must be set"),
                (None, Some(_)) => return nothing("incomplete", "its chain must be set"),
                (None, None) => return nothing("incomplete", "its chain and key must be set"),
            },
            Some(Item::Acme(acme)) => {
                let issued = self.issued.get(name);
                match issued.and_then(|one| one.chain.as_ref().zip(one.key.as_ref())) {
                    Some(given) => given,
                    None => return self.not_given(name, acme),
                }
            }
        };
        match Pair::read(chain, key) {
            Ok(pair) => Have::Pair(Box::new(pair.facts), pair.identity),
            Err(wrong) => nothing("incomplete", &wrong.sentence),
        }
    }

    fn not_given(&self, name: &str, acme: &Acme) -> Have {
        if !acme.agreed {
            let why = "agree to the terms of the CA: set terms_agreed";
            return Have::Nothing("incomplete", why.to_owned());
        }
        match self.orders.get(name).and_then(|tried| tried.why.clone()) {
            Some(why) => Have::Nothing("failed", why),
            None => Have::Nothing("waiting", "requested from the CA".to_owned()),
        }
    }

    fn in_use(&self) -> Option<Facts> {
        match self.have(&self.shown.0) {
            Have::Pair(facts, _) => Some(*facts),
            Have::Nothing(..) => None,
        }
    }

    /// When it is to be ordered; `None`: never.
    fn orders_at(&self, name: &str, acme: &Acme) -> Option<u64> {
        if !acme.agreed {
            return None;
        }
        let tried = self.orders.get(name).cloned().unwrap_or_default();
        let fits = self.issued.get(name).filter(|issued| issued.is_for(acme) && !tried.asked);
        let wanted = match fits.map(|_| self.have(name)) {
            Some(Have::Pair(facts, _)) => facts.renews(),
            _ => 0,
        };
        Some(wanted.max(tried.next))
    }
}

fn age(facts: &Facts, now: u64) -> &'static str {
    let (life, left) = (facts.ends.saturating_sub(facts.begins), facts.ends.saturating_sub(now));
    match left {
        0 => "ended",
        left if left < life / 5 => "ending",
        _ => "good",
    }
}

/// Each once, in an order that stays.
fn all_names(host: &[String], others: &[String]) -> Vec<String> {
    let mut names: Vec<String> = host.iter().chain(others).cloned().collect();
    names.sort();
    names.dedup();
    names
}

impl Apply for Certificates {
    fn check(&self, transition: &Transition<'_>) -> Vec<Problem> {
        check(transition, self.clock.wall_ns())
    }

    fn apply(&self, transition: &Transition<'_>) -> Result<(), Problem> {
        let at = certificates();
        for (from, to) in transition.renamed {
            if let (true, Some(from), Some(to)) = (from.is_in(&at), from.name(), to.name()) {
                self.folder().rename(from, to);
                let mut inner = self.lock();
                if let Some(issued) = inner.issued.remove(from) {
                    inner.issued.insert(to.to_owned(), issued);
                }
            }
        }
        let wanted =
            Settings::of(transition.new, &|path, property| transition.secret(path, property));
        self.take(wanted).map_err(|e| Problem::server(&at, &e.to_string()))
    }
}

impl Operational for Certificates {
    fn state(&self, path: &Path) -> Vec<(&'static str, Value)> {
        match path.segments().get(2) {
            None => self.of_all(),
            Some(name) => self.of_one(name),
        }
    }

    fn overrides(&self, path: &Path) -> Vec<Override> {
        if path.segments().get(2).is_none_or(|name| name != OWN) {
            return Vec::new();
        }
        vec![Override { property: "source", value: Value::text(OWN), source: "built in" }]
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        _parameters: &BTreeMap<String, Value>,
        _who: &Actor,
    ) -> Result<Json, Problem> {
        match action {
            "renew" => self.renew(path),
            _ => Err(Problem::unknown(path, &format!("unknown action {action}"), "")),
        }
    }
}

#[cfg(test)]
mod tests;
