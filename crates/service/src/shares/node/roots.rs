//! The directories that may be shared by a user with the permission to change shares, but not
//! everything: those below the shared ones. Otherwise that permission would be one to read and
//! write all files.

use std::path::{Component, Path as FilePath, PathBuf};

use base::node::Path;
use control::tree::{Document, Problem, Transition};

use super::paths;

/// Shares of the new configuration that are refused; `given` is the directory of the command line.
pub(super) fn elsewhere(transition: &Transition<'_>, given: Option<PathBuf>) -> Vec<Problem> {
    let Transition { old, new, rights, .. } = transition;
    if rights.are_all() {
        return Vec::new();
    }
    refused(old, new, given)
}

fn refused(old: &Document, new: &Document, given: Option<PathBuf>) -> Vec<Problem> {
    let directory = |document: &Document, path: &Path| {
        super::directory(document, path).ok().map(|one| one.display().to_string())
    };
    let before: Vec<String> = paths(old).iter().filter_map(|path| directory(old, path)).collect();
    let shared = before.iter().map(PathBuf::from).chain(given);
    let roots: Vec<PathBuf> = shared.filter_map(|root| real(&root)).collect();
    let is_below = |wanted: &str| {
        real(FilePath::new(wanted))
            .is_some_and(|wanted| roots.iter().any(|root| wanted.starts_with(root)))
    };
    let problem = |path: &Path| {
        let wanted = directory(new, path)?;
        (!before.contains(&wanted) && !is_below(&wanted)).then(|| {
            let sentence = "it is not inside a directory that is already shared; sharing other \
                directories requires the permission *";
            Problem::denied(path, sentence).property("directory")
        })
    };
    paths(new).iter().filter_map(problem).collect()
}

/// Where a directory really is, behind symbolic links; of one that is to be made, where it will be.
fn real(directory: &FilePath) -> Option<PathBuf> {
    let there = directory.ancestors().find_map(|one| Some((one, one.canonicalize().ok()?)));
    let (above, real) = there?;
    let rest = directory.strip_prefix(above).ok()?;
    // What is not there yet must be no way out.
    let is_plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_plain.then(|| real.join(rest))
}

#[cfg(test)]
mod tests;
