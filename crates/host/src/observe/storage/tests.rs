//! Where the data of captured servers is.

use super::*;
use crate::observe::tests::Machine;

#[test]
fn the_folder_of_a_test_file() {
    assert_eq!(folder_of("/srv/data/plimsoll-lab.3/f0"), Some("/srv/data"));
    assert_eq!(folder_of("/plimsoll-lab.3"), Some("/"));
    assert_eq!(folder_of("/srv/data/other"), None);
    assert_eq!(folder_of("/srv/my-plimsoll-lab.3"), None);
}

#[test]
fn by_the_exported_path_only_with_test_files_in_it() {
    let machine = Machine::new();
    machine.file("proc/9/root/srv/other", "");
    let hints = Hints { exported: Some("/srv".into()), ..Default::default() };
    assert_eq!(find(&machine.root, &[9], &hints), None);
    machine.file("proc/9/root/srv/plimsoll-lab.0", "");
    let found = find(&machine.root, &[9], &hints).unwrap();
    assert_eq!(found.folder, Some(machine.at("proc/9/root/srv")));
}

#[test]
fn by_what_a_server_has_open_or_mapped() {
    let machine = Machine::new();
    machine.file("proc/9/root/srv/plimsoll-lab.0/f", "");
    machine.link("proc/9/fd/4", "/srv/elsewhere");
    assert_eq!(find(&machine.root, &[9], &Hints::default()), None);
    let maps = "7f00-7f10 r--s 00000000 fe:00 12  /srv/plimsoll-lab.0/f\n";
    machine.file("proc/9/maps", maps);
    assert!(find(&machine.root, &[9], &Hints::default()).is_some());
    std::fs::remove_file(machine.at("proc/9/maps")).unwrap();
    // A child of the server has the client's files.
    machine.file("proc/10/root/srv/plimsoll-lab.0/f", "");
    machine.link("proc/10/fd/4", "/srv/plimsoll-lab.0/f");
    let found = find(&machine.root, &[9, 10], &Hints::default()).unwrap();
    assert_eq!(found.folder, Some(machine.at("proc/10/root/srv")));
}

#[test]
fn units_on_one_device() {
    let machine = Machine::new();
    let hints = Hints { blocks: true, ..Default::default() };
    machine.file("small", "x");
    machine.link("proc/9/fd/3", machine.at("small").to_str().unwrap());
    assert_eq!(find(&machine.root, &[9], &hints), None, "too small for a logical unit");
    machine.file("unit", "");
    std::fs::File::options()
        .write(true)
        .open(machine.at("unit"))
        .and_then(|file| file.set_len(UNIT_MIN))
        .unwrap();
    machine.link("proc/9/fd/4", machine.at("unit").to_str().unwrap());
    assert!(find(&machine.root, &[9], &hints).is_some());
}
