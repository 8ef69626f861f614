//! Tests of units over a restart, and of what may be asked for.

use super::{LunGiven, Luns, parse};

#[test]
fn sizes_and_names_are_read() {
    let given = |name: &str, size| Ok(LunGiven { name: name.to_owned(), size });
    assert_eq!(parse("disk=10G"), given("disk", 10 << 30));
    assert_eq!(parse("a-b_c.d=1048576"), given("a-b_c.d", 1 << 20));
    for wrong in ["disk", "=1G", ".x=1G", "a/b=1G", "a=1", "a=G", "a=99999999T", "a=1048577"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_unit_stays_who_it_is() {
    let state = std::env::temp_dir().join(format!("plimsoll-luns-{}", std::process::id()));
    std::fs::create_dir_all(&state).expect("a folder");
    let none = Luns::open(&state, &[]).expect("nothing");
    assert!(none.all().is_empty() && !state.join(super::FOLDER).exists());
    let given = |name: &str, size| LunGiven { name: name.to_owned(), size };
    let first = Luns::open(&state, &[given("a", 1 << 20), given("b", 2 << 20)]).expect("two");
    let who = |luns: &Luns| {
        let one = |lun: &super::Lun| {
            let unit = &lun.unit;
            (lun.number, unit.identity.clone(), unit.medium.size())
        };
        luns.all().iter().map(one).collect::<Vec<_>>()
    };
    let before = who(&first);
    assert_eq!(before.len(), 2);
    assert_ne!(before[0].1.guid, before[1].1.guid);
    let (target, secret) = (first.target().to_owned(), first.secret().clone());
    drop(first);
    // Moved to another place, with another size asked for: it is the same.
    let moved = state.with_extension("moved");
    std::fs::rename(&state, &moved).expect("moved");
    let again = Luns::open(&moved, &[given("a", 5 << 20)]).expect("again");
    drop(Luns::open(&moved, &[given("c", 1 << 20)]).expect("one more"));
    let more = Luns::open(&moved, &[]).expect("all");
    assert_eq!((more.all().len(), more.target()), (3, &*target), "the target stays");
    assert_eq!(who(&again), before);
    assert_eq!((again.target(), again.secret()), (&*target, &secret));
    std::fs::remove_dir_all(&moved).expect("removed");
}

#[test]
fn data_without_a_record_is_never_removed() {
    let state = std::env::temp_dir().join(format!("plimsoll-luns-data-{}", std::process::id()));
    let folder = state.join(super::FOLDER);
    std::fs::create_dir_all(&folder).expect("a folder");
    let given = |name: &str| LunGiven { name: name.to_owned(), size: 1 << 20 };
    // Left by a start that was cut off, and by a table that was lost.
    let empty = std::fs::File::create(folder.join("a.lun")).expect("a file");
    empty.set_len(4 << 20).expect("a hole");
    std::fs::write(folder.join("b.lun"), [7; 4096]).expect("data");
    assert_eq!(Luns::open(&state, &[given("a")]).expect("one").all().len(), 1);
    assert!(Luns::open(&state, &[given("b")]).is_err());
    assert_eq!(std::fs::read(folder.join("b.lun")).expect("data"), [7; 4096]);
    std::fs::remove_dir_all(&state).expect("removed");
}
