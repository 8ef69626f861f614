//! Lines typed before, over several runs; without those that have secrets in them.

use std::path::PathBuf;

use base::limits::CLI_HISTORY_LINES;
use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

use super::outside::make_private;

/// Whether a line must not be recorded.
pub type Secret = Box<dyn Fn(&str) -> bool + Send>;

/// A history that forgets secrets.
pub struct FilteredHistory {
    lines: FileBackedHistory,
    secret: Secret,
}

impl FilteredHistory {
    /// The user's history, in `file`; in memory only if that cannot be.
    pub fn open(file: Option<PathBuf>, secret: Secret) -> Self {
        let kept = file.and_then(|file| {
            make_private(&file).ok()?;
            FileBackedHistory::with_file(CLI_HISTORY_LINES, file).ok()
        });
        Self { lines: kept.unwrap_or_default(), secret }
    }
}

/// `$XDG_STATE_HOME/plimsoll/cli-history`, by default below `~/.local/state`.
pub fn file() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("plimsoll/cli-history"))
}

impl History for FilteredHistory {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        if (self.secret)(&item.command_line) {
            return Ok(HistoryItem::from_command_line(""));
        }
        self.lines.save(item)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.lines.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.lines.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.lines.search(query)
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> Result<()> {
        self.lines.update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.lines.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.lines.delete(id)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        self.lines.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.lines.session()
    }
}

#[cfg(test)]
mod tests;
