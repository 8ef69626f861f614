//! What can be done, as transcripts: each file of `tests/golden/cli` is run on a new server.

use std::fs;

use super::{Scene, compare, golden, same};

#[test]
fn transcripts_are_as_agreed() {
    let files = golden().read_dir().expect("golden transcripts").flatten();
    let mut files: Vec<_> = files.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    assert!(!files.is_empty(), "transcripts");
    let mut differs = Vec::new();
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a transcript");
        let script: String = text
            .lines()
            .filter_map(|line| line.strip_prefix("> "))
            .fold(String::new(), |script, line| script + line + "\n");
        let scene = Scene::new("cli-transcript");
        let script = script.replace("/scratch", &scene.scratch.path().to_string_lossy());
        let (said, wrong, code) = scene.run(&["--echo"], &script);
        let end = if code == 0 { String::new() } else { format!("(exit code {code})\n") };
        compare(&name, &(scene.settled(&said) + &scene.settled(&wrong) + &end), &mut differs);
    }
    same(&differs);
}
