//! The configuration as a whole: taken from a file or from an earlier revision, written as a file,
//! and what was before.

use base::node::Path;
use base::units::utc;

use super::{Current, Done, Proposal, Shown, Tree, chain, is_secret, one, shown};
use crate::tree::document::Document;
use crate::tree::revision::Revision;
use crate::tree::store::StoreError;
use crate::tree::viewer::{Everything, Viewer};
use crate::tree::{Actor, Problem, text};

impl Tree {
    /// Replaces the current configuration by a whole one.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn import(
        &self,
        text: &str,
        dry_run: bool,
        who: &Actor,
        viewer: &dyn Viewer,
    ) -> Result<Done, Vec<Problem>> {
        self.import_over(None, text, dry_run, who, viewer)
    }

    /// As [`Self::import`]; with `seen`, only over the revision that the caller has seen.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn import_over(
        &self,
        seen: Option<u64>,
        text: &str,
        dry_run: bool,
        who: &Actor,
        viewer: &dyn Viewer,
    ) -> Result<Done, Vec<Problem>> {
        let mut store = self.lock();
        self.still(seen).map_err(one)?;
        let (document, _) = text::read(self.root, text)?;
        // A number in the text of a caller could be that of any secret.
        let whole = self.whole(document, &|_| false, who, viewer);
        let proposal = Proposal { comment: "import", action: "import", dry_run, ..whole };
        self.transact(&mut store, proposal).map_err(|problems| text::located(text, problems))
    }

    /// Takes an earlier revision's configuration; that makes a new revision.
    ///
    /// # Errors
    /// It is not kept; else as [`Self::commit`].
    pub fn restore(
        &self,
        number: u64,
        who: &Actor,
        viewer: &dyn Viewer,
    ) -> Result<Done, Vec<Problem>> {
        self.restore_over(None, number, who, viewer)
    }

    /// As [`Self::restore`]; with `seen`, only over the revision that the caller has seen.
    ///
    /// # Errors
    /// As [`Self::restore`].
    pub fn restore_over(
        &self,
        seen: Option<u64>,
        number: u64,
        who: &Actor,
        viewer: &dyn Viewer,
    ) -> Result<Done, Vec<Problem>> {
        let mut store = self.lock();
        self.still(seen).map_err(one)?;
        let (document, _) = self.load(&store, number).map_err(one)?;
        let comment = format!("restore of revision {number}");
        let whole = self.whole(document, &|id| self.secrets.has(id), who, viewer);
        let proposal = Proposal { comment: &comment, action: "restore", ..whole };
        self.transact(&mut store, proposal)
    }

    /// Takes a branch as it was in the newest revision for which `is_it` is true, or the empty
    /// configuration if none does; that makes a new revision. `false`: it is in neither.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub fn restore_branch(
        &self,
        prefix: &Path,
        is_it: &dyn Fn(&Document) -> bool,
        comment: &str,
        who: &Actor,
    ) -> Result<bool, Vec<Problem>> {
        let mut store = self.lock();
        let empty = Document::new(self.root);
        let numbers = store.numbers().iter().rev();
        let kept = numbers.filter_map(|number| store.load(*number).ok().map(|(found, _)| found));
        let Some(found) = kept.chain([empty]).find(|document| is_it(document)) else {
            return Ok(false);
        };
        let document = self.document().with_branch(prefix, &found);
        let whole = self.whole(document, &|id| self.secrets.has(id), who, &Everything);
        let proposal = Proposal { comment, action: "restore", ..whole };
        self.transact(&mut store, proposal).map(|_| true)
    }

    /// A configuration that replaces the current one, with our secrets, not yet named. Numbers of
    /// secrets in it are valid if they are `known`.
    fn whole<'a>(
        &self,
        document: Document,
        known: &dyn Fn(i64) -> bool,
        who: &'a Actor,
        viewer: &'a dyn Viewer,
    ) -> Proposal<'a> {
        let (document, notes) = self.with_our_secrets(document, known);
        Proposal {
            document,
            renamed: Vec::new(),
            secrets: Vec::new(),
            who,
            viewer,
            comment: "",
            action: "",
            notes,
            dry_run: false,
            whole: true,
        }
    }

    /// The configuration as a file to take along: no secrets.
    pub fn export(&self, name: &str) -> String {
        let Current { document, revision } = self.current();
        text::write_export(&document, &heading(name, &revision))
    }

    /// A revision as such a file.
    ///
    /// # Errors
    /// It is not kept.
    pub fn revision(&self, number: u64, name: &str) -> Result<String, Problem> {
        let (document, revision) = self.load(&self.lock(), number)?;
        Ok(text::write_export(&document, &heading(name, &revision)))
    }

    /// Heads of the revisions that are kept, the newest first, at most `limit`.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn history(&self, limit: usize) -> Result<Vec<Revision>, Problem> {
        let store = self.lock();
        let numbers = store.numbers().iter().rev().take(limit);
        let failed = |e: StoreError| Problem::server(&Path::root(), &chain(&e));
        numbers.map(|number| store.head(*number).map_err(failed)).collect()
    }

    /// Differences between two revisions; 0 is the empty configuration.
    ///
    /// # Errors
    /// One is not kept.
    pub fn compare(&self, from: u64, to: u64) -> Result<Vec<Shown>, Problem> {
        let store = self.lock();
        let load = |number| match number {
            0 => Ok(Document::new(self.root)),
            _ => self.load(&store, number).map(|(document, _)| document),
        };
        let (old, new) = (load(from)?, load(to)?);
        Ok(old.differences(&new).iter().map(|one| shown(&new, one)).collect())
    }

    /// Refuses to replace everything if another revision was current when the change was chosen.
    fn still(&self, seen: Option<u64>) -> Result<(), Problem> {
        let revision = self.current().revision;
        let Some(seen) = seen.filter(|seen| *seen != revision.number) else { return Ok(()) };
        let sentence = format!("revision {seen} is outdated; {} is current", made(&revision));
        let hint = "review the changes again";
        Err(Problem::conflict(&Path::root(), &sentence, hint))
    }

    /// Secrets that an export omitted, and those of a number that is not `known`, are taken from
    /// the same property of the current configuration; missing ones are reported.
    fn with_our_secrets(
        &self,
        mut document: Document,
        known: &dyn Fn(i64) -> bool,
    ) -> (Document, Vec<String>) {
        let ours = self.document();
        let mut notes = Vec::new();
        let found: Vec<_> = document
            .nodes()
            .flat_map(|(path, settings)| settings.iter().map(move |set| (path, set)))
            .filter(|(path, (name, _))| is_secret(&document, path, name))
            .map(|(path, (name, value))| (path.clone(), name.clone(), value.clone()))
            .collect();
        for (path, name, value) in found {
            let known = value.as_integer().filter(|id| known(*id));
            let ours = ours.set_value(&path, &name).filter(|_| known.is_none());
            match (known, ours) {
                (Some(_), _) => {}
                (None, Some(ours)) => document.set(&path, &name, ours.clone()),
                (None, None) => {
                    document.unset(&path, &name);
                    notes.push(format!("{path} {name} is secret and must be set again"));
                }
            }
        }
        (document, notes)
    }
}

fn heading(name: &str, revision: &Revision) -> String {
    match revision.number {
        0 => format!("{name}: no changes yet"),
        _ => format!("{name}: {}", made(revision)),
    }
}

/// A revision in words: `revision 2, made by anna from 10.0.0.7 at …`.
pub(super) fn made(revision: &Revision) -> String {
    let Revision { number, who, from, when, .. } = revision;
    format!("revision {number}, made by {who} from {from} at {} UTC", utc(when.cast_signed()))
}
