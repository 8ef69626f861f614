//! Names for the numbers in records: users, shares, files. Asked once a second, off the path.

use std::sync::Arc;

use analytics::names::Resolver;
use probe::op::FileId;
use vfs::fs::FileName;
use vfs::share::{EXPORT, ShareTable};

/// Names of users from `/etc/passwd`, of shares and files from the shares themselves.
pub struct ShareNames {
    shares: Arc<ShareTable>,
}

impl ShareNames {
    /// Names of what `shares` hold.
    pub fn new(shares: Arc<ShareTable>) -> Self {
        Self { shares }
    }
}

impl Resolver for ShareNames {
    fn user(&self, uid: u32) -> Option<String> {
        user_name(&std::fs::read_to_string("/etc/passwd").ok()?, uid)
    }

    fn share(&self, share: u16) -> Option<String> {
        self.shares.by_id(share).map(|share| share.name.clone())
    }

    fn path_of(&self, file: FileId) -> Option<String> {
        self.shares.iter().find_map(|share| {
            Some(match share.fs.describe(file)? {
                FileName::Path(path) => {
                    let path = String::from_utf8_lossy(&path);
                    format!("{EXPORT}{}/{path}", share.name).trim_end_matches('/').to_owned()
                }
                FileName::Inode(ino) => format!("inode {ino} in {}", share.name),
            })
        })
    }
}

/// The name of `uid` in the text of a passwd(5) file.
pub fn user_name(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let found: u32 = fields.nth(1)?.parse().ok()?;
        (found == uid && !name.is_empty()).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests;
