//! Tests of which initiator sees what.

use base::limits::LUNS_MAX;

use super::{Initiators, Mapping, MappingError};

#[test]
fn a_unit_is_visible_to_its_initiators() {
    let mut mapping = Mapping::default();
    let named = |names: &[&str]| Initiators::Named(names.iter().map(|n| (*n).to_owned()).collect());
    assert_eq!(mapping.add(None, Initiators::default(), "nobody"), Ok(0));
    assert_eq!(mapping.add(Some(7), Initiators::Everybody, "all"), Ok(7));
    assert_eq!(mapping.add(None, named(&["iqn.a", "iqn.b"]), "two"), Ok(1));
    assert_eq!(
        mapping.add(Some(7), Initiators::Everybody, "again"),
        Err(MappingError::NumberInUse(7))
    );
    assert!(mapping.seen_by("iqn.a").eq([(1, &"two"), (7, &"all")]));
    assert!(mapping.seen_by("iqn.c").eq([(7, &"all")]));
    assert_eq!(mapping.find("iqn.c", 1), None);
    assert_eq!(mapping.find("iqn.a", 0), None, "nobody gets in by accident");
    assert!(mapping.remove(1).is_some() && mapping.remove(1).is_none());
    assert_eq!(mapping.find("iqn.a", 1), None);
    assert_eq!(mapping.add(None, Initiators::Everybody, "free again"), Ok(1));
    while mapping.iter().count() < LUNS_MAX {
        mapping.add(None, Initiators::Nobody, "more").expect("room");
    }
    assert_eq!(mapping.add(None, Initiators::Nobody, "one more"), Err(MappingError::Full));
}
