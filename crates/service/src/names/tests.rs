//! Display names of files.

use super::*;

#[test]
fn a_file_without_a_known_path_is_shown_by_its_number() {
    assert_eq!(file_name("tank", &FileName::Path(b"a/b".to_vec())), "/export/tank/a/b");
    assert_eq!(file_name("tank", &FileName::Path(Vec::new())), "/export/tank");
    assert_eq!(file_name("tank", &FileName::Inode(12)), "inode 12 in tank");
}
