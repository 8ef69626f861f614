//! Trees of `tests/machines`, unpacked into a folder; `construct.py` has their form.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Unpacks a tree; its files and links, without folders.
pub fn unpack(tree: &Path, folder: &Path) -> Vec<PathBuf> {
    let tree = fs::read_to_string(tree).expect("a tree");
    let mut entries = Vec::new();
    for line in tree.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.splitn(3, ' ');
        let (Some(kind), Some(path)) = (fields.next(), fields.next()) else { panic!("{line}") };
        let rest = fields.next().unwrap_or_default();
        let path = folder.join(path.replace("%20", " "));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        match kind {
            "f" => fs::write(&path, unescape(rest) + "\n").expect("a file"),
            "b" => fs::write(&path, bytes(rest)).expect("a file"),
            "l" => symlink(rest.replace("%20", " "), &path).expect("a link"),
            _ => panic!("{line}"),
        }
        entries.push(path);
    }
    entries
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\\\", "\\")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("a byte")).collect()
}
