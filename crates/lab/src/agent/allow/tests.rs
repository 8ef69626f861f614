//! What a controller over TCP may name: listed directories and devices, whatever links say.

use super::*;
use base::random::{Random, SystemRandom};
use std::fs;
use std::os::unix::fs::symlink;

struct Scene(PathBuf);

impl Scene {
    fn new() -> Self {
        let name = format!("plimsoll-allow-{:016x}", SystemRandom.next_u64());
        let top = std::env::temp_dir().canonicalize().unwrap().join(name);
        fs::create_dir_all(top.join("listed/sub")).unwrap();
        fs::create_dir(top.join("other")).unwrap();
        fs::write(top.join("disk"), [0; 4096]).unwrap();
        fs::write(top.join("other/secret"), "x").unwrap();
        fs::write(top.join("listed/password"), "y").unwrap();
        Self(top)
    }

    fn target(&self, scheme: &str, path: &str) -> Target {
        Target::parse(&format!("{scheme}:{}/{path}", self.0.display())).unwrap()
    }

    fn allowed(&self) -> Allowed {
        let (paths, blocks) = (vec![self.0.join("listed")], vec![self.0.join("disk")]);
        Allowed::open(&Owner { paths, blocks, ..Owner::default() }).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn without_a_list_no_file_of_the_agent_is_used() {
    let scene = Scene::new();
    let none = Allowed::default();
    for target in [
        scene.target("path", "listed"),
        scene.target("block", "disk"),
        Target::parse("smb://u@h/s?password-file=/etc/shadow").unwrap(),
        Target::parse("ftp://u@h/s?password-file=/etc/shadow").unwrap(),
        Target::parse("https://u@h/s?ca=/etc/shadow").unwrap(),
        Target::parse("https://u@h/s?password-env=HOME").unwrap(),
        Target::parse("iscsi://u@h/t/0?password-file=/etc/shadow").unwrap(),
        Target::parse("iscsi://u%s@h/t/0?target-user=t&target-password-file=/etc/shadow").unwrap(),
    ] {
        let refused = none.grant(target.clone());
        assert!(refused.is_err(), "{target}");
    }
    for target in ["null:", "nfs3://h/e", "nfs4://h/e", "smb://u@h/s", "ftp://u:p@h/s"] {
        assert!(none.grant(Target::parse(target).unwrap()).is_ok(), "{target}");
    }
}

#[test]
fn only_listed_directories_and_devices_are_used() {
    let scene = Scene::new();
    let allowed = scene.allowed();
    for (scheme, path) in [("path", "listed"), ("path", "listed/sub"), ("block", "disk")] {
        let granted = allowed.grant(scene.target(scheme, path)).unwrap();
        let (Target::Path(at) | Target::Block(at)) = &granted.target else { panic!("{granted:?}") };
        assert_eq!(at.canonicalize().unwrap(), scene.0.join(path));
        let shown = granted.named(format!("cannot open {}", at.display()));
        assert_eq!(shown, format!("cannot open {}", scene.0.join(path).display()));
    }
    for (scheme, path) in [
        ("path", ""),
        ("path", "other"),
        ("path", "listedx"),
        ("path", "listed/../other"),
        ("path", "listed/sub/../../other"),
        ("block", "listed/password"),
        ("block", "other/secret"),
        ("block", "./disk/../disk"),
    ] {
        assert!(allowed.grant(scene.target(scheme, path)).is_err(), "{scheme}:{path}");
    }
    let file = format!("smb://u@h/s?password-file={}/listed/password", scene.0.display());
    assert!(allowed.grant(Target::parse(&file).unwrap()).is_ok());
}

#[test]
fn symbolic_links_lead_nowhere() {
    let scene = Scene::new();
    let allowed = scene.allowed();
    symlink(scene.0.join("other"), scene.0.join("listed/out")).unwrap();
    symlink("sub", scene.0.join("listed/in")).unwrap();
    symlink(scene.0.join("other/secret"), scene.0.join("listed/file")).unwrap();
    for path in ["listed/out", "listed/in", "listed/out/x"] {
        let why = allowed.grant(scene.target("path", path)).unwrap_err();
        assert!(why.contains("symbolic links"), "{why}");
    }
    let file = format!("smb://u@h/s?password-file={}/listed/file", scene.0.display());
    assert!(allowed.grant(Target::parse(&file).unwrap()).is_err());
    // Names that lead elsewhere after the start lead to what they were.
    fs::rename(scene.0.join("listed"), scene.0.join("moved")).unwrap();
    symlink("other", scene.0.join("listed")).unwrap();
    fs::rename(scene.0.join("disk"), scene.0.join("disk.old")).unwrap();
    symlink("other/secret", scene.0.join("disk")).unwrap();
    let held = allowed.grant(scene.target("path", "listed/sub")).unwrap();
    let Target::Path(sub) = &held.target else { panic!("{held:?}") };
    assert_eq!(sub.canonicalize().unwrap(), scene.0.join("moved/sub"));
    let held = allowed.grant(scene.target("block", "disk")).unwrap();
    let Target::Block(disk) = &held.target else { panic!("{held:?}") };
    assert_eq!(disk.canonicalize().unwrap(), scene.0.join("disk.old"));
}

#[test]
fn listed_targets_are_the_only_ones() {
    let targets = vec!["10.0.0.0/8".to_owned(), "nas:2049".to_owned()];
    let allowed = Allowed::open(&Owner { targets, ..Owner::default() }).unwrap();
    let grant = |url: &str| allowed.grant(Target::parse(url).unwrap()).map(drop);
    for url in ["null:", "nfs3://nas/e", "nfs4://10.9.9.9/e", "https://u@10.1.1.1/s"] {
        assert_eq!(grant(url), Ok(()), "{url}");
    }
    for url in ["nfs3://nas:2050/e", "nfs3://nas/e?mountport=25", "smb://u@nas/s", "ftp://u:p@h/s"]
    {
        let why = grant(url).unwrap_err();
        assert!(why.contains("--allow-target"), "{why}");
    }
    // A password that is in the URL is not shown.
    assert!(!grant("ftp://u:secret@h/s").unwrap_err().contains("secret"));
    // Directories are listed as such.
    assert!(grant("path:/tmp").is_err());
    let wrong = Owner { targets: vec!["a/b".into()], ..Owner::default() };
    assert!(matches!(Allowed::open(&wrong), Err(AllowError::Target(_))));
}
