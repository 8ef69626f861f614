//! The folder of a run, on a directory of this machine; over NFS it is in `tests/lab_runs.rs`.

use super::*;

fn place(name: &str) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("plimsoll-scratch-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn what_clients_made_goes_and_comes_new() {
    let dir = place("goes");
    let target = Target::Path(dir.clone());
    make(&target, "run").unwrap();
    assert!(make(&target, "run").is_err(), "it must be new");
    let client = dir.join("run/plimsoll-lab.3");
    std::fs::create_dir(&client).unwrap();
    for name in ["f0.4096", "c1f", "f12.1"] {
        std::fs::write(client.join(name), b"x").unwrap();
    }
    std::fs::write(dir.join("kept"), b"x").unwrap();
    clear(&target, "run", Duration::ZERO).unwrap();
    clear(&target, "run", Duration::ZERO).unwrap();
    assert!(!dir.join("run").exists() && dir.join("kept").exists());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_programs_made_goes_with_its_directories() {
    let dir = place("programs");
    let target = Target::Path(dir.clone());
    make(&target, "run").unwrap();
    for folder in ["plimsoll-lab.program", "plimsoll-lab.program.1"] {
        let below = dir.join("run").join(folder).join("set/00000001/00000002");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(below.join("00000003"), b"x").unwrap();
    }
    clear(&target, "run", Duration::ZERO).unwrap();
    assert!(!dir.join("run").exists());
    make(&target, "run").unwrap();
    std::fs::create_dir_all(dir.join("run/plimsoll-lab.programs/set")).unwrap();
    assert!(clear(&target, "run", Duration::ZERO).is_err(), "of another name");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_others_made_stays() {
    let dir = place("stays");
    let target = Target::Path(dir.clone());
    make(&target, "run").unwrap();
    let client = dir.join("run/plimsoll-lab.0");
    std::fs::create_dir(&client).unwrap();
    for path in ["run/notes", "run/plimsoll-lab.0/thesis.tex", "run/plimsoll-lab.0/f1.old"] {
        std::fs::write(dir.join(path), b"x").unwrap();
    }
    assert!(clear(&target, "run", Duration::ZERO).is_err());
    assert!(client.join("thesis.tex").exists() && client.join("f1.old").exists());
    assert!(dir.join("run/notes").exists());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_folder_below_a_target_is_a_target() {
    let below = |url: &str| Target::parse(url).unwrap().below("r1").to_string();
    assert_eq!(below("nfs3://h:1/export/a"), "nfs3://h:1/export/a/r1");
    assert_eq!(below("nfs3://h:1/export/a?mountport=2"), "nfs3://h:1/export/a/r1?mountport=2");
    assert_eq!(below("nfs4://h:1/export/a/"), "nfs4://h:1/export/a/r1");
    assert_eq!(below("smb://a@h:1/box"), "smb://a@h:1/box/r1");
    assert_eq!(below("smb://a@h:1/box/b?dialect=2.1"), "smb://a@h:1/box/b/r1?dialect=2.1");
    assert_eq!(below("null:"), "null:");
    let moved =
        |url: &str| Target::parse(url).unwrap().moved("127.0.0.1:9".parse().unwrap()).to_string();
    assert_eq!(moved("nfs3://h:1/export/a?mountport=2"), "nfs3://127.0.0.1:9/export/a");
    assert_eq!(moved("nfs4://h:1/export/a"), "nfs4://127.0.0.1:9/export/a");
}
