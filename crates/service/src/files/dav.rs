//! The locks of WebDAV for the administrator: their owners, their release, their number.

use std::sync::Arc;

use control::dav::{DavLock, DavState};
use control::nfs::Listing;
use probe::hub::Hub;
use serve::http::dav::locks::LockError;
use serve::http::dav::state::Lock;

use super::http::Http;
use super::lock_counts::scope;
use crate::names::label;
use crate::nfs::clients::show;

/// Characters of a token that distinguish it from others: 48 of its 122 random bits, too few to use
/// the lock.
const SHORT: usize = 13;

/// All locks of WebDAV.
pub struct DavLocks {
    http: Arc<Http>,
    hub: Arc<Hub>,
}

/// What a token is called where people see it: the beginning of its UUID.
pub fn short(token: &str) -> &str {
    let uuid = token.strip_prefix("opaquelocktoken:").unwrap_or(token);
    uuid.get(..SHORT).unwrap_or(uuid)
}

/// What stands in an element, without its marks: the owner as people read it.
fn text(xml: &str) -> String {
    let mut parts = xml.split('<');
    let first = parts.next().unwrap_or_default();
    let others = parts.filter_map(|part| Some(part.split_once('>')?.1));
    let text: String = [first].into_iter().chain(others).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl DavLocks {
    /// Those that this service keeps.
    pub fn new(http: &Arc<Http>, hub: &Arc<Hub>) -> Self {
        Self { http: http.clone(), hub: hub.clone() }
    }

    fn find(&self, id: &str) -> Option<Arc<Lock>> {
        self.http.locks().all().into_iter().find(|lock| short(&lock.token) == id)
    }

    fn shown(&self, lock: &Lock) -> DavLock {
        let share = lock.root.split(|b| *b == b'/').find(|part| !part.is_empty());
        DavLock {
            id: short(&lock.token).to_owned(),
            user: lock.user.clone(),
            client: Some(lock.client.clone()).filter(|client| !client.is_empty()),
            label: label(&self.hub, lock.client.parse().ok().as_ref(), &lock.client),
            file: show::bytes(&lock.root),
            share: show::bytes(share.unwrap_or_default()),
            scope: scope(lock).to_owned(),
            depth: if lock.deep { "infinity" } else { "0" }.to_owned(),
            owner: show::bytes(text(&lock.owner).as_bytes()),
            since: Some(lock.since_s).filter(|since| *since > 0),
            timeout_s: lock.timeout_s,
            left_s: self.http.locks().left_s(lock),
        }
    }
}

impl DavState for DavLocks {
    fn locks(&self) -> Listing<DavLock> {
        Listing::cut(self.http.locks().all().iter().map(|lock| self.shown(lock)).collect())
    }

    fn lock(&self, id: &str) -> Option<DavLock> {
        self.find(id).map(|lock| self.shown(&lock))
    }

    fn release(&self, id: &str, by: &str) -> Result<Option<DavLock>, String> {
        let Some(lock) = self.find(id) else { return Ok(None) };
        let was = self.shown(&lock);
        match self.http.locks().release(&lock.token) {
            Ok(()) => {}
            // It ended, or its holder was faster.
            Err(LockError::Unknown) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
        let by = show::bytes(by.as_bytes());
        base::info!(
            "http",
            "{by} released the lock {id} of {} on {}, taken from {}",
            was.user,
            was.file,
            was.label
        );
        Ok(Some(was))
    }
}

#[cfg(test)]
mod tests;
