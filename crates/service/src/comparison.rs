//! One protocol of a server as the target of a comparison, or what stands in the way of it and how
//! that is changed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ::lab::client::Target;
use ::lab::client::service::at::{Scheme, ServiceAt, encoded};
use ::lab::transfer::Plan;
use base::failure::Failure;
use base::protocol::Service;
use control::appliance::{ShareStatus, Status};
use control::cli::node::Node;
use serde_json::Value as Json;

use crate::lab::from_here;

/// The state of each service with sign-in, as the server reports it.
pub type ServiceNodes = BTreeMap<Service, ServiceNode>;

/// A service as the server reports it.
pub struct ServiceNode {
    /// `configuration/services/<id>`.
    pub node: Node,
    /// SHA-256 of the certificate that it shows, as the tree has it.
    pub pin: Option<String>,
}

/// What stands in the way of a protocol: the service, what is so, without a full stop, and what
/// does away with it.
type Obstacle = (&'static str, String, Change);

/// A property, what it has to be, and what it is; without one, a restart, perhaps after changes.
type Change = Option<(&'static str, &'static str, String)>;

/// The protocols that are wanted; all if none are named.
///
/// # Errors
/// One is no protocol.
pub fn schemes(names: &[String]) -> Result<Vec<Scheme>, Failure> {
    if names.is_empty() {
        return Ok(Scheme::ALL.to_vec());
    }
    let named = |name: &String| {
        Scheme::by_name(name).ok_or_else(|| {
            let known = Scheme::ALL.map(Scheme::name);
            let failed = format!("{name:?} is not one of the protocols");
            Failure::usage("compare protocols", &failed, &format!("there are {}", known.join(",")))
        })
    };
    names.iter().map(named).collect()
}

/// The share, if the files of a comparison fit into it.
///
/// # Errors
/// It is not served, or they do not.
pub fn usable<'a>(
    status: &'a Status,
    name: &str,
    tried: &str,
    plan: &Plan,
) -> Result<&'a ShareStatus, Failure> {
    let Some(share) = status.shares.iter().find(|share| share.name == name) else {
        let names: Vec<&str> = status.shares.iter().map(|share| share.name.as_str()).collect();
        let hint = format!("it serves {}", names.join(", "));
        return Err(Failure::new(tried, "no share has that name", &hint));
    };
    let wrong = |failed: &str, hint| Err(Failure::new(tried, failed, hint));
    if share.read_only {
        return wrong("the share is read-only", "files are created there: choose another share");
    }
    // An upload takes the place of the file before it when it is whole: for so long there are two.
    let twice = u64::from(plan.streams).saturating_mul(plan.file_size);
    let bytes = plan.bytes().saturating_add(twice);
    if bytes > share.available_bytes {
        let size = |n: u64| base::units::bytes(n as f64);
        let (takes, left) = (size(bytes), size(share.available_bytes));
        let failed =
            format!("its files need up to {takes}, but only {left} are available on the share");
        return wrong(&failed, "reduce them with --set file_size=SIZE");
    }
    Ok(share)
}

/// The value of a property as a text of one line; `None` if it has none.
pub fn text(node: &Node, property: &str) -> Option<String> {
    let one = node.properties.iter().find(|one| one.name == property)?;
    match &one.value {
        Json::String(text) if text.is_empty() => None,
        Json::String(text) => Some(text.clone()),
        Json::Bool(true) => Some("on".to_owned()),
        Json::Bool(false) => Some("off".to_owned()),
        Json::Array(all) => all.first().and_then(Json::as_str).map(str::to_owned),
        _ => None,
    }
}

/// The target, without a password.
///
/// # Errors
/// Everything that stands in the way.
pub fn of(
    scheme: Scheme,
    share: &ShareStatus,
    user: &str,
    known: &ServiceNodes,
) -> Result<ServiceAt, Vec<Obstacle>> {
    let (service, name) = (scheme.service(), scheme.service().title());
    let obstacle = |sentence: String, change| (service.id(), sentence, change);
    let only = |sentence, change| Err(vec![obstacle(sentence, change)]);
    let Some(ServiceNode { node, .. }) = known.get(&service) else {
        return only(format!("{name} is unknown"), None);
    };
    match text(node, "state").unwrap_or_default().as_str() {
        "online" => {}
        "disabled" => {
            let change = Some(("enabled", "on", "off".to_owned()));
            return only(format!("{name} is disabled"), change);
        }
        other => {
            let why = text(node, "reason").map(|why| format!(": {why}")).unwrap_or_default();
            return only(format!("{name} is in the state {other}{why}"), None);
        }
    }
    // Without sign-in there is no password to protect.
    let open = text(node, "sign_in").as_deref() == Some("none");
    let mut found = Vec::new();
    for (property, good, set, sentence) in wanted(scheme) {
        let now = text(node, property).unwrap_or_default();
        let is_right = good.contains(&now.as_str()) || (open && property == "basic_over_plain");
        if !is_right {
            found.push(obstacle(sentence.to_owned(), Some((property, set, now))));
        }
    }
    let at = reached(scheme, share, user, known);
    if found.is_empty() && at.is_none() {
        // The settings are not in effect yet.
        found.push(obstacle(format!("{} is not served", scheme.title()), None));
    }
    // A port that is not there yet begins with a restart.
    if !scheme.is_secure() && text(node, "plain").as_deref() == Some("off") {
        found.push(obstacle("a restart opens its port".to_owned(), None));
    }
    at.filter(|_| found.is_empty()).ok_or(found)
}

/// A property, the values with which the protocol can be compared, the one to set, and what is so
/// with any other.
type Requirement = (&'static str, &'static [&'static str], &'static str, &'static str);

fn wanted(scheme: Scheme) -> Vec<Requirement> {
    const ROOT: Requirement = (
        "login_root",
        &["shares"],
        "shares",
        "users start in their home directories, not above the shares",
    );
    const WEBDAV: Requirement =
        ("webdav", &["on"], "on", "WebDAV is off, which is needed to create folders over HTTP");
    const PLAIN: Requirement = ("plain", &["serve"], "serve", "HTTP without TLS is off");
    const BASIC: Requirement =
        ("basic_over_plain", &["on"], "on", "HTTP does not accept passwords without TLS");
    const OPEN: Requirement =
        ("tls", &["off", "offered"], "offered", "FTP requires TLS for sign-in");
    const TLS: Requirement = ("tls", &["offered", "required"], "offered", "FTP offers no TLS");
    const DATA: Requirement = ("protect_data", &["off"], "off", "FTP requires TLS for data");
    const PASSWORDS: Requirement = ("passwords", &["on"], "on", "SFTP does not accept passwords");
    match scheme {
        Scheme::Ftp => vec![ROOT, OPEN, DATA],
        Scheme::Ftps => vec![ROOT, TLS],
        Scheme::Sftp => vec![ROOT, PASSWORDS],
        Scheme::Http | Scheme::Webdav => vec![WEBDAV, PLAIN, BASIC],
        Scheme::Https | Scheme::Webdavs => vec![WEBDAV],
    }
}

/// Where the protocol is, and how the server is known.
fn reached(
    scheme: Scheme,
    share: &ShareStatus,
    user: &str,
    known: &ServiceNodes,
) -> Option<ServiceAt> {
    let ServiceNode { node, pin } = known.get(&scheme.service())?;
    let url = &share.access.iter().find(|one| one.protocol == scheme.listener())?.url;
    let (_, rest) = url.split_once("://")?;
    let url = format!("{}://{}@{rest}", scheme.name(), encoded(user, false));
    let Ok(Target::Service(mut at)) = Target::parse(&url) else { return None };
    // The URL is for other machines; from here it is reached at the address that it listens on.
    let listen = text(node, "listen")?;
    let listen: SocketAddr = listen.split(", ").next()?.parse().ok()?;
    at.host = from_here(listen).ip().to_string();
    at.terms.pin = match (scheme.is_secure(), scheme.plain()) {
        (false, _) => None,
        // Without a pin any server would be accepted: then there is no target.
        (true, Some(_)) => Some(pin.as_deref()?.replace(':', "").to_lowercase()),
        (true, None) => Some(text(node, "host_keys")?),
    };
    Some(at)
}

/// What stands in the way of any of the protocols.
#[derive(Default)]
pub struct Obstacles(Vec<Obstacle>);

impl Obstacles {
    /// A target, or its obstacles among the others, each once.
    pub fn or_none(&mut self, found: Result<ServiceAt, Vec<Obstacle>>) -> Option<ServiceAt> {
        found
            .map_err(|new| {
                for one in new {
                    if !self.0.contains(&one) {
                        self.0.push(one);
                    }
                }
            })
            .ok()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is so.
    pub fn sentence(&self) -> String {
        self.0.iter().map(|one| one.1.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// What to do: commands of `cli` (a program and its arguments), how to have it afterwards as it
    /// was, and which protocols could be compared without.
    pub fn hint(&self, cli: &str, others: &str) -> String {
        let mut services: BTreeMap<&str, Vec<&Change>> = BTreeMap::new();
        for (service, _, change) in &self.0 {
            services.entry(service).or_default().push(change);
        }
        let (mut there, mut back) = (String::new(), String::new());
        for (service, changes) in services {
            let (mut to, mut from) = (String::new(), String::new());
            for (property, value, was) in changes.iter().copied().flatten() {
                to += &format!(" {property}={value}");
                from += &format!(" {property}={was}");
            }
            let at = format!("configuration services {service}");
            let restarts = changes.contains(&&None);
            let restart = if restarts { format!(" -c '{at} restart'") } else { String::new() };
            if to.is_empty() {
                there += &format!("\n    {cli}{restart}");
            } else {
                there += &format!("\n    {cli} -c '{at} set{to}'{restart}");
                back += &format!("\n    {cli} -c '{at} set{from}'{restart}");
            }
        }
        let mut hint = format!("change the settings for all clients:{there}");
        if !back.is_empty() {
            hint += &format!("\n  and restore them after the comparison:{back}");
        }
        if !others.is_empty() {
            hint += &format!("\n  or compare the others: --protocols {others}");
        }
        hint
    }
}

#[cfg(test)]
mod tests;
