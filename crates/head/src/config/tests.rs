//! Configurations that are valid, and what is reported of others.

use super::*;

const VALID: &str = r#"
name = "left"
cluster = "lab"
etcd.members = ["http://10.0.0.1:2379", "http://10.0.0.2:2379"]

[[resource]]
name = "projects"
directory = "/cluster/projects"
state = "/cluster/.plimsoll/projects"
address = "192.0.2.10/24"
link = "eth0"
preferred = "left"
"#;

fn read(text: &str) -> Result<Config, String> {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("plimsoll-head-config-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("written");
    let config = Config::read(&path).map_err(|e| e.to_string());
    std::fs::remove_file(path).expect("removed");
    config
}

#[test]
fn what_is_valid_is_read() {
    let config = read(VALID).expect("valid");
    assert_eq!(config.socket(), Path::new("/run/plimsoll-head/left.sock"));
    let resource = config.resource("projects").expect("a resource");
    assert_eq!(resource.address.to_string(), "192.0.2.10/24");
    assert_eq!(resource.port_offset, 0);
    assert_eq!(config.cephfs_evict.join(" "), "ceph tell mds.0 client evict");
}

#[test]
fn what_is_not_valid_is_reported() {
    let second = VALID.to_owned() + &VALID[VALID.find("[[resource]]").expect("a resource")..];
    for (text, expected) in [
        (VALID.replace("\"left\"\ncluster", "\"a/b\"\ncluster"), "the head name \"a/b\""),
        (VALID.replace("http://10.0.0.1:2379", "10.0.0.1"), "10.0.0.1 is not http://HOST:PORT"),
        (VALID.replace("http://10", "https://10"), "etcd.ca is missing"),
        (VALID.replace("state =", "status ="), "unknown field `status`"),
        (VALID.replace("192.0.2.10/24", "192.0.2.10"), "is not ADDRESS/LENGTH"),
        (VALID.replace("\"/cluster/projects\"", "\"projects\""), "absolute paths"),
        (VALID.replace("cluster =", "cephfs_evict = []\ncluster ="), "cephfs_evict is a command"),
        (VALID.replace("link =", "probe = [\"a\"]\nlink ="), "invalid IP address"),
        (
            VALID.replace("link =", &format!("probe = {:?}\nlink =", ["10.0.0.1"; 5])),
            "probe lists 4 hosts at most",
        ),
        (second, "two resources have the name projects"),
    ] {
        let why = read(&text).expect_err("not valid");
        assert!(why.contains(expected), "{expected:?}: {why}");
    }
}

#[test]
fn directories_that_overlap_are_refused() {
    let start = VALID.find("[[resource]]").expect("a resource");
    let other = VALID[start..]
        .replace("\"projects\"", "\"inner\"")
        .replace("/cluster/projects", "/cluster/projects/inner")
        .replace(".plimsoll/projects", ".plimsoll/inner")
        .replace("192.0.2.10", "192.0.2.11");
    let why = read(&format!("{VALID}{other}")).expect_err("they overlap");
    assert!(why.contains("the directories of projects and inner overlap"), "{why}");
}
