//! Values for properties, from what their declarations say.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use e2e::scratch::Scratch;
use serde_json::{Value, json};

/// What only this machine and this run can know.
pub struct World {
    folder: PathBuf,
    number: Cell<u32>,
    certificate: (String, String),
}

impl World {
    pub fn new(scratch: &Scratch) -> Self {
        let folder = scratch.folder("reach", None);
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate");
        let certificate = (made.cert.pem().trim_end().to_owned(), made.signing_key.serialize_pem());
        fs::write(folder.join("certificate.pem"), &certificate.0).expect("a certificate");
        fs::write(folder.join("key.pem"), &certificate.1).expect("a key");
        Self { folder, number: Cell::new(0), certificate }
    }

    /// A number that none before has been.
    pub fn number(&self) -> u32 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    fn file(&self, name: &str) -> Value {
        json!(self.folder.join(name).display().to_string())
    }

    fn key(&self) -> Value {
        json!(self.certificate.1)
    }

    fn new_folder(&self) -> Value {
        self.file(&format!("folder-{}", self.number()))
    }

    fn new_blocks(&self) -> Value {
        self.file(&format!("blocks-{}", self.number()))
    }
}

/// Values that no declaration can know: the property, below which path, why, and the value.
pub struct Given;

type Exception = (&'static str, &'static str, &'static str, fn(&World) -> Value);

const EXCEPTIONS: &[Exception] = &[
    ("/shares/reach/luns/", "path", "a file that can be made", World::new_blocks),
    ("/shares/reach/luns/", "volsize", "the disk of this machine has room", |_| json!(4 << 20)),
    ("/shares/", "directory", "a directory of this machine", World::new_folder),
    ("/shares/", "make_directory", "which does not exist yet", |_| json!(true)),
    ("/shares/", "root_owner", "only root may give to others", |_| json!(own().0)),
    ("/shares/", "root_group", "only root may give to others", |_| json!(own().1)),
    ("/configuration/san/initiators/", "initiator", "an iSCSI name", |world| {
        json!(format!("iqn.2026-01.test:reach-{}", world.number()))
    }),
    ("/configuration/san/initiator-groups/", "initiators", "there is this one", |_| {
        json!(["anna"])
    }),
    ("/configuration/san/target-groups/", "targets", "there is this one", |_| json!(["second"])),
    ("/", "tls_certificate", "a file of this machine", |world| world.file("certificate.pem")),
    ("/", "tls_key", "the key of the certificate", |world| world.file("key.pem")),
    ("/", "tls_client_ca", "a file of this machine", |world| world.file("certificate.pem")),
    ("/configuration/certificates/", "key", "the key of the certificate", World::key),
    ("/configuration/certificates/", "directory", "nobody answers there", |world| {
        json!(format!("https://localhost:9/directory-{}", world.number()))
    }),
    ("/configuration/alerts/", "statistic", "a statistic that there is", |_| {
        json!("nfs3.ops[client]")
    }),
    ("/lab/jobs/", "definition", "a job that can be read", |world| {
        json!(JOB.replace("TITLE", &format!("Reach {}", world.number())).trim_end())
    }),
    ("/configuration/tokens/", "role", "a role that there is", |_| json!("data")),
    ("/configuration/tokens/", "secret", "tokens are long", |_| {
        json!("reach-reach-reach-reach-reach-reach")
    }),
    ("/configuration/network/datalinks/", "link", "there is this device", |_| json!("spare")),
    ("/configuration/network/datalinks/", "links", "there is this one", |_| json!(["spare"])),
    ("/configuration/network/datalinks/", "primary", "one of the links", |_| json!("spare")),
    ("/configuration/network/interfaces/", "links", "there is this one", |_| json!(["lan"])),
    ("/configuration/network/interfaces/", "links", "and this one", |_| json!(["wan"])),
    ("/configuration/network/routes/", "destination", "a network", |_| json!("203.0.113.0/24")),
    ("/configuration/network/routes/", "gateway", "in a network of `near`", |_| {
        json!("198.51.100.1")
    }),
    ("/configuration/network/routes/", "gateway", "also in it", |_| json!("198.51.100.9")),
];

/// What an item must be made with although it need not be there for each: below which path, the
/// property, and why.
const NEEDED: &[(&str, &str, &str)] = &[("/shares/reach/luns/", "volsize", "files have a size")];

/// What an item is not made with, because it excludes another property: below which path, the
/// property, and which test makes it.
const LEFT_OUT: &[(&str, &str, &str)] = &[("/shares/", "pool", "`pools`, which has disks")];

/// Settings that cannot be taken back, and why.
const GROWING: &[(&str, &str, &str)] =
    &[("/shares/reach/luns/", "volsize", "what lies at the end of a LUN would be lost")];

fn lists(table: &[(&str, &str, &str)], path: &str, property: &str) -> bool {
    table.iter().any(|(below, name, _)| path.starts_with(below) && *name == property)
}

/// A name within a length, also with the suffix of a renamed item.
pub fn short(wanted: &str, most: u64) -> String {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if wanted.len() <= most {
        return wanted.to_owned();
    }
    let (name, another) = match wanted.strip_suffix("-2") {
        Some(name) => (name, "-2"),
        None => (wanted, ""),
    };
    let name = name.replacen("-by-", "-", 1);
    let end = name.len().min(most.saturating_sub(another.len()));
    format!("{}{another}", &name[..end])
}

/// Whether an item must be made with this property.
pub fn is_needed(path: &str, property: &str) -> bool {
    lists(NEEDED, path, property)
}

/// Whether an item is not made with this property here.
pub fn is_left_out(path: &str, property: &str) -> bool {
    lists(LEFT_OUT, path, property)
}

/// Whether a property can only become larger.
pub fn only_grows(path: &str, property: &str) -> bool {
    lists(GROWING, path, property)
}

/// Whether it is known that something has no good value here.
pub fn is_refused(what: &str) -> bool {
    REFUSED.iter().any(|known| what.starts_with(known))
}

/// A job that does next to nothing.
const JOB: &str = include_str!("job.toml");

/// What must be there before items or their settings can be, and why: below which path, what is
/// asked of the API, and what is sent.
pub const PREPARED: &[(&str, &str, &str, &str)] = &[
    (
        "/configuration/alerts",
        "an alert mails only if there is a mail server",
        "/api/v1/changes",
        r#"{"changes": [
            {"set": "/configuration/alerts", "property": "smtp_host", "value": "localhost"},
            {"set": "/configuration/alerts", "property": "mail_from", "value": "a@example.org"}]}"#,
    ),
    (
        "/configuration/san/targets",
        "groups have members",
        "/api/v1/changes",
        r#"{"changes": [
            {"create": "/configuration/san/initiators", "name": "anna",
             "properties": {"initiator": "iqn.2026-01.test:anna"}},
            {"create": "/configuration/san/targets", "name": "second"}]}"#,
    ),
    (
        "/shares/reach/luns",
        "the groups that examples name",
        "/api/v1/changes",
        r#"{"changes": [
            {"create": "/configuration/san/initiator-groups", "name": "cluster",
             "properties": {"initiators": ["anna"]}},
            {"create": "/configuration/san/target-groups", "name": "fast",
             "properties": {"targets": ["second"]}}]}"#,
    ),
    (
        "/analytics/datasets",
        "nothing is kept by itself",
        "/api/v1/nodes/analytics/datasets/actions/keep",
        r#"{"parameters": {"statistic": "nfs3.ops[op=read][share=lab][file]"}}"#,
    ),
    (
        "/lab/runs",
        "nothing runs by itself",
        "/api/v1/nodes/lab/jobs/iops-1b/actions/run",
        r#"{"parameters": {"target": "null:", "clients": 1, "schedule": "1x1", "step": 2}}"#,
    ),
];

/// What an action of a node has to do: the node, its actions, and the change that is made before
/// each of them, with another number each time.
pub const BEFORE_ACTIONS: &[(&str, &[&str], &str)] = &[(
    "/configuration/network",
    &["confirm", "revert"],
    r#"{"changes": [
        {"set": "/configuration/network/datalinks/spare", "property": "mtu", "value": NUMBER}]}"#,
)];

/// Settings without a good value here, each with why.
const REFUSED: &[&str] = &[
    // There would have to be a certificate that can be shown.
    "/configuration/certificates in_use:",
    // There would have to be a pool; `pools_space` has one.
    "/shares/reach/reach quota:",
    "/shares/reach/reach reservation:",
    "/shares/reach/reach compression:",
    "/shares/reach/reach snapshots_",
    // There would have to be a block device.
    "/shares/reach/luns create reach-device:",
    // A kernel without VLANs and bonds, or one without InfiniBand; `kernel_network` has the former,
    // and makes a group with a standby and probed hosts each way.
    "/configuration/network/datalinks create reach-vlan:",
    "/configuration/network/datalinks create reach-aggregati:",
    "/configuration/network/datalinks create reach-active-ba:",
    "/configuration/network/datalinks create reach-lacp:",
    "/configuration/network/datalinks create reach-partition:",
    "/configuration/network/interfaces/reach standbys:",
    "/configuration/network/interfaces/reach probes:",
    // A device is of no other class.
    "/configuration/network/datalinks/reach class:",
];

/// Actions that are asked for and not done, and why.
const NOT_DONE: &[(&str, &str, &str)] = &[
    ("/lab", "run", "a load takes its time"),
    ("/lab", "limits", "so do several"),
    ("/lab", "ab", "so do several"),
    ("/lab", "net", "so does a network profile"),
];

/// Actions that a page has and does not offer in the state that things have here, and its message.
const NOT_NOW: &[(&str, &str, &str)] = &[
    ("/lab/runs/", "destroy", "The run has not ended"),
    // It may be over when a browser comes to it.
    ("/lab/runs/", "abort", "the run has ended"),
    ("/configuration/replication/", "stop", "No run in progress"),
];

/// Below which path an action is tried only when a property has a value again, and why.
pub const AT_REST: &[(&str, &str, &str, &str)] = &[
    (
        "/configuration/replication/",
        "state",
        "idle",
        "a page does not offer a start while the run that another way has started goes on",
    ),
    ("/configuration/network", "state", "changeable", "each way ends the change that waits"),
];

/// Whether this is the message of a page that does not offer an action now.
pub fn is_not_now(path: &str, action: &Value, why: &str) -> bool {
    let says = |(below, name, sentence): &(&str, &str, &str)| {
        path.starts_with(below) && action["name"] == *name && why.contains(sentence)
    };
    NOT_NOW.iter().any(says)
}

impl Given {
    /// The value of the table, if it has one.
    pub fn of(path: &str, property: &str, world: &World) -> Option<Value> {
        Self::other(path, property, &Value::Null, world)
    }

    /// The first value of the table that is not this one.
    pub fn other(path: &str, property: &str, now: &Value, world: &World) -> Option<Value> {
        let fits = |(below, name, ..): &&Exception| path.starts_with(below) && *name == property;
        let mut values = EXCEPTIONS.iter().filter(fits).map(|(.., value)| value(world));
        values.find(|value| value != now)
    }
}

/// Whether an action is only asked for.
pub fn is_only_asked_for(path: &str, action: &Value) -> bool {
    let listed =
        |(below, name, _): &(&str, &str, &str)| path.starts_with(below) && action["name"] == *name;
    action["destructive"] == true || NOT_DONE.iter().any(listed)
}

fn own() -> (u32, u32) {
    // SAFETY: no arguments, cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Whether a property is of use where others have these values.
pub fn applies(property: &Value, value: impl Fn(&str) -> Value) -> bool {
    let only_if = &property["only_if"];
    let now = only_if["property"].as_str().map(value);
    now.is_none_or(|now| only_if["values"].as_array().is_some_and(|values| values.contains(&now)))
}

/// Values of one property that others depend on: the property, and the value.
pub fn branches(declared: &Value) -> Vec<(String, Value)> {
    let properties = || declared["properties"].as_array().into_iter().flatten();
    let settable = properties().filter(|one| one["role"] != "state");
    let mut found: Vec<(String, Value)> = settable
        .flat_map(|one| {
            let name = one["only_if"]["property"].as_str().unwrap_or_default().to_owned();
            let values = one["only_if"]["values"].as_array().cloned().unwrap_or_default();
            values.into_iter().map(move |value| (name.clone(), value))
        })
        .collect();
    found.sort_by_key(|(name, value)| format!("{name} {value}"));
    found.dedup();
    found
}

/// What is declared at a path without items.
pub fn declared<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').filter(|name| !name.is_empty()).try_fold(tree, |at, name| {
        at["children"].as_array()?.iter().find(|child| child["name"] == name)
    })
}

/// A good value that is not the present one.
///
/// # Errors
/// The declaration gives nothing away: a kind that this test does not know.
pub fn other(property: &Value, now: &Value, world: &World) -> Result<Value, String> {
    let example = property["example"].as_str().unwrap_or_default();
    of_kind(&property["kind"], example, now, world)
}

fn of_kind(kind: &Value, example: &str, now: &Value, world: &World) -> Result<Value, String> {
    match kind["type"].as_str().unwrap_or_default() {
        "bool" => Ok(json!(now != &json!(true))),
        "integer" | "bytes" | "seconds" => number(kind, example, now),
        "time" => Ok(json!(now.as_i64().unwrap_or(1_900_000_000) + 86_400)),
        "choice" => {
            let all = kind["choices"].as_array().into_iter().flatten();
            let mut values = all.map(|choice| choice["value"].clone());
            values.find(|value| value != now).ok_or_else(|| "there is only one choice".to_owned())
        }
        "text" => text(kind, example, now, world),
        "list" => {
            let first = if kind["of"]["shape"] == "export-rule" {
                example
            } else {
                example.split(',').next().unwrap_or_default().trim()
            };
            let has = |value: &Value| now.as_array().is_some_and(|now| now.contains(value));
            let one = of_kind(&kind["of"], first, &Value::Null, world)?;
            let one = if has(&one) { of_kind(&kind["of"], "", &one, world)? } else { one };
            Ok(json!([one]))
        }
        unknown => Err(format!("no value for the kind {unknown:?}")),
    }
}

fn number(kind: &Value, example: &str, now: &Value) -> Result<Value, String> {
    let (min, max) = (kind["min"].as_i64(), kind["max"].as_i64());
    let fits = |n: i64| min.is_none_or(|min| n >= min) && max.is_none_or(|max| n <= max);
    let now = now.as_i64();
    let near = now.into_iter().flat_map(|n| [n.saturating_add(1), n.saturating_sub(1)]);
    let candidates = scaled(example).into_iter().chain(near).chain(min).chain(max);
    let mut good = candidates.filter(|n| fits(*n) && Some(*n) != now);
    good.next().map(Value::from).ok_or_else(|| "there is only one number".to_owned())
}

/// `64M`, `2h`: the letters that examples are written with. `M` and `m` are not the same there.
fn scaled(text: &str) -> Option<i64> {
    let units = [("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1_i64 << 40)];
    let times = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let factor =
        units.iter().chain(&times).find(|(name, _)| *name == unit.trim()).map(|(_, by)| *by);
    let factor = factor.or(unit.is_empty().then_some(1))?;
    digits.parse::<i64>().ok()?.checked_mul(factor)
}

fn text(kind: &Value, example: &str, now: &Value, world: &World) -> Result<Value, String> {
    let n = world.number();
    if !example.is_empty() && now != example {
        return Ok(json!(example));
    }
    let value = match kind["shape"].as_str().unwrap_or_default() {
        "line" | "lines" => format!("reach and read {n}"),
        "name" => format!("reach-{n}"),
        "host" | "domain" => format!("reach-{n}.example"),
        "address" => format!("192.0.2.{}", n % 250),
        "network" => format!("192.0.{}.0/24", n % 250),
        "path" => return Ok(world.new_folder()),
        "email" => format!("reach-{n}@example.org"),
        "url" => format!("https://example.org/reach-{n}"),
        "ssh-key" => SSH_KEY.to_owned(),
        "export-rule" => format!("192.0.{}.0/24(ro)", n % 250),
        "permission" => "status:read".to_owned(),
        "pem" => world.certificate.0.clone(),
        unknown => return Err(format!("no value for the form {unknown:?}")),
    };
    let most = kind["max_length"].as_u64().map_or(usize::MAX, |most| most as usize);
    Ok(json!(value.get(..most).unwrap_or(&value)))
}

const SSH_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl mia@desk";
