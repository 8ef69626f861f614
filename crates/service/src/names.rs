//! Names for the numbers in records: users, shares, files. Read once a second, off the request
//! path.

use std::net::IpAddr;
use std::sync::Arc;

use analytics::names::Resolver;
use control::accounts::identity::Users;
use control::nfs::NfsFile;
use probe::hub::Hub;
use probe::op::FileId;
use vfs::fs::FileName;
use vfs::identity::Owners;
use vfs::locks::FileKey;
use vfs::share::{EXPORT, Share, Shares};

/// Names of users from the one list of users, of shares and files from the shares themselves.
pub struct ShareNames {
    /// What is served.
    pub shares: Arc<Shares>,
    /// The users of the shares.
    pub users: Arc<Users>,
}

impl ShareNames {
    /// The file that locks know by this key: by its path if any share knows one.
    pub fn file_of(&self, key: FileKey) -> NfsFile {
        let in_share = |share: &Arc<Share>| {
            let name = share.fs.describe_key(key)?;
            let known = matches!(name, FileName::Path(_));
            let file = file_name(&share.name, &name);
            Some((known, NfsFile { file, share: Some(share.name.clone()) }))
        };
        let mut found = self.shares.load().iter().filter_map(in_share).collect::<Vec<_>>();
        found.sort_by_key(|(known, _)| !known);
        let nameless = || NfsFile { file: format!("inode {}", key.fileid), share: None };
        found.into_iter().next().map_or_else(nameless, |(_, file)| file)
    }
}

impl Resolver for ShareNames {
    fn user(&self, uid: u32) -> Option<String> {
        self.users.user(uid)
    }

    fn share(&self, share: u16) -> Option<String> {
        self.shares.load().by_id(share).map(|share| share.name.clone())
    }

    fn path_of(&self, file: FileId) -> Option<String> {
        let named = |share: &Arc<Share>| Some(file_name(&share.name, &share.fs.describe(file)?));
        self.shares.load().iter().find_map(named)
    }
}

/// An address with the name that its machine reports; `known` is shown without one.
pub fn label(hub: &Hub, address: Option<&IpAddr>, known: &str) -> String {
    let clients = hub.clients();
    let label = address.and_then(|address| clients.label_of(clients.intern(*address)));
    label.unwrap_or_else(|| if known.is_empty() { "unknown" } else { known }.to_owned())
}

/// A file as people read it: its path, or by number where it was met by its handle only.
fn file_name(share: &str, name: &FileName) -> String {
    match name {
        FileName::Path(path) => {
            let path = String::from_utf8_lossy(path);
            format!("{EXPORT}{share}/{path}").trim_end_matches('/').to_owned()
        }
        FileName::Inode(inode) => format!("inode {inode} in {share}"),
    }
}

#[cfg(test)]
mod tests;
