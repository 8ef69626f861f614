//! Names of users and groups, as the files of this machine have them.

use control::accounts::machine::Machine;
use serve::sftp::Owners;

/// The names.
#[derive(Default)]
pub struct Names(Machine);

impl Names {
    /// The name of a user, or his number.
    pub fn name(&self, uid: u32) -> String {
        self.user(uid).unwrap_or_else(|| uid.to_string())
    }
}

impl Owners for Names {
    fn user(&self, uid: u32) -> Option<String> {
        self.0.by_uid(uid).map(|account| account.name)
    }

    fn group(&self, gid: u32) -> Option<String> {
        self.0.group_name(gid)
    }
}
