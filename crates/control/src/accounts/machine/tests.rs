//! passwd(5) and group(5).

use super::*;
use crate::state::tests::Scratch;

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nbroken\n:x:7:7::/:\n\
                      ann:x:1000:100::/home/ann:\nalso:x:1000:101::/:\nhigh:x:4294967296:1::/:\n";
const GROUP: &str = "root:x:0:\nusers:x:100:\nstaff:x:50:bert,ann\nbroken:x\nwheel:x:10: ann\n";

fn machine(scratch: &Scratch) -> Machine {
    let (passwd, group) = (scratch.path().join("passwd"), scratch.path().join("group"));
    fs::write(&passwd, PASSWD).unwrap();
    fs::write(&group, GROUP).unwrap();
    Machine::at(passwd, group)
}

#[test]
fn accounts_by_name_and_by_number() {
    let scratch = Scratch::new();
    let machine = machine(&scratch);
    let ann = Account { name: "ann".to_owned(), uid: 1000, gid: 100 };
    assert_eq!(machine.by_name("ann"), Some(ann.clone()));
    assert_eq!(machine.by_uid(1000), Some(ann), "the first of that number");
    assert_eq!(machine.by_uid(0).unwrap().name, "root");
    for nobody in ["broken", "", "high", "An"] {
        assert_eq!(machine.by_name(nobody), None, "{nobody:?}");
    }
    assert_eq!(machine.by_uid(7), None, "without a name");
}

#[test]
fn groups_are_those_that_name_the_user() {
    let scratch = Scratch::new();
    let machine = machine(&scratch);
    assert_eq!(machine.groups("ann"), [50, 10]);
    assert_eq!(machine.groups("bert"), [50]);
    assert_eq!(machine.groups("an"), [0; 0]);
    assert_eq!(machine.group(50).as_deref(), Some("staff"));
    assert_eq!(machine.group(51), None);
}

#[test]
fn files_are_read_again_when_they_change_and_kept_when_they_are_gone() {
    let scratch = Scratch::new();
    let machine = machine(&scratch);
    assert!(machine.by_name("carl").is_none());
    let passwd = scratch.path().join("passwd");
    fs::write(&passwd, format!("{PASSWD}carl:x:1002:100::/:\n")).unwrap();
    assert_eq!(machine.by_name("carl").unwrap().uid, 1002);
    fs::remove_file(&passwd).unwrap();
    assert_eq!(machine.by_name("carl").unwrap().uid, 1002);
}
