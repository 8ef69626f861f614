//! What is to be done about an entry.

use std::sync::Arc;

use base::limits::{DSYNC_BLOCKS_MAX, DSYNC_DELTA_MIN, DSYNC_SUMS_MAX};
use wire::dsync::{About, Basis, Bytes, Kind, Message, Meta, Need, SendMode, Sum, Sums};
use wire::xdr::Seq;

use super::compare::{has_set_id, is_same_node};
use super::entry::EntryDecision;
use super::failed::Failed;
use super::laid::Laid;
use super::link_table::LinkOutcome;
use super::node::LocalEntry;
use super::plan::{Open, Plan};
use super::tracker::Job;
use super::{Shared, why};
use crate::delta;
use crate::error::Why;
use crate::index::{self, Others};
use crate::tree::aside::aside_name;
use crate::tree::{ScannedEntry, Tree};

impl<T: Tree> Plan<T> {
    /// Decides about an entry, and does or starts what is to be done.
    pub(super) fn decide(
        &mut self,
        open: &mut Open<T>,
        name: Vec<u8>,
        path: Vec<u8>,
        meta: Meta,
        own: Option<ScannedEntry>,
    ) -> Result<(), Failed> {
        let shared = Arc::clone(&self.shared);
        if meta.kind == Kind::UNREADABLE {
            let text = String::from_utf8_lossy(&meta.target.0).into_owned();
            shared.fail(&path, &format!("at the source: {text}"));
            return Ok(());
        }
        let own_is_directory = own.as_ref().is_some_and(|own| own.meta.kind == Kind::DIRECTORY);
        if matches!(meta.kind, Kind::BLOCK | Kind::CHARACTER) && !shared.options.devices {
            shared.note(About::NOTICE, &path, "device node skipped");
            shared.tracker.count(|counts| counts.devices_skipped += 1);
            return Ok(());
        }
        if !shared.options.set_id && has_set_id(&meta) {
            let text = "copied without set-user-id, set-group-id and capabilities";
            shared.note(About::NOTICE, &path, text);
            shared.tracker.count(|counts| counts.set_id_dropped += 1);
        }
        if own.is_some() && !shared.rules.carries(&path, own_is_directory) {
            shared.fail(&path, "the destination has an excluded entry of another type");
            if meta.kind == Kind::DIRECTORY {
                self.child(open, name, meta, LocalEntry::Not, false);
            }
            return Ok(());
        }
        if meta.kind == Kind::DIRECTORY {
            self.decide_directory(open, name, &path, meta, own);
            return Ok(());
        }
        let mut own = own;
        if own_is_directory {
            if !shared.options.delete {
                shared.fail(
                    &path,
                    "the destination has a directory of this name; use --delete to remove it",
                );
                return Ok(());
            }
            let gone = open.dir.as_ref().is_some_and(|dir| shared.delete(dir, &open.node, &name));
            if !gone {
                shared.fail(&path, "the destination has a directory of this name");
                return Ok(());
            }
            own = None;
        }
        let link = meta.link.clone();
        let wanted = shared.wanted(meta);
        let (fate, elsewhere) = (LinkOutcome::default(), false);
        let mut case = EntryDecision { name, path, wanted, own, fate, shared_elsewhere: elsewhere };
        if self.is_other_name(open, &mut case, link) {
            return Ok(());
        }
        match case.wanted.kind {
            Kind::FILE => self.decide_file(open, case).map_err(Failed::from),
            _ => {
                self.decide_node(open, &case);
                Ok(())
            }
        }
    }

    fn decide_directory(
        &mut self,
        open: &mut Open<T>,
        name: Vec<u8>,
        path: &[u8],
        meta: Meta,
        own: Option<ScannedEntry>,
    ) {
        let shared = Arc::clone(&self.shared);
        let wanted = shared.wanted(meta.clone());
        if let Some(own) = own.as_ref().filter(|own| own.meta.kind == Kind::DIRECTORY) {
            let changed = !shared.is_same(open.dir.as_ref(), own, &wanted);
            if changed {
                shared.note(About::METADATA, path, "");
            }
            let changed = self.enable(&open.node.path, &name) || changed;
            return self.child(open, name, meta, LocalEntry::There, changed);
        }
        let about = if own.is_some() { About::UPDATE } else { About::CREATE };
        shared.note(about, path, "");
        let Some(dir) = open.dir.as_ref().filter(|_| !shared.options.dry_run) else {
            return self.child(open, name, meta, LocalEntry::Would, true);
        };
        open.node.touch();
        let made = match &own {
            Some(own) => shared.tree.remove(dir, &name, own.meta.kind),
            None => Ok(()),
        };
        let here = match made.and_then(|()| shared.tree.make_dir(dir, &name)) {
            Ok(()) => LocalEntry::There,
            Err(e) => {
                shared.fail(path, &why(&e));
                LocalEntry::Not
            }
        };
        self.child(open, name, meta, here, true);
    }

    fn decide_node(&mut self, open: &Open<T>, case: &EntryDecision) {
        let same =
            |own: &&ScannedEntry| is_same_node(&own.meta, &case.wanted) && !case.shared_elsewhere;
        if let Some(own) = case.own.as_ref().filter(same)
            && self.shared.keeps(open, case, own)
        {
            return;
        }
        self.shared.note_change(case);
        case.fate.set_new();
        let Some(dir) = open.dir.as_ref().filter(|_| !self.shared.options.dry_run) else { return };
        open.node.touch();
        if let Err(e) = self.shared.make_node(dir, case) {
            self.shared.fail(&case.path, &why(&e));
            case.fate.set_failed();
        }
    }

    fn decide_file(&mut self, open: &Open<T>, case: EntryDecision) -> Result<(), Why> {
        let own = case.own.as_ref().filter(|own| own.meta.kind == Kind::FILE);
        let Some(own) = own.filter(|_| !case.shared_elsewhere) else {
            return self.update(open, case);
        };
        if own.meta.size != case.wanted.size {
            return self.update(open, case);
        }
        if self.shared.options.checksum {
            if own.names > 1 && !self.shared.is_same(open.dir.as_ref(), own, &case.wanted) {
                // Its metadata may not be set: it is that of its other names, too.
                return self.update(open, case);
            }
            return match self.shared.sum(open, &case, own) {
                Some(hash) => self.ask(open, case, Some(hash)),
                // What cannot be read is not known to be the same.
                None => self.update(open, case),
            };
        }
        let is_same_time = self.shared.is_same_time(open.dir.as_ref(), own, &case.wanted.mtime);
        if is_same_time && self.shared.keeps(open, &case, own) {
            return Ok(());
        }
        self.update(open, case)
    }

    /// Records that a file is created or replaced, and requests it.
    fn update(&mut self, open: &Open<T>, case: EntryDecision) -> Result<(), Why> {
        self.shared.note_change(&case);
        case.fate.set_new();
        if self.shared.options.dry_run {
            let size = case.wanted.size;
            self.shared.tracker.count(|counts| {
                counts.files += 1;
                counts.bytes += size;
            });
            return Ok(());
        }
        open.node.touch();
        self.ask(open, case, None)
    }

    /// Requests a file; with the hash of the local one, only if its own differs.
    fn ask(
        &mut self,
        open: &Open<T>,
        case: EntryDecision,
        hash: Option<[u8; 32]>,
    ) -> Result<(), Why> {
        let shared = &self.shared;
        let wish = match hash {
            None => SendMode::SEND,
            Some(_) if shared.options.dry_run => SendMode::COMPARE,
            Some(_) => SendMode::SEND_IF_OTHER,
        };
        let own = shared.in_place(open, &case);
        let in_place = own.is_some();
        // What has the same size and time is mostly the same: its blocks are not read beforehand.
        let same =
            |own: &ScannedEntry| shared.is_same_time(open.dir.as_ref(), own, &case.wanted.mtime);
        let alike = case.own.as_ref().is_some_and(same);
        let none = in_place || (hash.is_some() && alike);
        let (kept, sums) = own.or_else(|| shared.kept(open, &case)).unzip();
        let sums: Vec<Sum> = sums.unwrap_or_default();
        let old = if none { None } else { shared.basis(open, &case) };
        // A file with more sums than may be open would be waited for without end. What a run has
        // left has what is at its place in the old one, too.
        let fits = |basis: &Basis| basis.count as usize + sums.len() <= DSYNC_BLOCKS_MAX;
        let old = old.filter(|(basis, _)| fits(basis));
        let count = old.as_ref().map_or(0, |(basis, _)| basis.count as usize);
        let lays = old.as_ref().filter(|_| wish == SendMode::SEND && kept.is_none());
        let laid = lays.and_then(|(basis, old)| shared.lay(open, &case, (basis, old)));
        open.node.hold();
        let size = case.wanted.size;
        shared.tracker.count(|counts| {
            counts.files += 1;
            counts.bytes += size;
        });
        let path = Bytes(case.path.clone());
        let basis = old.as_ref().map(|(basis, _)| basis.clone());
        let id = shared.tracker.enter(Job {
            path: case.path,
            node: Arc::clone(&open.node),
            own: case.own,
            sums: count + sums.len(),
            block: basis.as_ref().map_or(0, |basis| basis.block as usize),
            kept: kept.as_ref().map_or(0, |kept| u64::from(kept.block) * u64::from(kept.count)),
            in_place,
            noted: hash.is_none(),
            fate: case.fate,
        })?;
        if let Some(laid) = &laid {
            shared.lays.insert(id, laid);
            if !shared.tracker.knows(id) {
                // A source that did not wait for the question has ended it already.
                shared.lays.take(id).iter().for_each(|laid| shared.sweep_laid(laid));
            }
        }
        shared.out.send(&Message::Need(Need { id, path, wish, hash, basis, kept }))?;
        if let Some(old) = &old {
            shared.send_sums(id, old, laid.as_deref())?;
        }
        shared.send_all_sums(id, &sums)
    }
}

impl<T: Tree> Shared<T> {
    fn note_change(&self, case: &EntryDecision) {
        let about = if case.own.is_some() { About::UPDATE } else { About::CREATE };
        self.note(about, &case.path, "");
        if let Some(own) = &case.own {
            self.note_others(&case.path, own, Some(&case.wanted));
        }
    }

    /// Notes if an entry that is replaced or deleted was changed here since the last run.
    pub(super) fn note_others(&self, path: &[u8], own: &ScannedEntry, wanted: Option<&Meta>) {
        let others = self.tree.index().and_then(|index| index.others(path, own, wanted));
        let text = match others {
            Some(Others::Both) => "it was changed on both sides since the last run",
            Some(Others::Destination) => "it was changed at the destination since the last run",
            None => return,
        };
        self.note(About::NOTICE, path, text);
    }

    /// The hash of what is here, if it can be read.
    fn sum(&self, open: &Open<T>, case: &EntryDecision, own: &ScannedEntry) -> Option<[u8; 32]> {
        let (dir, path) = (open.dir.as_ref()?, case.path.as_slice());
        let slot = self.tree.index().and_then(|index| index.enter(path));
        index::content(&self.tree, (path, slot), own, || self.tree.open(dir, &case.name)).ok()
    }

    /// Whether what is here stays; its metadata is set if that is all that differs, and the file
    /// has no other name.
    fn keeps(&self, open: &Open<T>, case: &EntryDecision, own: &ScannedEntry) -> bool {
        if self.is_same(open.dir.as_ref(), own, &case.wanted) {
            return true;
        }
        if own.names > 1 {
            return false;
        }
        self.note(About::METADATA, &case.path, "");
        let Some(dir) = open.dir.as_ref().filter(|_| !self.options.dry_run) else { return true };
        if let Err(e) = self.tree.set(dir, &case.name, &case.wanted, self.keep) {
            self.fail(&case.path, &format!("its metadata: {}", why(&e)));
        }
        true
    }

    fn make_node(&self, dir: &T::Dir, case: &EntryDecision) -> std::io::Result<()> {
        let aside = aside_name();
        self.tree.make_node(dir, &aside, &case.wanted)?;
        let set = self.tree.set(dir, &aside, &case.wanted, self.keep);
        if let Err(e) = set {
            self.fail(&case.path, &format!("its metadata: {}", why(&e)));
        }
        let renamed = self.tree.rename(dir, &aside, &case.name);
        if renamed.is_err() {
            // The next run sweeps what cannot be removed.
            let _swept = self.tree.remove(dir, &aside, case.wanted.kind);
        }
        renamed
    }

    /// What is here, and how it is cut, if differences are worth it.
    fn basis(&self, open: &Open<T>, case: &EntryDecision) -> Option<(Basis, T::File)> {
        let own = case.own.as_ref().filter(|own| own.meta.kind == Kind::FILE)?;
        if !self.delta || self.options.dry_run || case.wanted.size < DSYNC_DELTA_MIN {
            return None;
        }
        let basis = delta::basis(own.meta.size)?;
        let file = self.tree.open(open.dir.as_ref()?, &case.name).ok()?;
        Some((basis, file))
    }

    /// Sends the announced sums of what is here. For blocks that cannot be read, the sums are zero.
    fn send_sums(
        &self,
        id: u64,
        (basis, old): &(Basis, T::File),
        laid: Option<&Laid<T>>,
    ) -> Result<(), Why> {
        let mut left = basis.count as usize;
        self.each_sum(old, basis, laid, |sums| {
            left -= sums.len();
            self.send_all_sums(id, sums)
        })?;
        let nothing = vec![Sum { weak: 0, strong: [0; 16] }; left];
        self.send_all_sums(id, &nothing)
    }

    fn send_all_sums(&self, id: u64, sums: &[Sum]) -> Result<(), Why> {
        sums.chunks(DSYNC_SUMS_MAX).try_for_each(|part| {
            self.out.send(&Message::Sums(Sums { id, sums: Seq(part.to_vec()) }))
        })
    }

    /// The sums of what is here, if it is to be written in place, and may be: it has no other name,
    /// and its owner and group stay the same: a process that has the old one open could read the
    /// new content.
    fn in_place(&self, open: &Open<T>, case: &EntryDecision) -> Option<(Basis, Vec<Sum>)> {
        let own = case.own.as_ref().filter(|own| own.meta.kind == Kind::FILE && own.names == 1)?;
        let wanted = &case.wanted;
        let owned = (own.meta.uid, own.meta.gid) == (wanted.uid, wanted.gid) || !self.keep.owners;
        let large = own.meta.size.min(wanted.size) >= DSYNC_DELTA_MIN;
        if !self.options.in_place || self.options.dry_run || !owned || !large {
            return None;
        }
        let (dir, id) = (open.dir.as_ref()?, own.meta.link.as_ref()?);
        // What may not be written is replaced.
        let file = self.tree.open_in_place(dir, &case.name, id).ok()?;
        self.sums_of(&file, delta::basis(own.meta.size)?)
    }

    /// The sums of what a run that broke off has left of a file, up to where it was written. What
    /// of that is right is for the source to see: a hole, or a block that was written in part, has
    /// another sum.
    fn kept(&self, open: &Open<T>, case: &EntryDecision) -> Option<(Basis, Vec<Sum>)> {
        let aside = self.aside_for(&case.name, case.wanted.size)?;
        if self.options.dry_run || !open.node.has(&aside) {
            return None;
        }
        let file = self.tree.take_up(open.dir.as_ref()?, &aside).ok()?;
        let mut basis = delta::basis(self.tree.look_open(&file).ok()?.meta.size)?;
        let mut end = 0;
        while let Some((_, next)) = self.tree.next_data(&file, end).ok()? {
            end = next;
        }
        let blocks = u32::try_from(end.div_ceil(u64::from(basis.block))).unwrap_or(u32::MAX);
        basis.count = basis.count.min(blocks);
        self.sums_of(&file, basis)
    }
}
