//! In which order the connections of a client have signed in: breaks of its leases go to the first
//! (MS-SMB2 §3.3.4.7), whatever core that is on.
//!
//! ClientGuid is no secret: a connection is one of the client only if the same user has signed in.
//! No other user gets its breaks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::leases::{Mail, MailClient, Mailbox};

/// The connections of all clients, in order.
#[derive(Default)]
pub(crate) struct MailOrder {
    of: Mutex<HashMap<MailClient, Vec<Arc<Mailbox>>>>,
}

/// A connection is one of the client of a session as long as this lives.
pub(crate) struct MailPermit {
    all: Arc<MailOrder>,
    client: MailClient,
    mailbox: Arc<Mailbox>,
}

impl MailOrder {
    fn of(&self) -> MutexGuard<'_, HashMap<MailClient, Vec<Arc<Mailbox>>>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another connection of a client.
    pub fn enter(self: &Arc<Self>, client: MailClient, mailbox: &Arc<Mailbox>) -> MailPermit {
        self.of().entry(client.clone()).or_default().push(Arc::clone(mailbox));
        MailPermit { all: Arc::clone(self), client, mailbox: Arc::clone(mailbox) }
    }

    /// Posts what the connection that it was passed on to has not sent; nothing if there is no
    /// other one: then nothing of the client is open.
    pub fn post(&self, mail: Mail) {
        let of = self.of();
        let first = mail.passed_on.as_ref().and_then(|client| of.get(client)?.first());
        if let Some(first) = first {
            first.post(mail);
        }
    }
}

impl MailPermit {
    /// Passes a break on to the first connection; given back if that is this one.
    pub fn pass_on(&self, mail: Mail) -> Option<Mail> {
        // Posted with the lock held: one that has left looks for what it was passed afterwards.
        let of = self.all.of();
        let first = of.get(&self.client).and_then(|all| all.first());
        match first {
            Some(first) if !Arc::ptr_eq(first, &self.mailbox) => {
                first.post(Mail { passed_on: Some(self.client.clone()), ..mail });
                None
            }
            _ => Some(mail),
        }
    }
}

impl Drop for MailPermit {
    fn drop(&mut self) {
        let mut of = self.all.of();
        if let Some(all) = of.get_mut(&self.client) {
            if let Some(at) = all.iter().position(|other| Arc::ptr_eq(other, &self.mailbox)) {
                all.remove(at);
            }
            if all.is_empty() {
                of.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests;
