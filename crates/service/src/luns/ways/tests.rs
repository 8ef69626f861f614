//! Lines to type: with an address that can be reached.

use super::*;

#[test]
fn no_line_names_the_unspecified_address() {
    for listens in ["0.0.0.0:3260", "[::]:3260"] {
        let all = lines(listens.parse().unwrap(), "iqn.x", 3, None).join("\n");
        assert!(!all.contains("0.0.0.0") && !all.contains("[::]"), "{all}");
        assert!(all.contains(&format!("@{}:3260/iqn.x/3", reach::machine_name())), "{all}");
    }
    let all = lines("[fd00::7]:3260".parse().unwrap(), "iqn.x", 0, None);
    assert!(all[0].contains("@[fd00::7]:3260/iqn.x/0"), "{all:?}");
}
