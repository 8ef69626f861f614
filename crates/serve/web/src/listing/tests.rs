//! The order of rows, and how their names are written.

use super::*;

fn row(name: &str, kind: FileType, size: u64) -> Row {
    Row { name: name.as_bytes().to_vec(), kind, size, modified: 0 }
}

#[test]
fn names_are_in_the_order_of_people() {
    let mut names = vec!["b", "file 10", "File 9", "a", "file 010", "file 9", "", "B", "1", "01"];
    names.sort_by(|a, b| by_name(a.as_bytes(), b.as_bytes()));
    assert_eq!(names, ["", "01", "1", "a", "B", "b", "File 9", "file 9", "file 010", "file 10"]);
}

#[test]
fn directories_come_first_in_every_order() {
    let mut rows = vec![
        row("a", FileType::Regular, 5),
        row("z", FileType::Directory, 0),
        row("b", FileType::Regular, 1),
    ];
    let mut names = |by, down| {
        sort(&mut rows, Order { by, down });
        rows.iter().map(|r| String::from_utf8_lossy(&r.name).into_owned()).collect::<String>()
    };
    assert_eq!(names(By::Name, false), "zab");
    assert_eq!(names(By::Name, true), "zba");
    assert_eq!(names(By::Size, false), "zba");
    assert_eq!(names(By::Size, true), "zab");
}

#[test]
fn a_name_cannot_leave_its_place() {
    assert_eq!(json_text(b"a\"\\\n\xff"), "\"a\\\"\\\\\\u000a\u{fffd}\"");
    let script = row("javascript:alert(1)", FileType::Regular, 0);
    assert_eq!(script.href(), "./javascript%3Aalert%281%29");
    let quote = row("\"><script>", FileType::Directory, 0);
    assert_eq!(quote.href(), "./%22%3E%3Cscript%3E/");
}
