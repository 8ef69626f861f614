//! Logical units in the state directory: their files, who they are, and the secret with which
//! initiators sign in. `docs/formats/luns.md` has the files.
//!
//! A unit's file lies in the state directory, which no file protocol reaches, by name or by handle,
//! wherever it lies.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use base::limits::{LUN_RESERVATIONS_FILE_MAX, LUNS_MAX};
use base::random::{Random, SystemRandom};
use control::state::files::write_atomic;
use serve::iscsi::unit::{Identity, Unit, UnitSettings};
use vfs::flush::FlushSite;
use vfs::journal::{Journal, Limits};
use vfs::lun::Medium;
use vfs::lun::file::{FileMedium, Space, sync_name};
use vfs::lun::reservations::store::Store;
use wire::iscsi::login_phase::Credentials;

use crate::failure::{Failure, chain};

/// The folder of the state directory.
pub const FOLDER: &str = "luns";
/// The journal of units, in that folder: by name, who each is.
pub const TABLE: &str = "table";
/// What the journal begins with.
pub const MAGIC: [u8; 8] = *b"PLIMLUN1";
/// The secret of initiators, in that folder.
const SECRET: &str = "secret";
/// The name of the target, in that folder.
const TARGET: &str = "target";
/// Persistent reservations, in that folder.
const RESERVATIONS: &str = "reservations";
/// The name that goes with the secret.
const USER: &str = "plimsoll";
/// Bytes of a block.
const BLOCK: u32 = 512;

/// A unit that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LunGiven {
    /// Its name.
    pub name: String,
    /// Bytes, of one that is made.
    pub size: u64,
}

/// A unit.
pub struct Lun {
    /// Its number at the target.
    pub number: u16,
    /// The unit.
    pub unit: Arc<Unit>,
}

/// All units.
pub struct Luns {
    all: Vec<Lun>,
    secret: Credentials,
    target: String,
}

/// Who a unit is, as the table keeps it.
struct Record {
    guid: [u8; 16],
    number: u16,
    block: u32,
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.guid.to_vec();
        out.extend(self.number.to_le_bytes());
        out.extend(self.block.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (guid, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let block = u32::from_le_bytes(rest.try_into().ok()?);
        Some(Self { guid: *guid, number: u16::from_le_bytes(*number), block })
    }
}

impl Luns {
    /// Opens what there is, and makes what was asked for and is not there. Without either nothing
    /// is made.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn open(state: &Path, given: &[LunGiven]) -> Result<Self, Failure> {
        let folder = state.join(FOLDER);
        if given.is_empty() && !folder.exists() {
            let secret = Credentials { name: USER.to_owned(), secret: fresh_secret() };
            return Ok(Self { all: Vec::new(), secret, target: name_of(&[0; 8]) });
        }
        let tried = "use the logical units of the state directory";
        std::fs::create_dir_all(&folder).map_err(|e| Failure::of(tried, &e))?;
        let secret = secret(&folder).map_err(|e| Failure::of(tried, &e))?;
        let limits = Limits {
            record_max: 1024,
            file_max: 4 * (LUNS_MAX as u64) * 1024,
            compact: LUN_RESERVATIONS_FILE_MAX / 1024,
        };
        let (table, _) = Journal::open(&folder.join(TABLE), MAGIC, limits)
            .map_err(|e| Failure::of(tried, &e))?;
        let (store, _) =
            Store::open(&folder.join(RESERVATIONS)).map_err(|e| Failure::of(tried, &e))?;
        for lun in given {
            make(&folder, &table, lun)?;
        }
        let store = Arc::new(store);
        let mut all = Vec::new();
        for (name, record) in table.records() {
            let name = String::from_utf8_lossy(&name).into_owned();
            let Some(record) = Record::decode(&record) else { continue };
            // One that cannot be opened keeps nobody from the others.
            match open(&folder, &name, &record, &store) {
                Ok(unit) => all.push(Lun { number: record.number, unit }),
                Err(e) => base::error!("iscsi", "the unit {name} is offline: {}", chain(&e)),
            }
        }
        let target = kept(&folder.join(TARGET), || name_of(&SystemRandom.next_u64().to_le_bytes()));
        let target = target.map_err(|e| Failure::of(tried, &e))?;
        Ok(Self { all, secret, target: String::from_utf8_lossy(&target).into_owned() })
    }

    /// All that could be opened.
    pub fn all(&self) -> &[Lun] {
        &self.all
    }

    /// What initiators sign in with.
    pub fn secret(&self) -> &Credentials {
        &self.secret
    }

    /// The iSCSI name of their target.
    pub fn target(&self) -> &str {
        &self.target
    }
}

/// The name of a target (RFC 7143 §4.2.7.4).
fn name_of(number: &[u8; 8]) -> String {
    let tail: String = number.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("iqn.2026-01.io.plimsoll:{tail}")
}

/// Sixteen characters that nobody has to type twice.
fn fresh_secret() -> Vec<u8> {
    const LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0; 16];
    SystemRandom.fill(&mut random);
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).copied();
    random.iter().filter_map(letter).collect()
}

/// The secret, which is made if there is none.
fn secret(folder: &Path) -> io::Result<Credentials> {
    let made = || String::from_utf8_lossy(&fresh_secret()).into_owned();
    Ok(Credentials { name: USER.to_owned(), secret: kept(&folder.join(SECRET), made)? })
}

/// What a file says, which is made if it is not there.
fn kept(path: &Path, made: impl FnOnce() -> String) -> io::Result<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes.trim_ascii().to_vec()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let fresh = made().into_bytes();
            write_atomic(path, &fresh, 0o600).map_err(io::Error::other)?;
            Ok(fresh)
        }
        Err(e) => Err(e),
    }
}

/// Makes a unit, unless there is one of this name: that one keeps its size.
fn make(folder: &Path, table: &Journal, lun: &LunGiven) -> Result<(), Failure> {
    let records = table.records();
    if records.contains_key(lun.name.as_bytes()) {
        return Ok(());
    }
    let tried = format!("make the unit {}", lun.name);
    let path = folder.join(format!("{}.lun", lun.name));
    remove_unused(&path).map_err(|e| Failure::of(&tried, &e))?;
    FileMedium::create(&path, lun.size, Space::Sparse).map_err(|e| Failure::of(&tried, &e))?;
    if FlushSite::LunName.enabled() {
        sync_name(&path).map_err(|e| Failure::of(&tried, &e))?;
    }
    let taken: Vec<u16> =
        records.values().filter_map(|record| Record::decode(record)).map(|r| r.number).collect();
    let number = (0..=u16::MAX).find(|number| !taken.contains(number)).unwrap_or_default();
    let mut guid = [0; 16];
    SystemRandom.fill(&mut guid);
    // NAA type 6; what follows is ours alone by its length.
    guid[0] = 0x60 | guid[0] & 0x0f;
    let record = Record { guid, number, block: BLOCK };
    table.put(lun.name.as_bytes(), &record.encode()).map_err(|e| Failure::of(&tried, &e))
}

/// Removes what a start that was cut off has left: a file without a record and without any data.
/// One that has data is somebody's unit, whatever became of its record.
fn remove_unused(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
        Ok(meta) if meta.blocks() == 0 => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} has data but is not in the table; move it away first", path.display()),
        )),
    }
}

fn open(folder: &Path, name: &str, record: &Record, store: &Arc<Store>) -> io::Result<Arc<Unit>> {
    let medium = FileMedium::open(&folder.join(format!("{name}.lun")), false)?;
    let medium: Arc<dyn Medium> = Arc::new(medium);
    let identity = Identity { name: name.to_owned(), guid: record.guid, block: record.block };
    let settings = UnitSettings { write_cache: true, read_only: false };
    Ok(Unit::new(identity, medium, settings, Some(store.clone())))
}

/// A unit's name, and lines to type to use it.
pub fn ways(at: SocketAddr, luns: &Luns, lun: &Lun) -> (String, Vec<String>) {
    let (target, secret) = (&luns.target, String::from_utf8_lossy(&luns.secret.secret));
    let url = format!("iscsi://{USER}%{secret}@{at}/{target}/{}", lun.number);
    let set = |what: &str, value: &str| {
        format!(
            "iscsiadm -m node -T {target} -p {at} -o update -n node.session.auth.{what} -v {value}"
        )
    };
    let lines = vec![
        format!("qemu-img info '{url}'"),
        format!("iscsiadm -m node -T {target} -p {at} -o new"),
        set("authmethod", "CHAP"),
        set("username", USER),
        set("password", &secret),
        format!("iscsiadm -m node -T {target} -p {at} --login"),
    ];
    (lun.unit.identity.name.clone(), lines)
}

/// Reads `NAME=SIZE`: a size in bytes, or with K, M, G or T in powers of 1024.
///
/// # Errors
/// What is wrong with it.
pub fn parse(text: &str) -> Result<LunGiven, &'static str> {
    let (name, size) = text.split_once('=').ok_or("missing '='")?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_good = !name.is_empty() && name.len() <= 64 && !name.starts_with('.');
    if !is_good || !name.bytes().all(is_name) {
        return Err("a name has at most 64 letters, digits, '-', '_' and '.'");
    }
    let (digits, shift) = match size.as_bytes().last() {
        Some(b'K') => (size.len() - 1, 10),
        Some(b'M') => (size.len() - 1, 20),
        Some(b'G') => (size.len() - 1, 30),
        Some(b'T') => (size.len() - 1, 40),
        _ => (size.len(), 0),
    };
    let number: u64 = size
        .get(..digits)
        .and_then(|digits| digits.parse().ok())
        .ok_or("a size is a number followed by K, M, G or T")?;
    let size = number.checked_mul(1 << shift).filter(|size| *size <= 1 << 60);
    match size {
        Some(size) if size >= 1 << 20 && size.is_multiple_of(4096) => {
            Ok(LunGiven { name: name.to_owned(), size })
        }
        _ => Err("a size is at least 1M, and a multiple of 4096 bytes"),
    }
}

#[cfg(test)]
mod tests;
