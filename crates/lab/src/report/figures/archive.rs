//! The files of an archive with their checksums, and what repeats it.

use super::Section;
use crate::archive::sums::Sums;
use std::path::Path;

/// The archive in a directory; `None` if there is none. Changed files are named.
pub fn archive(dir: &Path) -> Option<Section> {
    let sums = Sums::read(dir).ok()??;
    let changed = sums.changed(dir);
    let state = |file: &str| {
        let with_name = changed.iter().find_map(|what| what.strip_prefix(file)?.strip_prefix(' '));
        with_name.unwrap_or("unchanged").to_owned()
    };
    let lines = sums.files().map(|(file, hash)| [file.to_owned(), hash.to_owned(), state(file)]);
    let repeat = match changed.is_empty() {
        true => format!("`plimsoll lab repeat {}` repeats it with the same seeds", dir.display()),
        false => format!("not repeated as it is: {}", changed.join(", ")),
    };
    let section = Section::new("archive", "Archive").with_sentences([repeat]);
    Some(section.table(["file", "SHA-256", "state"], lines.collect()))
}
