//! Which lines are recorded, and that other users cannot read them.

use std::os::unix::fs::PermissionsExt;

use reedline::{History, HistoryItem, SearchDirection, SearchQuery};

use super::FilteredHistory;

#[test]
fn lines_are_kept_but_not_secrets() {
    let folder = std::env::temp_dir().join(format!("plimsoll-history-{}", std::process::id()));
    let file = folder.join("plimsoll/cli-history");
    let open =
        || FilteredHistory::open(Some(file.clone()), Box::new(|line| line.contains("password=")));
    let mut history = open();
    for line in ["show", "set password=mine", "set lease=60"] {
        history.save(HistoryItem::from_command_line(line)).unwrap();
    }
    history.sync().unwrap();
    drop(history);
    let text = std::fs::read_to_string(&file).unwrap();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    let again = open().search(SearchQuery::everything(SearchDirection::Forward, None)).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(text, "show\nset lease=60\n");
    assert_eq!(mode, 0o600);
    assert_eq!(again.len(), 2);
}
