//! Types and permissions as `ls -l` has them.

use super::*;

#[test]
fn modes_read_as_those_of_ls() {
    for (kind, mode, text) in [
        (FileType::Regular, 0o644, b"-rw-r--r--"),
        (FileType::Directory, 0o755, b"drwxr-xr-x"),
        (FileType::Symlink, 0o4751, b"lrwsr-x--x"),
        (FileType::Regular, 0o2070, b"----rws---"),
        (FileType::Directory, 0o1777, b"drwxrwxrwt"),
        // Special bits without execution are capitals.
        (FileType::Fifo, 0o7666, b"prwSrwSrwT"),
        (FileType::Block, 0, b"b---------"),
        (FileType::Character, 0o400, b"cr--------"),
        (FileType::Socket, 0o100_001, b"s--------x"),
    ] {
        let shown = mode_text(kind, mode);
        assert_eq!(&shown, text, "{}", String::from_utf8_lossy(&shown));
    }
}
