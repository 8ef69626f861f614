//! The configuration of units, targets and initiators, and its problems beyond the checks of single
//! values. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use base::limits::{ISCSI_NAME_MAX, LUNS_MAX};
use base::node::Path;
use control::tree::{Document, Problem, Transition};
use serve::iscsi::targets::SignIn;
use vfs::lun::mapping::Initiators;
use vfs::lun::node::NAME;
use wire::iscsi::chap::SECRET_MIN;
use wire::iscsi::login_phase::Credentials;

/// Where targets and initiators are.
pub const SAN: &[&str] = &["configuration", "san"];
/// Where projects are.
const SHARES: &[&str] = &["shares"];

/// Where the blocks of a unit are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// A file that is made in this directory, or in the state directory.
    Project(Option<PathBuf>),
    /// A file by its name.
    File(PathBuf),
    /// A block device.
    Device(PathBuf),
}

/// A unit as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LunConfig {
    /// Its node.
    pub path: Path,
    /// Where its blocks are.
    pub backing: Backing,
    /// Whether a path is set, which a project's file has none of.
    pub has_path: bool,
    /// Bytes, if configured.
    pub size: Option<u64>,
    /// Whether blocks take space only when they are written.
    pub sparse: bool,
    /// Bytes of a block.
    pub block: u32,
    /// Its number, if configured.
    pub number: Option<u16>,
    /// The initiator group that may use it.
    pub initiators: Option<String>,
    /// At which targets it is found.
    pub targets: Option<String>,
    /// Whether writes may stay in memory.
    pub write_cache: bool,
    /// Whether it can only be read.
    pub read_only: bool,
    /// Whether it is to be served.
    pub online: bool,
}

impl LunConfig {
    /// By what the table knows it: `PROJECT/NAME`.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    fn read(document: &Document, path: Path) -> Self {
        let text = |property| document.text(&path, property);
        let number = |property| document.integer(&path, property);
        let named = || PathBuf::from(text("path").unwrap_or_default());
        let above = path.parent().unwrap_or_default();
        let backing = match text("backing").as_deref() {
            Some("file") => Backing::File(named()),
            Some("device") => Backing::Device(named()),
            _ => Backing::Project(document.text(&above, "directory").map(PathBuf::from)),
        };
        Self {
            backing,
            has_path: text("path").is_some_and(|text| !text.is_empty()),
            size: number("volsize").and_then(|size| u64::try_from(size).ok()),
            sparse: document.bool(&path, "sparse"),
            block: text("volblocksize").and_then(|text| text.parse().ok()).unwrap_or(512),
            number: number("assignednumber").and_then(|number| u16::try_from(number).ok()),
            initiators: text("initiatorgroup"),
            targets: text("targetgroup"),
            write_cache: document.bool(&path, "writecache"),
            read_only: document.bool(&path, "read_only"),
            online: text("status").as_deref() != Some("offline"),
            path,
        }
    }
}

/// `PROJECT/NAME` of the node of a unit.
pub fn name_of(path: &Path) -> String {
    match path.segments() {
        [_, project, _, name] => format!("{project}/{name}"),
        _ => path.to_string(),
    }
}

/// The node of a unit, by what the table knows it.
pub fn path_of(name: &str) -> Option<Path> {
    let (project, name) = name.split_once('/')?;
    Some(Path::of(SHARES).join(project).join(NAME).join(name))
}

/// Whether a node is that of all units of a project, or of one.
pub fn is_lun(path: &Path) -> bool {
    matches!(path.segments(), [_, _, luns, ..] if luns == NAME)
}

/// A target as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetConfig {
    /// Its iSCSI name; none for the one that follows from the server's.
    pub iqn: Option<String>,
    /// Whether initiators get in by their names alone.
    pub is_open: bool,
    /// What it proves itself with.
    pub own: Option<Credentials>,
}

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct SanConfig {
    /// Units.
    pub luns: Vec<LunConfig>,
    /// Targets by name.
    pub targets: BTreeMap<String, TargetConfig>,
    /// Groups of targets.
    pub target_groups: BTreeMap<String, Vec<String>>,
    /// iSCSI names of initiators by their names here, with what each signs in with.
    pub initiators: BTreeMap<String, (String, Option<Credentials>)>,
    /// Groups of initiators.
    pub initiator_groups: BTreeMap<String, Vec<String>>,
    /// The name that goes with the secret of the server.
    pub user: String,
    /// The secret, if configured.
    pub secret: Option<String>,
    /// The name with which the target of the server proves itself.
    pub own_user: String,
    /// The secret that goes with it, if configured.
    pub own: Option<String>,
}

/// Gives the plain secret of a property.
pub type Secret<'a> = &'a dyn Fn(&Path, &str) -> Option<String>;

impl SanConfig {
    /// Reads a configuration.
    pub fn read(document: &Document, secret: Secret<'_>) -> Self {
        let san = Path::of(SAN);
        let shares = Path::of(SHARES);
        let projects = document.items(&shares).into_iter().map(|project| shares.join(&project));
        let luns = projects.flat_map(|project| {
            let above = project.join(NAME);
            let names = document.items(&above).into_iter();
            let lun = |name: String| LunConfig::read(document, above.join(&name));
            names.map(lun).collect::<Vec<_>>()
        });
        let group = |of: &str, property: &'static str| {
            let above = san.join(of);
            let names = document.items(&above).into_iter();
            let one = |name: String| {
                let members = document.texts(&above.join(&name), property);
                (name, members)
            };
            names.map(one).collect::<BTreeMap<_, _>>()
        };
        Self {
            luns: luns.collect(),
            targets: targets(document, secret),
            target_groups: group("target-groups", "targets"),
            initiators: initiators(document, secret),
            initiator_groups: group("initiator-groups", "initiators"),
            user: document.text(&san, "chapuser").unwrap_or_default(),
            secret: secret(&san, "chapsecret"),
            own_user: document.text(&san, "targetchapuser").unwrap_or_default(),
            own: secret(&san, "targetchapsecret"),
        }
    }

    /// The initiators that may use a unit at a target.
    pub fn admitted(&self, lun: &LunConfig, is_open: bool) -> Initiators {
        let Some(group) = &lun.initiators else {
            // An initiator that is not named gets no access by its name alone.
            return match is_open {
                true => Initiators::Nobody,
                false => Initiators::Others(self.own_secrets().map(|(name, _)| name).collect()),
            };
        };
        let members = self.initiator_groups.get(group).map(Vec::as_slice).unwrap_or_default();
        let name = |member: &String| self.initiators.get(member).map(|(name, _)| name.clone());
        Initiators::Named(members.iter().filter_map(name).collect::<BTreeSet<_>>())
    }

    /// Initiators that have secrets of their own.
    fn own_secrets(&self) -> impl Iterator<Item = (String, Credentials)> {
        self.initiators.values().filter_map(|(name, own)| Some((name.clone(), own.clone()?)))
    }

    /// How initiators sign in where the secret of the server is this.
    pub fn sign_in(&self, secret: &Credentials, target: Option<&TargetConfig>) -> SignIn {
        let own = target.and_then(|target| target.own.clone());
        if target.is_some_and(|target| target.is_open) {
            return SignIn { common: None, initiators: HashMap::new(), own };
        }
        let initiators = self.own_secrets().collect();
        SignIn { common: Some(secret.clone()), initiators, own }
    }

    /// The targets at which a unit is found, by name; none stands for that of the server.
    pub fn targets_of(&self, lun: &LunConfig) -> Vec<Option<&str>> {
        match &lun.targets {
            None => vec![None],
            Some(group) => {
                let members = self.target_groups.get(group).map(Vec::as_slice).unwrap_or_default();
                members.iter().map(|member| Some(member.as_str())).collect()
            }
        }
    }
}

fn targets(document: &Document, secret: Secret<'_>) -> BTreeMap<String, TargetConfig> {
    let above = Path::of(SAN).join("targets");
    let one = |name: String| {
        let path = above.join(&name);
        let iqn = document.text(&path, "iqn");
        let user = document.text(&path, "targetchapuser");
        let own = secret(&path, "targetchapsecret").map(|secret| Credentials {
            name: user.or_else(|| iqn.clone()).unwrap_or_else(|| name.clone()),
            secret: secret.into_bytes(),
        });
        let is_open = document.text(&path, "auth").as_deref() == Some("none");
        (name, TargetConfig { iqn, is_open, own })
    };
    document.items(&above).into_iter().map(one).collect()
}

fn initiators(
    document: &Document,
    secret: Secret<'_>,
) -> BTreeMap<String, (String, Option<Credentials>)> {
    let above = Path::of(SAN).join("initiators");
    let one = |name: String| {
        let path = above.join(&name);
        let iqn = document.text(&path, "initiator").unwrap_or_default();
        let user = document.text(&path, "chapuser").unwrap_or_else(|| iqn.clone());
        let own = secret(&path, "chapsecret")
            .map(|secret| Credentials { name: user, secret: secret.into_bytes() });
        (name, (iqn, own))
    };
    document.items(&above).into_iter().map(one).collect()
}

/// What is wrong with a configuration of units, targets and initiators.
pub fn problems(transition: &Transition<'_>) -> Vec<Problem> {
    let document = transition.new;
    let secret = |path: &Path, property: &str| transition.secret(path, property);
    let config = SanConfig::read(document, &secret);
    let mut problems = Vec::new();
    for (_, path, property, plain) in transition.given {
        if path.is_in(&Path::of(SAN)) && plain.len() < SECRET_MIN {
            let sentence =
                format!("{property} has {} characters; the minimum is {SECRET_MIN}", plain.len());
            problems.push(Problem::new(path, &sentence, "choose a longer one").property(property));
        }
    }
    problems.extend(wrong_luns(&config));
    problems.extend(wrong_names(&config));
    problems.extend(same_secrets(&config));
    problems
}

fn wrong_luns(config: &SanConfig) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut numbers = BTreeMap::new();
    if config.luns.len() > LUNS_MAX {
        let sentence = format!("{} LUNs are too many; {LUNS_MAX} are the most", config.luns.len());
        problems.push(Problem::conflict(&Path::of(SHARES), &sentence, "destroy some of them"));
    }
    for lun in &config.luns {
        let mut wrong = |property: &str, sentence: &str, hint: &str| {
            problems.push(Problem::new(&lun.path, sentence, hint).property(property));
        };
        match (&lun.backing, lun.size) {
            (Backing::Project(_), None) => wrong("volsize", "volsize must be set", "as 10G"),
            (_, Some(size)) if !size.is_multiple_of(4096) => {
                wrong("volsize", "volsize must be a multiple of 4096 bytes", "as 10G");
            }
            _ => {}
        }
        if let Backing::File(path) | Backing::Device(path) = &lun.backing
            && path.as_os_str().is_empty()
        {
            wrong("path", "path must be set", "name the file or the device");
        }
        if matches!(lun.backing, Backing::Project(_)) && lun.has_path {
            let hint = "set backing=file or backing=device, or unset path";
            wrong("path", "path has no effect with backing=project", hint);
        }
        if let Some(group) = &lun.initiators
            && !config.initiator_groups.contains_key(group)
        {
            let sentence = format!("there is no initiator group {group:?}");
            wrong("initiatorgroup", &sentence, "make it in /configuration/san/initiator-groups");
        }
        if let Some(group) = &lun.targets
            && !config.target_groups.contains_key(group)
        {
            let sentence = format!("there is no target group {group:?}");
            wrong("targetgroup", &sentence, "make it in /configuration/san/target-groups");
        }
        if let Some(number) = lun.number
            && let Some(other) = numbers.insert(number, &lun.path)
        {
            let sentence = format!("{other} has the number {number}");
            wrong("assignednumber", &sentence, "choose another one");
        }
    }
    problems
}

/// Groups that name what is not there, and names that two have.
fn wrong_names(config: &SanConfig) -> Vec<Problem> {
    let san = Path::of(SAN);
    let mut problems = Vec::new();
    let mut unknown = |of: &str, group: &str, property: &str, member: &str| {
        let sentence = format!("there is no {member:?} in {property}");
        let problem = Problem::new(&san.join(of).join(group), &sentence, "make it first");
        problems.push(problem.property(property));
    };
    for (group, members) in &config.target_groups {
        for member in members.iter().filter(|one| !config.targets.contains_key(*one)) {
            unknown("target-groups", group, "targets", member);
        }
    }
    for (group, members) in &config.initiator_groups {
        for member in members.iter().filter(|one| !config.initiators.contains_key(*one)) {
            unknown("initiator-groups", group, "initiators", member);
        }
    }
    let initiators = config.initiators.iter().map(|(name, (iqn, _))| (name, iqn));
    problems.extend(named_wrongly(&san.join("initiators"), "initiator", initiators));
    let targets =
        config.targets.iter().filter_map(|(name, target)| Some((name, target.iqn.as_ref()?)));
    problems.extend(named_wrongly(&san.join("targets"), "iqn", targets));
    problems
}

/// iSCSI names that are none, or that two have.
fn named_wrongly<'a>(
    above: &Path,
    property: &str,
    names: impl Iterator<Item = (&'a String, &'a String)>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = BTreeMap::new();
    for (name, iqn) in names {
        let mut wrong = |sentence: &str, hint: &str| {
            problems.push(Problem::new(&above.join(name), sentence, hint).property(property));
        };
        if !is_node_name(iqn) {
            wrong(
                &format!("{property}: {iqn:?} is not an iSCSI name"),
                "for example iqn.2026-01.com.example:host (lower case), or eui. or naa. with \
                 16 or 32 hexadecimal digits",
            );
        }
        if let Some(other) = seen.insert(iqn, name) {
            wrong(&format!("{property}: {other} has this name"), "choose another one");
        }
    }
    problems
}

/// Whether a text is the name of a node (RFC 7143 §4.2.7, RFC 3722: lower case).
fn is_node_name(text: &str) -> bool {
    let is_hex = |digits: &str, lengths: &[usize]| {
        lengths.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match text.split_once('.') {
        Some(("iqn", rest)) => text.len() <= ISCSI_NAME_MAX && is_qualified(rest),
        Some(("eui", digits)) => is_hex(digits, &[16]),
        Some(("naa", digits)) => is_hex(digits, &[16, 32]),
        _ => false,
    }
}

/// Whether this is the part after `iqn.`: the year and month of a domain registration, the reversed
/// domain name, and an optional string of the naming authority (RFC 7143 §4.2.7.4).
fn is_qualified(rest: &str) -> bool {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.:_".contains(c);
    let Some((month, name)) = rest.split_once('.') else { return false };
    let is_number =
        |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_month = month.split_once('-').is_some_and(|(year, month)| {
        is_number(year, 4) && is_number(month, 2) && ("01"..="12").contains(&month)
    });
    let domain = name.split(':').next().unwrap_or_default();
    is_month && !domain.is_empty() && name.chars().all(is_good)
}

/// The secret of a target must not be that of an initiator (RFC 7143 §9.2.1).
fn same_secrets(config: &SanConfig) -> Vec<Problem> {
    let initiators: Vec<_> = config.own_secrets().map(|(_, own)| own.secret).collect();
    let is_known = |secret: &Vec<u8>| {
        initiators.contains(secret)
            || config.secret.as_ref().is_some_and(|common| common.as_bytes() == secret.as_slice())
    };
    let one = |(name, target): (&String, &TargetConfig)| {
        let own = target.own.as_ref()?;
        is_known(&own.secret).then(|| {
            let sentence = "an initiator has the same secret, and could answer for the target";
            let path = Path::of(SAN).join("targets").join(name);
            Problem::new(&path, sentence, "choose another one").property("targetchapsecret")
        })
    };
    let of_server = config.own.as_ref().is_some_and(|own| is_known(&own.clone().into_bytes()));
    let of_server = of_server.then(|| {
        let sentence = "an initiator has the same secret, and could answer for the target";
        let problem = Problem::new(&Path::of(SAN), sentence, "choose another one");
        problem.property("targetchapsecret")
    });
    config.targets.iter().filter_map(one).chain(of_server).collect()
}

#[cfg(test)]
mod tests;
