//! From text to rules: `CLIENT(OPTIONS)`, one to a line; `#` begins a comment.
//!
//! CLIENT is `*`, an address, ADDRESS/BITS, `@NETGROUP`, or the name of a host. OPTIONS are those
//! of exports(5) named in [`OPTIONS`]; without them `ro,root_squash,insecure` holds.

use core::net::IpAddr;

use base::limits::{EXPORT_GROUP_DEPTH, EXPORT_HOSTS_MAX, EXPORT_RULES_MAX};
use base::text::decimal;

use super::{Access, Clients, Flavors, Grant, Net, Rule, RuleError, Rules, Squash, Transport};

/// The options that there are.
pub(super) const OPTIONS: &str = "ro, rw, noaccess, root_squash, no_root_squash, all_squash, \
                                  no_all_squash, anonuid=N, anongid=N, secure, insecure, \
                                  sec=sys:none, xprtsec=none:tls:mtls";

/// Resolves the names of clients.
pub trait Lookup {
    /// Addresses of a host.
    ///
    /// # Errors
    /// The error of the resolver if there are none.
    fn host(&self, name: &str) -> Result<Vec<IpAddr>, String>;

    /// The text of netgroup(5), for groups.
    fn netgroups(&self) -> String;
}

impl Rules {
    /// Reads rules, one to a line.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(text: &str, lookup: &dyn Lookup) -> Result<Self, RuleError> {
        let mut rules = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let at = |e| RuleError::Line { line: n + 1, source: Box::new(e) };
            if rules.len() >= EXPORT_RULES_MAX {
                return Err(at(RuleError::TooMany));
            }
            rules.push(Rule::parse(line, lookup).map_err(at)?);
        }
        Ok(Self { rules })
    }

    /// Reads rules that stand each for itself.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse_each<T: AsRef<str>>(rules: &[T], lookup: &dyn Lookup) -> Result<Self, RuleError> {
        let texts: Vec<&str> = rules.iter().map(AsRef::as_ref).collect();
        // A line end in one does not make two of it.
        if let Some(bad) = texts.iter().find(|rule| rule.contains('\n')) {
            return Err(RuleError::Form((*bad).to_owned()));
        }
        Self::parse(&texts.join("\n"), lookup).map_err(|e| match e {
            RuleError::Line { source, .. } => *source,
            other => other,
        })
    }

    /// These rules.
    pub fn of(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// The same clients go as far, but over this transport or a stronger one only.
    #[must_use]
    pub fn requiring(self, transport: Transport) -> Self {
        let rules = match self.rules.is_empty() {
            true => vec![Rule::for_all_clients(Access::ReadWrite)],
            false => self.rules,
        };
        let stronger = |rule: Rule| {
            let transport = rule.grant.transport.max(transport);
            Rule { grant: Grant { transport, ..rule.grant }, ..rule }
        };
        Self { rules: rules.into_iter().map(stronger).collect() }
    }

    /// The rules for services with sign-in: the same access and transports for the same clients,
    /// without an identity that depends on the address.
    #[must_use]
    pub fn for_signed_in(&self) -> Self {
        Self { rules: self.rules.iter().map(Rule::for_signed_in).collect() }
    }
}

impl Access {
    /// By its word in the configuration.
    pub fn parse(word: &str) -> Option<Self> {
        WORDS.iter().find(|(known, _)| *known == word).map(|(_, access)| *access)
    }
}

impl Rule {
    /// Reads one rule.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, lookup: &dyn Lookup) -> Result<Self, RuleError> {
        let (client, options) = parts(text)?;
        Ok(Self {
            clients: parse_clients(client, lookup)?,
            grant: grant(options)?,
            text: owned(client, options),
        })
    }

    /// Parses a rule of a service with sign-in: `CLIENT(ro)`, `CLIENT(rw)`, `CLIENT(none)`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_access(text: &str, lookup: &dyn Lookup) -> Result<Self, RuleError> {
        let (client, word) = parts(text)?;
        let access = Access::parse(word).ok_or_else(|| RuleError::Access(text.to_owned()))?;
        let grant = Grant { access, ..Grant::ALL };
        Ok(Self { clients: parse_clients(client, lookup)?, grant, text: owned(client, word) })
    }

    /// A rule for all clients.
    pub fn for_all_clients(access: Access) -> Self {
        let grant = Grant { access, ..Grant::ALL };
        Self { clients: Clients::Everyone, grant, text: owned("*", word(access)) }
    }

    /// The same for services with sign-in: access and transport, without squashing.
    fn for_signed_in(&self) -> Self {
        let Grant { access, transport, .. } = self.grant;
        let over = match transport {
            Transport::Plain => "",
            Transport::Tls => ",xprtsec=tls",
            Transport::Mtls => ",xprtsec=mtls",
        };
        let grant = Grant { access, transport, ..Grant::ALL };
        let text = (self.text.0.clone(), format!("{}{over}", word(access)));
        Self { clients: self.clients.clone(), grant, text }
    }
}

/// How far one may go, in the words of the configuration.
const WORDS: [(&str, Access); 3] =
    [("none", Access::None), ("ro", Access::ReadOnly), ("rw", Access::ReadWrite)];

fn word(access: Access) -> &'static str {
    WORDS.iter().find(|(_, one)| *one == access).map_or("none", |(word, _)| word)
}

/// Client and options.
fn parts(text: &str) -> Result<(&str, &str), RuleError> {
    let form = || RuleError::Form(text.to_owned());
    let (client, options) = match text.split_once('(') {
        Some((client, rest)) => (client, rest.strip_suffix(')').ok_or_else(form)?),
        None => (text, ""),
    };
    let client = client.trim();
    if client.is_empty() || client.contains(char::is_whitespace) {
        return Err(form());
    }
    Ok((client, options.trim()))
}

fn owned(client: &str, options: &str) -> (String, String) {
    (client.to_owned(), options.to_owned())
}

fn parse_clients(client: &str, lookup: &dyn Lookup) -> Result<Clients, RuleError> {
    Ok(if client == "*" { Clients::Everyone } else { Clients::Nets(nets(client, lookup)?) })
}

fn grant(options: &str) -> Result<Grant, RuleError> {
    let mut grant = Grant { access: Access::ReadOnly, squash: Squash::Root, ..Grant::ALL };
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let number = || decimal::<u32>(value).ok_or_else(|| RuleError::Number(option.to_owned()));
        match name {
            "ro" => grant.access = Access::ReadOnly,
            "rw" => grant.access = Access::ReadWrite,
            "noaccess" => grant.access = Access::None,
            "root_squash" => grant.squash = Squash::Root,
            "no_root_squash" => grant.squash = Squash::None,
            "all_squash" => grant.squash = Squash::All,
            "no_all_squash" if grant.squash == Squash::All => grant.squash = Squash::Root,
            "no_all_squash" => {}
            "anonuid" => grant.anonymous.0 = number()?,
            "anongid" => grant.anonymous.1 = number()?,
            "secure" => grant.secure = true,
            "insecure" => grant.secure = false,
            "sec" => grant.flavors = flavors(option, value)?,
            "xprtsec" => grant.transport = transport(option, value)?,
            _ => return Err(RuleError::Option { option: option.to_owned() }),
        }
    }
    Ok(grant)
}

fn flavors(option: &str, value: &str) -> Result<Flavors, RuleError> {
    let mut flavors = Flavors { sys: false, none: false };
    for name in value.split(':') {
        match name {
            "sys" => flavors.sys = true,
            "none" => flavors.none = true,
            _ => return Err(RuleError::Flavor(option.to_owned())),
        }
    }
    Ok(flavors)
}

/// The weakest of those named: what is stronger is never refused.
fn transport(option: &str, value: &str) -> Result<Transport, RuleError> {
    let mut weakest = Transport::Mtls;
    for name in value.split(':') {
        weakest = weakest.min(match name {
            "none" => Transport::Plain,
            "tls" => Transport::Tls,
            "mtls" => Transport::Mtls,
            _ => return Err(RuleError::Transport(option.to_owned())),
        });
    }
    Ok(weakest)
}

fn nets(client: &str, lookup: &dyn Lookup) -> Result<Vec<Net>, RuleError> {
    if let Some(group) = client.strip_prefix('@') {
        let hosts = netgroup(&lookup.netgroups(), group)?;
        let mut all = Vec::new();
        for host in hosts {
            all.extend(host_nets(&host, lookup)?);
        }
        return Ok(all);
    }
    if let Some((address, bits)) = client.split_once('/') {
        let wrong = || RuleError::Net(client.to_owned());
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        return Ok(vec![Net::new(address, decimal(bits).ok_or_else(wrong)?).ok_or_else(wrong)?]);
    }
    host_nets(client, lookup)
}

fn host_nets(host: &str, lookup: &dyn Lookup) -> Result<Vec<Net>, RuleError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![Net::host(address.to_canonical())]);
    }
    let failed = |why| RuleError::Host { host: host.to_owned(), why };
    let addresses = lookup.host(host).map_err(failed)?;
    Ok(addresses.into_iter().map(|a| Net::host(a.to_canonical())).collect())
}

/// The hosts of a group in the text of netgroup(5): `NAME (HOST,USER,DOMAIN) OTHERGROUP …`, a
/// backslash at the end of a line continues it on the next.
///
/// # Errors
/// There is no such group, it is nested too deep, or has too many hosts.
pub fn netgroup(text: &str, name: &str) -> Result<Vec<String>, RuleError> {
    let text = text.replace("\\\n", " ");
    let mut hosts = Vec::new();
    collect(&text, name, EXPORT_GROUP_DEPTH, &mut hosts)?;
    Ok(hosts)
}

fn collect(text: &str, name: &str, depth: usize, hosts: &mut Vec<String>) -> Result<(), RuleError> {
    if depth == 0 {
        return Err(RuleError::Deep(name.to_owned()));
    }
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut found = lines.filter_map(|line| line.split_once(char::is_whitespace));
    let (_, members) =
        found.find(|(n, _)| *n == name).ok_or_else(|| RuleError::Group(name.to_owned()))?;
    let mut rest = members.trim();
    while !rest.is_empty() {
        if hosts.len() >= EXPORT_HOSTS_MAX {
            return Err(RuleError::TooMany);
        }
        if let Some(triple) = rest.strip_prefix('(') {
            let (inside, behind) =
                triple.split_once(')').ok_or_else(|| RuleError::Form(rest.to_owned()))?;
            let host = inside.split(',').next().unwrap_or_default().trim();
            // "-" and nothing: a triple about users.
            if !host.is_empty() && host != "-" {
                hosts.push(host.to_owned());
            }
            rest = behind.trim_start();
        } else {
            let (group, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            collect(text, group, depth - 1, hosts)?;
            rest = behind.trim_start();
        }
    }
    Ok(())
}
