//! The configuration at start: what the state directory has, or the file that `--config` names.

use std::path::Path;
use std::sync::Arc;

use base::clock::SystemClock;
use base::failure::read_text;
use base::limits::CONFIGURATION_BYTES_MAX;
use control::state::StateDir;
use control::tree::store::Folder;
use control::tree::view::Everything;
use control::tree::{Tree, Who};
use service::node::set_log_levels;

use crate::out::Failure;
use crate::tree::ROOT;

/// Opens the tree. With a file, its configuration is in force from this start on: it is recorded as
/// an import unless nothing differs.
///
/// # Errors
/// Something cannot be read, or the file is wrong.
pub fn open(state: &StateDir, file: Option<&Path>) -> Result<Arc<Tree>, Failure> {
    let disk = Arc::new(Folder::new(state.path()));
    let tree = Tree::open(disk, &ROOT, Arc::new(SystemClock)).map_err(|e| {
        let hint = "STATE/configuration has the revisions; move the highest away to revert";
        Failure::of("read the configuration", &e).hint(hint)
    })?;
    if let Some(file) = file {
        import(&tree, file)?;
    }
    set_log_levels(&tree.document());
    Ok(Arc::new(tree))
}

fn import(tree: &Tree, file: &Path) -> Result<(), Failure> {
    let tried = format!("import the configuration in {}", file.display());
    let text = read_text(&tried, file, CONFIGURATION_BYTES_MAX as u64, "")?;
    let who = Who::new("serve --config", "command line");
    let done = tree.import(&text, false, &who, &Everything).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let hint = problems.first().map_or("", |first| first.hint.as_str());
        Failure::new(&tried, &all.join("\n  "), hint)
    })?;
    for note in &done.notes {
        base::tell!("configuration", "{note}");
    }
    Ok(())
}
