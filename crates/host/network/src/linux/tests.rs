//! Files: name servers, and the programs that manage links.

use super::*;

/// A folder of this test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn dns(servers: &[&str], domains: &[&str]) -> Dns {
    Dns {
        servers: servers.iter().map(|text| text.parse().expect("an address")).collect(),
        domains: domains.iter().map(|text| (*text).to_owned()).collect(),
    }
}

#[test]
fn name_servers_are_written_and_read() {
    let folder = Folder::new("resolv-conf");
    let path = folder.0.join("resolv.conf");
    let two = dns(&["192.0.2.1", "2001:db8::1"], &["example.net", "example.org"]);
    set_resolv_conf(&path, &two, RESOLV_CONF_HEAD).expect("written");
    assert_eq!(resolv_conf(&read(&path).expect("the file")), two);
    set_resolv_conf(&path, &dns(&["192.0.2.2"], &[]), RESOLV_CONF_HEAD).expect("written again");
    assert_eq!(resolv_conf(&read(&path).expect("the file")), dns(&["192.0.2.2"], &[]));
    set_resolv_conf(&path, &Dns::default(), RESOLV_CONF_HEAD).expect("removed");
    assert!(!path.exists());
    assert_eq!(set_resolv_conf(&path, &Dns::default(), RESOLV_CONF_HEAD), Ok(()));
}

#[test]
fn name_servers_of_others_stay() {
    let folder = Folder::new("resolv-conf-of-others");
    let path = folder.0.join("resolv.conf");
    std::fs::write(&path, "domain a.example\nnameserver 192.0.2.9\nnameserver no\n").expect("it");
    assert_eq!(resolv_conf(&read(&path).expect("it")), dns(&["192.0.2.9"], &["a.example"]));
    let why = set_resolv_conf(&path, &dns(&["192.0.2.1"], &[]), RESOLV_CONF_HEAD)
        .expect_err("not its file");
    assert!(why.ends_with("resolv.conf is not Plimsoll's: remove it first"), "{why}");
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let why =
        set_resolv_conf(&link, &dns(&["192.0.2.1"], &[]), RESOLV_CONF_HEAD).expect_err("a link");
    assert!(why.ends_with("is another program's: it is a link"), "{why}");
}

#[test]
fn programs_that_manage_links() {
    let folder = Folder::new("managers");
    let put = |name: &str, text: &str| {
        let path = folder.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    put("NetworkManager/devices/2", "[device]\nmanaged=true\n");
    put("NetworkManager/devices/3", "[device]\nmanaged=false\n");
    put("systemd/netif/links/4", "ADMIN_STATE=configured\nOPER_STATE=routable\n");
    put("systemd/netif/links/5", "ADMIN_STATE=unmanaged\n");
    let managers: Vec<_> = (1..=5).map(|index| manager(&folder.0, index)).collect();
    assert_eq!(managers, [None, Some("NetworkManager"), None, Some("systemd-networkd"), None]);
}

#[test]
fn versions_of_linux() {
    assert_eq!(version("6.1.176\n"), Some((6, 1)));
    assert_eq!(version("5.18-rc1"), Some((5, 18)));
    assert_eq!(version("none"), None);
    assert!(version("5.9.3") < Some(LINUX_MIN));
    assert!(version("5.18.0") >= Some(LINUX_MIN) && version("6.0") >= Some(LINUX_MIN));
}
