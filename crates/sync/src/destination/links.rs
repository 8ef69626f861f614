//! Files of several names: the first name that is listed is copied, the others are made links to it
//! when everything else is done.

use std::io;
use std::sync::Arc;

use wire::dsync::{About, FileId, Kind};

use super::entry::EntryDecision;
use super::link_table::{FAILED, First, KEPT, Other};
use super::plan::{Open, Plan};
use super::{Shared, why};
use crate::tree::aside::aside_name;
use crate::tree::{Tree, split};

impl<T: Tree> Plan<T> {
    /// Whether an entry is another name of a file that was listed before; then it is retained for
    /// the end. Otherwise notes in the case whether what is here is another file's as well.
    pub(super) fn is_other_name(
        &mut self,
        open: &Open<T>,
        case: &mut EntryDecision,
        link: Option<FileId>,
    ) -> bool {
        let links = &mut self.links;
        let own = case.own.as_ref().and_then(|own| own.meta.link.clone());
        let several = case.own.as_ref().is_some_and(|own| own.names > 1);
        let room = (link.is_some() || several) && links.has_room(case.path.len());
        if let Some(file) = &link {
            if links.firsts.contains_key(file) && room {
                open.node.hold();
                let (path, node) = (case.path.clone(), Arc::clone(&open.node));
                links.others.push(Other { path, node, file: file.clone(), own });
                return true;
            }
            if room {
                let (path, fate) = (case.path.clone(), case.fate.clone());
                links.firsts.entry(file.clone()).or_insert(First { path, fate, own: own.clone() });
            } else if !std::mem::replace(&mut links.full, true) {
                let text = "too many hard links: further ones are copied as separate files";
                self.shared.note(About::NOTICE, &case.path, text);
            }
        }
        if let Some(own) = own.filter(|_| several) {
            case.shared_elsewhere = !room || links.taken.contains(&own);
            if room {
                links.taken.insert(own);
            }
        }
        false
    }

    /// Makes all other names.
    pub(super) fn make_links(&mut self) {
        for other in std::mem::take(&mut self.links.others) {
            if let Some(first) = self.links.firsts.get(&other.file) {
                self.shared.make_link(first, &other);
            }
            self.shared.release(&other.node);
        }
    }
}

impl<T: Tree> Shared<T> {
    fn make_link(&self, first: &First, other: &Other) {
        match first.fate.get() {
            FAILED => return self.fail(&other.path, "the first name of the file is not available"),
            KEPT if first.own.is_some() && first.own == other.own => return,
            _ => {}
        }
        self.note(About::LINK, &other.path, &String::from_utf8_lossy(&first.path));
        if self.options.dry_run {
            return;
        }
        other.node.touch();
        if let Err(e) = self.link(&first.path, &other.path) {
            self.fail(&other.path, &why(&e));
        }
    }

    fn link(&self, first: &[u8], other: &[u8]) -> io::Result<()> {
        let ((from_dir, from), (to_dir, to)) = (split(first), split(other));
        let (from_dir, to_dir) = (self.tree.dir(from_dir)?, self.tree.dir(to_dir)?);
        let aside = aside_name();
        self.tree.link((&from_dir, from), (&to_dir, &aside))?;
        let renamed = self.tree.rename(&to_dir, &aside, to);
        if renamed.is_err() {
            // The next run sweeps what cannot be removed.
            let _swept = self.tree.remove(&to_dir, &aside, Kind::FILE);
        }
        renamed
    }
}
