//! Directories are looked up once; a changed verifier is a loss.

use super::*;

fn missing(path: &str) -> ClientError {
    ClientError::Refused { what: path.to_owned(), status: "missing".to_owned() }
}

#[test]
fn directories_are_looked_up_once() {
    let mut handles = Handles::<u32>::new();
    let mut asked = Vec::new();
    for path in ["a/b", "a/b", "a", ""] {
        let mut lookup = |parent: &[u8], name: &str| {
            asked.push(format!("{}/{name}", String::from_utf8_lossy(parent)));
            Ok(Some([parent, name.as_bytes()].concat()))
        };
        let found = handles.directory(b"r", path, &mut lookup, missing).expect("found");
        assert_eq!(found, format!("r{}", path.replace('/', "")).as_bytes());
    }
    assert_eq!(asked, ["r/a", "ra/b"]);
    handles.forget("a/b");
    let mut none = |_: &[u8], _: &str| Ok(None);
    let error = handles.directory(b"r", "a/b", &mut none, missing).expect_err("gone");
    assert!(error.to_string().contains("a/b"), "{error}");
}

#[test]
fn a_changed_verifier_is_a_loss() {
    let mut handles = Handles::new();
    assert!(handles.at(2).is_err() && handles.written(2, [0; 8]).is_err());
    handles.put(2, "file");
    assert_eq!((*handles.at(2).expect("open"), handles.numbers()), ("file", vec![2]));
    handles.written(2, [1; 8]).expect("the first");
    handles.committed(2, Some([1; 8])).expect("the same");
    handles.committed(2, Some([2; 8])).expect("nothing to lose");
    handles.written(2, [1; 8]).expect("the first");
    assert!(handles.written(2, [2; 8]).is_err());
    assert!(handles.committed(2, None).is_err(), "no verifier is another one");
    assert_eq!(handles.take(2).expect("open"), "file");
    assert!(handles.take(2).is_err() && handles.numbers().is_empty());
}
