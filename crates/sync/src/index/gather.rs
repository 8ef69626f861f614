//! Gathering what is kept of a tree for the next run.

use std::collections::VecDeque;
use std::io;

use base::limits::PATH_MAX;
use wire::dsync::Kind;

use super::Side;
use super::file::{Draft, Spool, at};
use super::record::{Record, State};
use crate::rules::Rules;
use crate::stop::lock;
use crate::tree::aside::is_aside;
use crate::tree::{Tree, join};

/// Gathers what is kept of a tree after a run that came to its end, in one more walk.
pub fn keep<T: Tree>(tree: &T, rules: &Rules) {
    let Some(side) = tree.index() else { return };
    let spool = lock(&side.index.spools[at(side.role)]).take();
    // Nothing is written by a dry run.
    let Some(spool) = spool else { return };
    let drafted = draft(tree, rules, side, &spool);
    *lock(&side.index.drafts[at(side.role)]) = side.index.fail(drafted);
}

fn draft<T: Tree>(tree: &T, rules: &Rules, side: &Side, spool: &Spool) -> io::Result<Draft> {
    let mut draft = Draft::new(&side.index.path)?;
    let mut new = spool.records();
    let mut old = side.index.kept.as_ref().map(|kept| kept.records(side.role));
    let mut above: Vec<(Vec<u8>, VecDeque<Vec<u8>>)> = Vec::new();
    let mut at = Some(Vec::new());
    loop {
        if let Some(path) = at.take() {
            let mut inner = VecDeque::new();
            // What cannot be looked at is not kept.
            if let Ok(dir) = tree.dir(&path)
                && let Ok((names, _held)) = tree.names(&dir)
            {
                for name in names.into_iter().filter(|name| !is_aside(name)) {
                    let path = join(&path, &name);
                    let Ok(seen) = tree.look(&dir, &name) else { continue };
                    let directory = seen.meta.kind == Kind::DIRECTORY;
                    let Some(state) = State::of(&seen) else { continue };
                    if path.len() >= PATH_MAX || !rules.carries(&path, directory) {
                        continue;
                    }
                    // Both are searched, so that both advance.
                    let sums = [new.find(&path), old.as_mut().and_then(|old| old.find(&path))];
                    let same = sums.into_iter().flatten().filter(|record| record.state == state);
                    let sum = same.filter_map(|record| record.sum).next();
                    draft.add(&Record { path, state, sum })?;
                    if directory {
                        inner.push_back(name);
                    }
                }
            }
            above.push((path, inner));
        }
        match above.last_mut() {
            None => return Ok(draft),
            Some((path, left)) => match left.pop_front() {
                Some(name) => at = Some(join(path, &name)),
                None => drop(above.pop()),
            },
        }
    }
}
