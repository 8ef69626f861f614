//! Sign-in for protocols with users: FTP, SFTP, HTTP. The implementation is the one list of users;
//! a protocol uses only this interface.

use core::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::cred::Cred;

/// A user that has signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The user name.
    pub name: String,
    /// The identity at the file system.
    pub cred: Cred,
    /// The home directory: a path from the list of shares, as in `/SHARE/home/alice`.
    pub home: Option<Vec<u8>>,
    /// An anonymous user: signed in without a password because the service allows that.
    pub anonymous: bool,
}

/// Why a sign-in is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// The name or the password is wrong, or the user may not sign in; the client cannot
    /// distinguish these.
    #[error("wrong name or password")]
    Wrong,
    /// Too many sign-ins have failed; this one was not checked.
    #[error("too many wrong passwords: wait {} s", .0.as_secs() + 1)]
    Wait(Duration),
}

/// The list of users, as the services use it. All methods may be called from any thread.
pub trait Identity: Send + Sync {
    /// The list that provides the methods that this one does not implement.
    fn behind(&self) -> Option<&dyn Identity> {
        None
    }

    /// Checks a name and a password from an address. Slow on purpose (some 20 ms of a core), and
    /// equally slow for a name that does not exist: not for a thread that serves other clients.
    ///
    /// # Errors
    /// By [`Refused`].
    fn password(&self, _: IpAddr, _: &str, _: &str) -> Result<Arc<Person>, Refused> {
        Err(Refused::Wrong)
    }

    /// How long this address and name must wait before a sign-in of theirs is checked.
    fn must_wait(&self, from: IpAddr, name: &str) -> Option<Duration> {
        self.behind()?.must_wait(from, name)
    }

    /// The `authorized_keys` lines of a user that may sign in; none if there is no such user.
    fn keys(&self, name: &str) -> Vec<String> {
        self.behind().map_or_else(Vec::new, |users| users.keys(name))
    }

    /// Records the outcome of a sign-in without a password (a public key), for the throttling of
    /// failed ones.
    fn judged(&self, _: IpAddr, _: &str, _: bool) {}

    /// The current state of a user; `None` if the user may not be signed in (any more). To be
    /// called after a key was verified, and periodically while the user is signed in.
    fn person(&self, name: &str) -> Option<Arc<Person>>;

    /// The configured name of a user, from one that may differ in case: for protocols with clients
    /// that do not distinguish case. `None` if there is no such user, or more than one.
    fn in_any_case(&self, name: &str) -> Option<String> {
        self.behind()?.in_any_case(name)
    }

    /// Whether a sign-in is still valid: password, keys and rights of the user are those of that
    /// time. To be called when [`Identity::generation`] has changed.
    fn stands(&self, person: &Arc<Person>) -> bool {
        match self.behind() {
            Some(users) => users.stands(person),
            None => person.anonymous || self.person(&person.name).as_ref() == Some(person),
        }
    }

    /// The hash of a user's password that NTLM is verified with (MS-NLMP §3.3.1, NTOWFv1), if one
    /// is stored and the user may sign in. For a sign-in it is equivalent to the password.
    fn nt_hash(&self, name: &str) -> Option<[u8; 16]> {
        self.behind()?.nt_hash(name)
    }

    /// Keys of trusted CAs for the certificates of users (OpenSSH's `TrustedUserCAKeys`), one line
    /// of `authorized_keys` each.
    fn authorities(&self) -> Vec<String> {
        self.behind().map_or_else(Vec::new, |users| users.authorities())
    }

    /// The identity for clients that do not sign in, where a service allows that.
    fn anonymous(&self) -> Arc<Person>;

    /// Changes whenever something about users has changed: signed-in users should then be checked
    /// again ([`Identity::person`]).
    fn generation(&self) -> u64 {
        self.behind().map_or(0, |users| users.generation())
    }
}

/// Names of users and groups. Ids without a name are shown as numbers.
pub trait Owners: Send + Sync {
    /// The name of a user.
    fn user(&self, uid: u32) -> Option<String>;
    /// The name of a group.
    fn group(&self, gid: u32) -> Option<String>;
}

/// No id has a name.
impl Owners for () {
    fn user(&self, _: u32) -> Option<String> {
        None
    }

    fn group(&self, _: u32) -> Option<String> {
        None
    }
}
