//! Lock files that are in step, and that are not.

use super::*;

const LOCK: &str = r#"
[[package]]
name = "base"
version = "0.1.0"
dependencies = ["libc 0.2.1", "thiserror"]

[[package]]
name = "fuzz"
version = "0.0.0"
dependencies = ["base"]

[[package]]
name = "libc"
version = "0.2.1"
source = "registry"
"#;

fn findings(manifest: &str) -> usize {
    compare(LOCK, |name| (name == "base").then(|| manifest.to_owned())).len()
}

#[test]
fn a_new_or_a_lost_dependency_is_found() {
    assert_eq!(findings("[dependencies]\nlibc.workspace = true\nthiserror.workspace = true"), 0);
    assert_eq!(findings("[dependencies]\nlibc.workspace = true"), 1);
    let more = "[dependencies]\nbase64.workspace = true\nlibc = \"1\"\nthiserror.workspace = true";
    assert_eq!(findings(more), 1);
    assert_eq!(compare("no TOML", |_| None).len(), 1);
}
