//! Directories below those that are shared, by whatever way they are named, and no others.

use base::node::Value;

use super::super::super::tests::World;
use super::*;
use crate::tests::ROOT;

fn document(shares: &[(&str, &str)]) -> Document {
    let mut document = Document::new(&ROOT);
    for (name, directory) in shares {
        let path = Path::of(&["shares", "p", name]);
        document.create(&path);
        document.set(&path, "directory", Value::text(directory));
    }
    document
}

#[test]
fn only_what_is_below_a_shared_directory_can_be_shared() {
    let world = World::new();
    let (shared, other) = (world.dir("shared"), world.dir("other"));
    let inside = shared.join("inside");
    for directory in [&inside, &other] {
        std::fs::create_dir_all(directory).expect("a directory");
    }
    std::os::unix::fs::symlink(&other, shared.join("out")).expect("a link");
    std::os::unix::fs::symlink(&inside, other.join("in")).expect("a link");
    let text = |path: &FilePath| path.display().to_string();
    let old = document(&[("a", &text(&shared))]);
    let cases = [
        (text(&inside), true),
        (text(&shared), true),
        (text(&shared.join("inside/new/one")), true),
        (text(&other.join("in")), true),
        (text(&other), false),
        (text(&shared.join("out")), false),
        (text(&shared.join("out/new")), false),
        (text(&shared.join("../other")), false),
        (text(&shared.join("new/../../other")), false),
        (format!("{}2", text(&shared)), false),
        ("/".to_owned(), false),
        ("/etc".to_owned(), false),
    ];
    for (directory, is_good) in cases {
        let new = document(&[("a", &text(&shared)), ("b", &directory)]);
        let problems = refused(&old, &new, None);
        assert_eq!(problems.is_empty(), is_good, "{directory}: {problems:?}");
        // The existing share cannot be moved to it either.
        let moved = document(&[("a", &directory)]);
        assert_eq!(refused(&old, &moved, None).is_empty(), is_good, "{directory}");
        // It may be if it is the directory of the command line.
        let given = Some(other.clone());
        let below = is_good || directory.contains("other") || directory.contains("out");
        assert_eq!(refused(&old, &new, given).is_empty(), below && !directory.contains("/new/.."));
    }
    let broken = document(&[("a", &text(&shared)), ("gone", "/none/such")]);
    assert!(refused(&broken, &broken, None).is_empty(), "what is shared already stays");
}
