//! Clients, opens and locks as aligned columns.

use base::units;
use control::nfs::{Listing, NfsClient, NfsLock, NfsOpen};

use crate::cmd::columns::Side::{Left, Right};
use crate::cmd::columns::table;

/// Who is there.
pub fn clients(all: &Listing<NfsClient>) -> String {
    if all.rows.is_empty() {
        return "no NFS client holds state; one of NFSv3 shows only while it holds locks\n"
            .to_owned();
    }
    let head = [
        ("id", Left),
        ("client", Left),
        ("version", Left),
        ("state", Left),
        ("silent", Right),
        ("sessions", Right),
        ("opens", Right),
        ("locks", Right),
        ("delegations", Right),
        ("user", Left),
        ("name", Left),
    ];
    let row = |c: &NfsClient| {
        let silent = c.silent_s.map(|s| units::time_ns((s.max(0.0) * 1e9).round()));
        [
            c.id.clone(),
            c.label.clone(),
            c.version.clone(),
            c.state.clone(),
            silent.unwrap_or_default(),
            c.sessions.to_string(),
            c.opens.to_string(),
            held(c.locks, c.waiting),
            c.delegations.to_string(),
            c.principal.clone(),
            c.name.clone(),
        ]
    };
    table(head, &all.rows.iter().map(row).collect::<Vec<_>>(), all.more)
}

/// Locks, and how many are waited for if any are.
fn held(locks: u64, waiting: u64) -> String {
    if waiting == 0 { locks.to_string() } else { format!("{locks}+{waiting}") }
}

/// What is held open.
pub fn opens(all: &Listing<NfsOpen>) -> String {
    if all.rows.is_empty() {
        return "nothing is held open\n".to_owned();
    }
    let head = ["id", "client", "kind", "access", "deny", "file", "owner"].map(|name| (name, Left));
    let row = |o: &NfsOpen| {
        let cells = [&o.client, &o.label, &o.kind, &o.access, &o.deny, &o.file.file, &o.owner];
        cells.map(Clone::clone)
    };
    table(head, &all.rows.iter().map(row).collect::<Vec<_>>(), all.more)
}

/// What is locked, and by whom it is waited for.
pub fn locks(all: &Listing<NfsLock>) -> String {
    if all.rows.is_empty() {
        return "nothing is locked\n".to_owned();
    }
    let head = [
        ("id", Left),
        ("client", Left),
        ("kind", Left),
        ("first byte", Right),
        ("bytes", Right),
        ("held", Left),
        ("file", Left),
        ("owner", Left),
    ];
    let row = |l: &NfsLock| {
        [
            l.client.clone(),
            l.label.clone(),
            l.kind.clone(),
            l.offset.to_string(),
            l.length.map_or_else(|| "to the end".to_owned(), |length| length.to_string()),
            if l.waiting { "waits" } else { "held" }.to_owned(),
            l.file.file.clone(),
            l.owner.clone(),
        ]
    };
    table(head, &all.rows.iter().map(row).collect::<Vec<_>>(), all.more)
}

/// What ended with a client.
pub fn expired(was: &NfsClient) -> String {
    format!(
        "{} at {} is expired; with it ended {} opens, {} locks, {} delegations\n",
        was.id, was.label, was.opens, was.locks, was.delegations
    )
}

#[cfg(test)]
mod tests;
