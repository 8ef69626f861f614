//! One directory under two names is fit; two directories are not one file system.

use super::*;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("head-mounts-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory");
    path
}

#[test]
fn one_directory_is_fit() {
    let path = folder("one");
    let report = compare(&path, &path).expect("compared");
    assert!(report.fit, "{report:?}");
    assert_eq!(report.findings.len(), checks::ALL.len());
    assert_eq!(std::fs::read_dir(&path).expect("a directory").count(), 0, "something is left");
    std::fs::remove_dir(&path).expect("removed");
}

#[test]
fn two_directories_are_not_one() {
    let (a, b) = (folder("a"), folder("b"));
    let refused = compare(&a, &b).expect_err("two directories");
    assert!(refused.to_string().contains("are not the same file system"), "{refused}");
    assert_eq!(std::fs::read_dir(&a).expect("a directory").count(), 0, "something is left");
    [a, b].iter().for_each(|path| std::fs::remove_dir(path).expect("removed"));
}
