//! `plimsoll inspect`: any file of Plimsoll as text, without a server. The crate that writes a
//! format reads it; this module only detects the format.

mod archive;
mod configuration;
mod handles;
mod lab;
mod logs;
mod luns;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read, Write};
use std::path::Path;

use base::units::utc;
use serde_json::{Value, json};

use crate::cli::InspectArgs;
use crate::out::{self, Failure, OrFailure};

/// Largest file that is read whole; segments are read by their own room.
const WHOLE_MAX: u64 = 64 << 20;

/// Runs the command.
///
/// # Errors
/// If the file cannot be read or is not in a format of Plimsoll.
pub fn run(args: &InspectArgs) -> Result<(), Failure> {
    let path = &args.file;
    let tried = format!("inspect {}", path.display());
    let size = std::fs::metadata(path).or_failure(&tried)?.len();
    if is_segment(path) {
        let hint = "use `plimsoll analytics show STAT --json` for JSON";
        let text = |out: &mut dyn Write| analytics::store::inspect(path, out);
        return in_pieces((&tried, "segments are", hint), args, text);
    }
    if sync::index::is_index(path) {
        let hint = "omit --json for one line per entry";
        let text = |mut out: &mut dyn Write| sync::index::inspect(path, &mut out);
        return in_pieces((&tried, "a dsync index is", hint), args, text);
    }
    if size > WHOLE_MAX {
        return Err(Failure::new(&tried, "it is too large for a file of this kind", ""));
    }
    let bytes = std::fs::read(path).or_failure(&tried)?;
    if args.xferlog {
        let name = path.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
        let text = logs::xferlog(name, &bytes).ok_or_else(|| {
            Failure::usage(&tried, "this is not a transfer log", "use --xferlog with transfers.log")
        })?;
        return out::print(&text);
    }
    let Some(found) = recognise(path, &bytes) else {
        let hint = "docs/formats lists the supported files";
        return Err(Failure::new(&tried, "this is not a file written by plimsoll", hint));
    };
    out::print(&if args.json { out::json(&found.value) } else { found.text })
}

/// The content of a file, for programs and for people.
struct Inspected {
    value: Value,
    text: String,
}

impl From<Value> for Inspected {
    /// One line for each field.
    fn from(value: Value) -> Self {
        Self { text: as_text(&value), value }
    }
}

/// First bytes of a segment of statistics (`docs/formats/segments.md`).
const SEGMENT: &[u8; 8] = b"PLIMSTAT";

fn is_segment(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *SEGMENT
}

/// Piece by piece, so that a file of any length is printed. A reader that has seen enough
/// (`| head`) is no failure.
fn in_pieces<E: Error + From<io::Error>>(
    (tried, what, hint): (&str, &str, &str),
    args: &InspectArgs,
    text: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), Failure> {
    if args.json {
        return Err(Failure::usage(tried, &format!("{what} printed as text only"), hint));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let done = text(&mut out).and_then(|()| Ok(out.flush()?));
    let source = |e: &E| Some(e.source()?.downcast_ref::<io::Error>()?.kind());
    done.or_else(|e| match source(&e) {
        Some(io::ErrorKind::BrokenPipe) => Ok(()),
        _ => Err(Failure::of(tried, &e)),
    })
}

/// The content of a file of the state directory. Secrets are described, never shown.
fn recognise(path: &Path, bytes: &[u8]) -> Option<Inspected> {
    let name = path.file_name()?.to_str()?;
    let text = std::str::from_utf8(bytes).ok();
    let state = state_file(name, text, bytes).map(Inspected::from);
    state
        .or_else(|| configuration::recognise(name, text?))
        .or_else(|| logs::recognise(name, bytes))
        .or_else(|| handles::recognise(name, bytes))
        .or_else(|| luns::recognise(bytes))
        .or_else(|| archive::recognise(name, text?))
        .or_else(|| lab::recognise(name, text?))
}

fn state_file(name: &str, text: Option<&str>, bytes: &[u8]) -> Option<Value> {
    match name {
        "handle-secret" if bytes.len() == 32 => {
            Some(json!({ "format": "key of the file handles", "bytes": 32 }))
        }
        "api-token" => {
            let length = text?.trim().len();
            Some(json!({ "format": "bearer token of the API", "characters": length }))
        }
        "server-id" => {
            let id = service::server_id::ServerId::parse(bytes)?;
            let owner = String::from_utf8_lossy(&id.owner).into_owned();
            let guid = base::text::hex(&id.guid);
            Some(json!({ "format": "identity of the server", "guid": guid, "owner": owner }))
        }
        _ if name.starts_with("file-system-") => {
            let all = vfs::host::FileSystemIdentity::parse(text?)?;
            let name = |known: &vfs::host::RootEntry| String::from_utf8_lossy(&known.name).into();
            let one = |kept: &vfs::host::FileSystemIdentity| {
                let entries: Vec<String> = kept.entries.iter().map(name).collect();
                let (id, root) = (format!("{:016x}", kept.id), &kept.root);
                json!({ "id": id, "root": root, "entries": entries })
            };
            let file_systems: Vec<Value> = all.iter().map(one).collect();
            let format = "identity of a file system";
            Some(json!({ "format": format, "file_systems": file_systems }))
        }
        "first-sign-in" => {
            let user = text?.split_once("user ")?.1.split(',').next()?;
            Some(json!({ "format": "first sign-in", "user": user }))
        }
        "key.pem" | "authority-key.pem" | "ssh_host_ed25519_key" | "ssh_host_rsa_key" => {
            text?.contains("PRIVATE KEY").then(|| json!({ "format": "private key", "of": name }))
        }
        "certificate.pem" | "authority.pem" => certificate(text?),
        "users.json" => {
            let users: BTreeMap<String, String> = serde_json::from_slice(bytes).ok()?;
            let names: Vec<&String> = users.keys().collect();
            Some(json!({ "format": "users", "users": names }))
        }
        "lock" => {
            let pid: u32 = text?.trim().parse().ok()?;
            Some(json!({ "format": "lock of a state directory", "last_pid": pid }))
        }
        "kept.json" => analytics::recorded::inspect(text?),
        "hardware.json" => {
            let watch: host_hardware::watch::Watch = serde_json::from_slice(bytes).ok()?;
            Some(json!({ "format": "hardware that was seen", "seen": watch }))
        }
        "problems.json" => {
            let since: BTreeMap<String, u64> = serde_json::from_slice(bytes).ok()?;
            Some(json!({ "format": "problems of the machine", "since": since }))
        }
        "clients" | "nlm-clients" => clients(bytes),
        "dav-locks" => dav_locks(bytes),
        "smb-handles" => smb_handles(bytes),
        _ => registered(bytes).or_else(|| issued(bytes)),
    }
}

/// The first certificate in a file.
fn certificate(pem: &str) -> Option<Value> {
    let facts = control::certificates::x509::Facts::of_pem(pem)?;
    Some(json!({
        "format": "certificate",
        "made_by_plimsoll": pem.starts_with("# made by plimsoll "),
        "subject": facts.subject,
        "issuer": facts.issuer,
        "names": facts.names,
        "begins": utc(facts.begins.cast_signed()),
        "ends": utc(facts.ends.cast_signed()),
        "fingerprint": facts.fingerprint,
    }))
}

/// A certificate issued by ACME: `STATE/certificates/NAME.json`.
fn issued(bytes: &[u8]) -> Option<Value> {
    let issued: control::certificates::acme::issued::Issued = serde_json::from_slice(bytes).ok()?;
    let mut value = json!({
        "format": "certificate given by ACME, with its key and account",
        "directory": issued.directory,
        "domains": issued.domains,
    });
    if let Some(shown) = issued.chain.as_deref().and_then(certificate) {
        value["certificate"] = shown;
    }
    Some(value)
}

/// The clients that held state when the server ended (`docs/formats/clients.md`).
fn clients(bytes: &[u8]) -> Option<Value> {
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let clients = vfs::recovery::read(bytes).ok()?.into_iter().map(|client| {
        let (owner, principal) = (shown(&client.owner), shown(&client.principal));
        json!({ "protocol": client.protocol, "owner": owner, "principal": principal })
    });
    Some(json!({ "format": "records of clients", "clients": clients.collect::<Vec<_>>() }))
}

/// WebDAV's locks (`docs/formats/dav-locks.md`). A token is no secret: it is of use to its user
/// only.
fn dav_locks(bytes: &[u8]) -> Option<Value> {
    let locks = serve::http::dav::record::read(bytes).ok()?.into_iter().map(|lock| {
        json!({
            "token": lock.token,
            "path": String::from_utf8_lossy(&lock.root),
            "user": lock.user,
            "client": lock.client,
            "since": (lock.since_s > 0).then(|| utc(lock.since_s.cast_signed())),
            "exclusive": lock.exclusive,
            "deep": lock.deep,
            "seconds": lock.timeout_s,
            "ends": utc(lock.expires_s.cast_signed()),
        })
    });
    Some(json!({ "format": "WebDAV locks", "locks": locks.collect::<Vec<_>>() }))
}

/// Persistent handles of SMB (`docs/formats/smb-handles.md`). A number is no secret: it is of use
/// to its user at its client only.
fn smb_handles(bytes: &[u8]) -> Option<Value> {
    let handles = serve::smb::handles::inspect(bytes).ok()?.into_iter().map(|(number, one)| {
        json!({
            "number": format!("{number:016x}"),
            "path": String::from_utf8_lossy(&one.path),
            "user": one.user,
            "client": one.address,
            "client_guid": base::text::hex(&one.client),
            "create_guid": base::text::hex(&one.guid),
            "timeout_ms": one.timeout_ms,
            "access": one.mode.access,
            "deny": one.mode.deny,
            "locks": one.ranges.len(),
        })
    });
    let handles: Vec<_> = handles.collect();
    Some(json!({ "format": "persistent handles of SMB", "handles": handles }))
}

/// An entry of the run-time registry.
fn registered(bytes: &[u8]) -> Option<Value> {
    let entry: control::state::registry::Entry = serde_json::from_slice(bytes).ok()?;
    let mut value = serde_json::to_value(entry).ok()?;
    value["format"] = "registry entry of a server".into();
    Some(value)
}

fn as_text(found: &Value) -> String {
    let Some(fields) = found.as_object() else { return format!("{found}\n") };
    let mut text = format!("{}\n", fields["format"].as_str().unwrap_or(""));
    for (name, value) in fields.iter().filter(|(name, _)| *name != "format") {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text += &format!("  {name:<18} {value}\n");
    }
    text
}

#[cfg(test)]
mod tests;
