//! Headers of the kernel.

use super::*;
use crate::mad::Route;

#[test]
fn headers_are_those_of_the_kernel() {
    let mad = Mad::get(Class::Performance, 0x12, 0);
    let bytes = packet(5, &Target::Performance(0x1234), &mad);
    assert_eq!(bytes.len(), 312);
    assert_eq!(bytes[0..4], 5_u32.to_ne_bytes());
    assert_eq!(bytes[16..20], 256_u32.to_ne_bytes());
    assert_eq!(bytes[20..30], [0, 0, 0, 1, 0x80, 1, 0, 0, 0x12, 0x34]);
    let mad = Mad::get(Class::SubnetByRoute, 0x11, 0);
    let bytes = packet(5, &Target::Route(Route::default()), &mad);
    assert_eq!(bytes[20..30], [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
    assert_eq!(bytes[56..60], [1, 0x81, 1, 1]);
}

#[test]
fn a_device_that_is_missing_is_an_error_of_the_kernel() {
    let e = Umad::open(4_000).expect_err("no machine has so many ports");
    assert_eq!(e.kind(), io::ErrorKind::NotFound);
}
