//! Names of compressions and of accounting.

use super::*;

#[test]
fn each_compression_has_its_name() {
    for one in Compression::ALL {
        assert_eq!(Compression::of(one.name()), Some(one));
    }
    assert_eq!(Compression::of("gzip"), None);
    assert_eq!(Compression::Off.value(), None);
    assert_eq!(Compression::Zstd.value(), Some("zstd"));
}

#[test]
fn a_pool_that_is_not_there_has_no_accounting() {
    let quotas = Quotas::of("00000000-0000-0000-0000-000000000000");
    let folder = File::open("/").expect("a folder");
    assert_eq!(quotas.accounting(&folder).expect("read"), Accounting::Off);
    assert_eq!(quotas.space(256), None);
}
