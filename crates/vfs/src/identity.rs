//! Who signs in, for protocols whose users do: FTP, SFTP, HTTP. What is behind it is the one list
//! of users; a protocol knows only this.

use core::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::cred::Cred;

/// Somebody who has signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// By what name.
    pub name: String,
    /// Who he is at the file system.
    pub cred: Cred,
    /// Where he begins: a path from the list of shares on, as in `/SHARE/home/alice`.
    pub home: Option<Vec<u8>>,
    /// Nobody in particular: signed in without a password because the service lets everybody in.
    pub anonymous: bool,
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// Name or password is wrong, or he may not sign in at all; which of them nobody is told.
    #[error("wrong name or password")]
    Wrong,
    /// There were too many wrong ones; nothing was looked at.
    #[error("too many wrong passwords: wait {} s", .0.as_secs() + 1)]
    Wait(Duration),
}

/// The list of users, as those who serve them see it. All methods may be called from any thread.
pub trait Identity: Send + Sync {
    /// The list that stands behind this one: it answers what this one does not answer itself.
    fn behind(&self) -> Option<&dyn Identity> {
        None
    }

    /// Judges a name and a password from an address. Slow on purpose (some 20 ms of a core), and
    /// as slow for a name that nobody has: not for a thread that others wait for.
    ///
    /// # Errors
    /// By [`Refused`].
    fn password(&self, _: IpAddr, _: &str, _: &str) -> Result<Arc<Person>, Refused> {
        Err(Refused::Wrong)
    }

    /// Whether this address and name must wait before anything of theirs is looked at.
    fn must_wait(&self, from: IpAddr, name: &str) -> Option<Duration> {
        self.behind()?.must_wait(from, name)
    }

    /// The lines of `authorized_keys` of a user who may sign in; none if there is no such user.
    fn keys(&self, name: &str) -> Vec<String> {
        self.behind().map_or_else(Vec::new, |users| users.keys(name))
    }

    /// Notes how a sign-in without a password went (a public key), for the patience with wrong
    /// ones.
    fn judged(&self, _: IpAddr, _: &str, _: bool) {}

    /// A user as he is now; `None` if he may not be signed in (any more). To be called after a key
    /// was found right, and from time to time as long as he is signed in.
    fn person(&self, name: &str) -> Option<Arc<Person>>;

    /// A user's name as it is configured, from one that may differ in case: for protocols with
    /// clients do not distinguish it. `None` if there is no such user, or more than one.
    fn in_any_case(&self, name: &str) -> Option<String> {
        self.behind()?.in_any_case(name)
    }

    /// Whether somebody who was let in still is: his password, his keys, his rights are those that
    /// they were then. To be asked when [`Identity::generation`] has changed.
    fn stands(&self, person: &Arc<Person>) -> bool {
        match self.behind() {
            Some(users) => users.stands(person),
            None => person.anonymous || self.person(&person.name).as_ref() == Some(person),
        }
    }

    /// The hash of a user's password that NTLM is judged by (MS-NLMP §3.3.1, NTOWFv1), if one is
    /// kept and he may sign in. Who has it can sign in as who has the password.
    fn nt_hash(&self, name: &str) -> Option<[u8; 16]> {
        self.behind()?.nt_hash(name)
    }

    /// Keys whose certificates of users are believed (OpenSSH's `TrustedUserCAKeys`), one line of
    /// `authorized_keys` each.
    fn authorities(&self) -> Vec<String> {
        self.behind().map_or_else(Vec::new, |users| users.authorities())
    }

    /// Who acts for those who do not sign in, where a service lets them.
    fn anonymous(&self) -> Arc<Person>;

    /// Another number whenever something about users has changed: who is signed in should be looked
    /// at again ([`Identity::person`]).
    fn generation(&self) -> u64 {
        self.behind().map_or(0, |users| users.generation())
    }
}

/// Names of users and groups. What has none is told by its number.
pub trait Owners: Send + Sync {
    /// The name of a user.
    fn user(&self, uid: u32) -> Option<String>;
    /// The name of a group.
    fn group(&self, gid: u32) -> Option<String>;
}

/// Nobody has a name.
impl Owners for () {
    fn user(&self, _: u32) -> Option<String> {
        None
    }

    fn group(&self, _: u32) -> Option<String> {
        None
    }
}
