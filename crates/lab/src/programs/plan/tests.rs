//! What targets lack is refused by name, with the alternative.

use super::*;
use lab_program::wml::read;

fn program(files: &str) -> Program {
    let text = format!(
        "define file name=f,size=1m,prealloc{files}\ndefine process name=p {{ thread name=t {{\n\
         flowop openfile name=open1,filename=f,fd=1\nflowop read name=read1,fd=1,iosize=4k,directio\n\
         flowop closefile name=close1,fd=1\n}} }}\n"
    );
    read("p.f", &text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn target(url: &str) -> Target {
    Target::parse(url).expect("a target")
}

#[test]
fn what_a_target_lacks_is_refused_with_the_alternative() {
    let program = program("");
    for url in
        ["null:", "path:/tmp", "nfs3://h/x", "nfs3+rdma://h/x", "nfs4://h/x", "smb://u:p@h/x"]
    {
        assert_eq!(refusal(&target(url), &program), None, "{url}");
    }
    let why = refusal(&target("https://u:p@h/x"), &program).expect("refused");
    assert!(why.contains("cannot carry out open1 (flowop openfile)"), "{why}");
    assert!(why.contains("use nfs3, nfs4 or smb") && !why.contains(":p@"), "{why}");
    let why = refusal(&target("block:/dev/x"), &program).expect("refused");
    assert!(why.contains("make a file system on it"), "{why}");
}

#[test]
fn uncached_sets_are_refused_until_that_is_proved() {
    let program = program(",cached=false");
    let why = refusal(&target("nfs3://h/x"), &program).expect("refused");
    assert!(why.starts_with("the set f is to be read uncached"), "{why}");
    assert_eq!(refusal(&target("null:"), &program), None);
}

#[test]
fn what_has_no_effect_is_listed() {
    let text = |url: &str| {
        let notes = notes(&target(url), &program(""));
        notes.into_iter().map(|note| note.text).collect::<Vec<_>>().join("; ")
    };
    assert!(text("path:/tmp").contains("directio has no effect on path:/tmp"));
    assert!(text("nfs3://h/x").contains("closefile is no call"));
    assert!(!text("nfs4://h/x").contains("closefile"));
}
