//! Tests of what is reported of file systems with little space.

use control::appliance::ShareStatus;

use super::problems;

fn share(name: &str, available_bytes: u64) -> ShareStatus {
    ShareStatus {
        name: name.to_owned(),
        dir: format!("/srv/{name}"),
        read_only: false,
        total_bytes: 100 << 30,
        available_bytes,
        exports: Vec::new(),
        access: Vec::new(),
    }
}

#[test]
fn a_file_system_of_many_shares_is_one_problem() {
    let mut shares: Vec<_> = (0..200).map(|n| share(&format!("share-{n}"), 1 << 30)).collect();
    shares.push(share("other", 2 << 30));
    shares.push(share("large", 50 << 30));
    let fsid = |name: &str| Some(u64::from(!name.starts_with("share-")));
    assert_eq!(
        problems(&shares, fsid),
        [
            "the file system of share-0 and 199 more shares has 1 GiB left",
            "the file system of other has 2 GiB left",
        ]
    );
}

#[test]
fn shares_without_an_identifier_are_reported_each() {
    let shares = [share("a", 1 << 30), share("b", 1 << 30)];
    assert_eq!(problems(&shares, |_| None).len(), 2);
    let two = problems(&shares, |_| Some(7));
    assert_eq!(two, ["the file system of a and 1 more share has 1 GiB left"]);
}
