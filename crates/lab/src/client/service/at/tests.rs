//! URLs of services: what is read is written, passwords are not shown, nonsense is refused.

use super::*;
use crate::client::Target;

fn parse(url: &str) -> Result<ServiceAt, String> {
    match Target::parse(url) {
        Ok(Target::Service(at)) => Ok(at),
        Ok(other) => Err(other.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn what_is_read_is_written() {
    let whole = [
        "ftp://ann:se%40cret@host:2121/share/dir",
        "ftps://ann@host:990/share?implicit&pin=aa&password-file=/etc/pass%20word",
        "sftp://ann:x@[::1]:218/share?insecure&cipher=aes128-gcm",
        "https://host:443/?ca=/etc/ca.pem&tls=1.2",
        "webdavs://ann@host:8443/a%20b?password-env=PASSWORD",
    ];
    for url in whole {
        let at = parse(url).unwrap();
        assert_eq!(at.url(), url);
        assert_eq!(parse(&at.url()).unwrap(), at);
        assert_eq!(Target::Service(at).url(), url);
    }
    let ports = [("ftp", 21), ("ftps", 21), ("sftp", 218), ("http", 80), ("webdavs", 443)];
    for (scheme, port) in ports {
        assert_eq!(parse(&format!("{scheme}://ann@host/share")).unwrap().port, port);
    }
    assert_eq!(parse("ftps://host/share?implicit").unwrap().port, 990);
}

#[test]
fn passwords_are_not_shown() {
    let at = parse("ftp://ann:se%40cret@host:21/share").unwrap();
    assert_eq!(at.to_string(), "ftp://ann@host:21/share");
    assert!(!format!("{at:?}").contains("se@cret"));
    let words = ["--target=ftp://ann:se:c@r%40et@host:21/share", "ftp://ann@host/a:b@c", "x"];
    let shown = words.map(without_password);
    assert_eq!(shown, ["--target=ftp://ann@host:21/share", "ftp://ann@host/a:b@c", "x"]);
    let wrong = parse("ftp://ann:secret@host/share?nonsense").unwrap_err();
    assert!(!wrong.contains("secret"), "{wrong}");
}

#[test]
fn a_password_is_where_the_url_says() {
    let file = std::env::temp_dir().join(format!("plimsoll-secret-{}", std::process::id()));
    std::fs::write(&file, "se cret\n").unwrap();
    let at = parse(&format!("ftp://ann@host/share?password-file={}", file.display())).unwrap();
    assert_eq!(at.secret.read().unwrap(), "se cret");
    std::fs::remove_file(&file).unwrap();
    assert!(at.secret.read().is_err());
    assert!(parse("ftp://ann@host/?password-env=NO_SUCH").unwrap().secret.read().is_err());
}

#[test]
fn nonsense_is_refused() {
    for url in [
        "ftp:host/share",
        "ftp://host",
        "ftp:///share",
        "ftp://host:x/share",
        "ftp://host/share/../etc",
        "ftp://host/a%0ab",
        "ftp://host/a%zz",
        "ftp://host/share?insecure",
        "sftp://host/share",
        "sftp://ann@host/share?implicit",
        "sftp://ann@host/share?tls=1.3",
        "https://host/share?pin=aa&insecure",
        "https://host/share?pin=",
        "gopher://host/share",
    ] {
        assert!(parse(url).is_err(), "{url}");
    }
}

#[test]
fn without_tls_the_port_keeps_its_distance_and_a_password_its_machine() {
    let plain = |url: &str| parse(url).unwrap().without_tls().map(|at| at.to_string());
    for (secure, expected) in [
        ("https://nas:443/x?insecure", "http://nas:80/x"),
        ("webdavs://ann@127.0.0.1:30443/x?pin=aa", "webdav://ann@127.0.0.1:30080/x"),
        ("ftps://ann@localhost:2121/x?tls=1.3", "ftp://ann@localhost:2121/x"),
        ("ftps://ann@[::1]:1990/x?implicit", "ftp://ann@[::1]:1021/x"),
    ] {
        assert_eq!(plain(secure).as_deref(), Ok(expected));
    }
    for (url, why) in [
        ("https://ann@nas:443/x", "the password would leave this machine unencrypted"),
        ("https://ann@192.0.2.1:443/x", "the password would leave this machine unencrypted"),
        ("https://nas:442/x", "the port without TLS is not known"),
        ("sftp://ann@127.0.0.1:218/x", "its protocol is always encrypted"),
        ("http://nas:80/x", "its protocol is always encrypted"),
    ] {
        assert_eq!(plain(url), Err(why), "{url}");
    }
}
