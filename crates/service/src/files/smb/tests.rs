//! The lines that people copy.

use super::*;

#[test]
fn a_share_is_named_as_each_system_does() {
    let at = "192.0.2.7:445".parse().unwrap();
    let url = "smb://192.0.2.7:445/lab";
    assert_eq!(others(url, at, "lab"), r"macOS: smb://192.0.2.7:445/lab; Windows: \\192.0.2.7\lab");
    let at = "192.0.2.7:10445".parse().unwrap();
    let url = "smb://192.0.2.7:10445/my%20data";
    let told = others(url, at, "my data");
    assert!(
        told.starts_with(r"macOS: smb://192.0.2.7:10445/my%20data; Windows: \\192.0.2.7\my data; ")
    );
    assert!(told.ends_with(NEEDS_PORT), "{told}");
    assert_eq!(
        cifs(url, at, "my data"),
        "mount -t cifs -o username=USER,port=10445 '//192.0.2.7/my data' /mnt"
    );
}
