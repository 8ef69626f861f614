//! SPDX expressions are read as written, and a bad crate of each kind is caught.

use serde_json::json;

use super::*;

fn allow(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

#[test]
fn expressions_are_satisfied_or_not() {
    let list = allow(&["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]);
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "MIT/Apache-2.0",
        "(MIT OR GPL-3.0) AND Apache-2.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        "GPL-2.0 OR MIT AND Apache-2.0",
    ] {
        assert!(allowed(good, &list), "{good}");
    }
    for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT AND", "(MIT", "MIT Apache-2.0", "MIT WITH x"]
    {
        assert!(!allowed(bad, &list), "{bad}");
    }
}

#[test]
fn bad_crates_are_caught() {
    let config: Config = toml::from_str(
        r#"
        graph.targets = []
        licenses.allow = ["MIT"]
        bans.deny = [{ crate = "ring", reason = "no" }]
        sources.allow-registry = ["https://good"]
        sources.allow-git = []
        "#,
    )
    .unwrap();
    let package = |name: &str, license: &str, source: &str| {
        let version = "1.0.0";
        json!({ "name": name, "version": version, "license": license, "source": source })
    };
    let metadata = json!({ "packages": [
        package("fine", "MIT", "registry+https://good/index"),
        package("ring", "MIT", "registry+https://good/index"),
        package("copyleft", "GPL-3.0", "registry+https://good/index"),
        package("forked", "MIT", "git+https://good/fork"),
        package("elsewhere", "MIT", "registry+https://other/index"),
        package("unlinked", "GPL-3.0", "registry+https://other/index"),
    ] });
    let linked = ["fine", "ring", "copyleft", "forked", "elsewhere"].map(|n| format!("{n} 1.0.0"));
    let found = check(&config, &metadata, &BTreeSet::from(linked));
    assert_eq!(found.len(), 4, "{found:?}");
    for (finding, name) in found.iter().zip(["ring", "copyleft", "forked", "elsewhere"]) {
        assert!(finding.starts_with(name), "{finding}");
    }
}
