//! The text of the command line's help, compared with `tests/golden/help`. `UPDATE_GOLDEN=1`
//! rewrites the files; review the difference before you commit it.

use std::path::Path;
use std::process::Command;

const COMMANDS: [&[&str]; 40] = [
    &[],
    &["serve"],
    &["cli"],
    &["analytics"],
    &["analytics", "list"],
    &["analytics", "show"],
    &["nfs"],
    &["nfs", "clients"],
    &["nfs", "opens"],
    &["nfs", "locks"],
    &["nfs", "expire"],
    &["inspect"],
    &["doctor"],
    &["demo"],
    &["bridge"],
    &["bridge", "run"],
    &["bridge", "set"],
    &["bridge", "show"],
    &["bridge", "stop"],
    &["bridge", "key"],
    &["head"],
    &["head", "status"],
    &["head", "takeover"],
    &["head", "failback"],
    &["head", "drain"],
    &["dsync"],
    &["lab"],
    &["lab", "run"],
    &["lab", "limits"],
    &["lab", "seqread"],
    &["lab", "filebench-suite"],
    &["lab", "iozone"],
    &["lab", "repeat"],
    &["lab", "sweep"],
    &["lab", "net"],
    &["lab", "agent"],
    &["lab", "list"],
    &["lab", "report"],
    &["lab", "ab"],
    &["lab", "compare"],
];

#[test]
fn help_reads_as_agreed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/help");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for command in COMMANDS {
        let out = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(command)
            .arg("--help")
            .env("COLUMNS", "100")
            .output()
            .expect("the program starts");
        assert!(out.status.success(), "{command:?}");
        let text = String::from_utf8(out.stdout).expect("help is UTF-8");
        let name = if command.is_empty() { "plimsoll".into() } else { command.join("-") };
        let path = golden.join(format!("{name}.txt"));
        if update {
            std::fs::create_dir_all(&golden).expect("the folder can be made");
            std::fs::write(&path, &text).expect("the file can be written");
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            wrong.push(format!("{}:\n{text}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "differs; UPDATE_GOLDEN=1 accepts it:\n{}", wrong.join("\n"));
}

#[test]
fn no_number_has_a_plus_sign() {
    let commands: &[&[&str]] = &[
        &["demo", "--clients", "+1"],
        &["demo", "--port-offset=+1"],
        &["serve", "--nfs-lease=+90", "/"],
        &["serve", "--port-offset", "+1", "/"],
        &["sftp-server", "-u", "+22"],
        &["analytics", "show", "nfs3.ops", "--top", "+3"],
        &["lab", "run", "iops-4k", "--target", "null:", "--clients", "+1"],
        &["lab", "sweep", "--rtt", "1ms,+5ms"],
        &["lab", "sweep", "--instances", "1,+5"],
        &["dsync", "--retry", "+3", "a", "b"],
        &["dsync", "--streams", "+3", "a", "b"],
        &["dsync", "--data-port", "+7000", "a", "b"],
        &["dsync", "--bandwidth", "+5M", "a", "b"],
    ];
    for command in commands {
        let mut run = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        let out = run.args(*command).output().expect("the program starts");
        let why = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{command:?}: {why}");
        let value = command.iter().find(|word| word.contains('+')).expect("one");
        let number = value.rsplit(['=', ',']).next().expect("a part");
        assert!(why.contains(&format!("'{number}'")) || why.contains(value), "{command:?}: {why}");
    }
}
