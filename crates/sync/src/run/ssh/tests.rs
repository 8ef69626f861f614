//! What names a place here, and what one elsewhere.

use std::path::PathBuf;

use super::{Location, RemoteDirectory, place};

fn there(host: &str, port: Option<u16>, path: &str) -> Location {
    let (host, path) = (host.to_owned(), path.as_bytes().to_vec());
    Location::Remote(RemoteDirectory { host, port, path, share: false })
}

fn share(host: &str, port: u16, path: &str) -> Location {
    let (host, path) = (host.to_owned(), path.as_bytes().to_vec());
    Location::Remote(RemoteDirectory { host, port: Some(port), path, share: true })
}

#[test]
fn places_are_what_scp_takes_them_for() {
    for (text, wanted) in [
        ("host:/a", there("host", None, "/a")),
        ("host:a b", there("host", None, "a b")),
        ("host:", there("host", None, ".")),
        ("ann@host:a:b", there("ann@host", None, "a:b")),
        ("[::1]:/a", there("::1", None, "/a")),
        ("ann@[fe80::1]:a", there("ann@fe80::1", None, "a")),
        ("ssh://host/a", there("host", None, "/a")),
        ("ssh://ann@host:2222/a/b", there("ann@host", Some(2222), "/a/b")),
        ("ssh://[::1]:22/", there("::1", Some(22), "/")),
        ("ssh://[::1]/x", there("::1", None, "/x")),
        ("dsync://nas/export/a", share("nas", 218, "/export/a")),
        ("dsync://ann@[::1]:10218/x", share("ann@::1", 10_218, "/x")),
        ("/a:b", Location::Local(PathBuf::from("/a:b"))),
        ("./a:b", Location::Local(PathBuf::from("./a:b"))),
        ("a/b:c", Location::Local(PathBuf::from("a/b:c"))),
        (":a", Location::Local(PathBuf::from(":a"))),
    ] {
        assert_eq!(place(text.as_bytes()), Ok(wanted), "{text}");
    }
    for text in [
        "-oProxyCommand=x:/a",
        "ssh://-x/a",
        "ssh://host",
        "ssh://host:x/a",
        "ssh:///a",
        "dsync://nas",
    ] {
        assert!(place(text.as_bytes()).is_err(), "{text}");
    }
}
