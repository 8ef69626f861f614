//! The audit log: the user, time, source and action of each change, with the values before and
//! after. One JSON object a line, in `STATE/audit.log`; it is added to and never changed, and
//! flushed before a change is acknowledged.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use base::clock::{Clock, NS_PER_S};
use base::limits::{AUDIT_FILE_BYTES_MAX, AUDIT_FILES_MAX, AUDIT_VALUE_MAX};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Actor;
use super::store::{Disk, repair, rotate};

const FILE: &str = "audit.log";

/// One record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since the epoch.
    pub when: u64,
    /// The signed-in name, or the one that was tried.
    pub who: String,
    /// An address, `local`, `command line`.
    pub from: String,
    /// `set`, `unset`, `create`, `destroy`, `rename`, the name of an action, `sign-in`, …
    pub action: String,
    /// The node, if it is about one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The property, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// What was before; `(secret)` for secrets.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub before: Json,
    /// What is after; `(secret)` for secrets.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub after: Json,
    /// The revision of the configuration that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Further details.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl Record {
    /// A record without values.
    pub fn new(who: &Actor, action: &str) -> Self {
        Self {
            when: 0,
            who: who.user.clone(),
            from: who.from.clone(),
            action: action.to_owned(),
            path: String::new(),
            property: None,
            before: Json::Null,
            after: Json::Null,
            revision: None,
            detail: String::new(),
        }
    }
}

/// A query of records.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// From this second on.
    pub from: Option<u64>,
    /// Before this second.
    pub to: Option<u64>,
    /// About this node or one below it.
    pub path: Option<String>,
    /// The maximum number of records, the newest ones.
    pub limit: usize,
}

/// The log.
pub struct Audit {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    file: Mutex<Written>,
}

/// The file that is written.
struct Written {
    /// Its bytes.
    size: u64,
    /// The last line may not be whole.
    torn: bool,
}

impl Audit {
    /// Opens the log. A last line that a power cut has torn is ended, so that the next one can be
    /// read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(disk: Arc<dyn Disk>, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let size = repair(&*disk, FILE)?;
        Ok(Self { disk, clock, file: Mutex::new(Written { size, torn: false }) })
    }

    /// Writes something down that is no change of the configuration: a sign-in, or one that was
    /// refused.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn note(&self, who: &Actor, action: &str, detail: &str) -> io::Result<()> {
        let detail = detail.chars().take(AUDIT_VALUE_MAX).collect();
        self.write(&[Record { detail, ..Record::new(who, action) }])
    }

    /// Appends records and flushes them. A record without a time gets the current one.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, records: &[Record]) -> io::Result<()> {
        let now = self.clock.wall_ns() / NS_PER_S;
        let mut text = String::new();
        for record in records {
            let mut record = record.clone();
            if record.when == 0 {
                record.when = now;
            }
            for value in [&mut record.before, &mut record.after] {
                *value = shortened(std::mem::take(value));
            }
            text += &serde_json::to_string(&record)?;
            text.push('\n');
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.size > 0 && file.size + text.len() as u64 > AUDIT_FILE_BYTES_MAX {
            rotate(&*self.disk, FILE, AUDIT_FILES_MAX)?;
            *file = Written { size: 0, torn: false };
        }
        if file.torn {
            text.insert(0, '\n');
        }
        // A full disk takes a part of it, to which the next record must not be joined.
        file.torn = true;
        self.disk.append(FILE, text.as_bytes())?;
        file.torn = false;
        self.disk.flush(FILE)?;
        if file.size == 0 {
            self.disk.flush_names(FILE)?;
        }
        file.size += text.len() as u64;
        Ok(())
    }

    /// Records, the newest first.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(&self, wanted: &AuditFilter) -> io::Result<Vec<Record>> {
        // Not while a file gets another name.
        let _still = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for n in 0..AUDIT_FILES_MAX {
            let name = if n == 0 { FILE.to_owned() } else { format!("{FILE}.{n}") };
            let Some(content) = self.disk.read(&name)? else { break };
            for line in content.rsplit(|byte| *byte == b'\n') {
                // A torn line is skipped.
                let Ok(record) = serde_json::from_slice::<Record>(line) else { continue };
                if wanted.fits(&record) {
                    found.push(record);
                }
                if found.len() >= wanted.limit {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }
}

impl AuditFilter {
    fn fits(&self, record: &Record) -> bool {
        let below = |path: &String| {
            record.path == *path
                || record.path.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        self.from.is_none_or(|from| record.when >= from)
            && self.to.is_none_or(|to| record.when < to)
            && self.path.as_ref().is_none_or(|path| path == "/" || below(path))
    }
}

fn shortened(value: Json) -> Json {
    match value {
        Json::String(text) if text.chars().count() > AUDIT_VALUE_MAX => {
            Json::String(text.chars().take(AUDIT_VALUE_MAX).chain(['…']).collect())
        }
        other => other,
    }
}
