//! How many requests Linux' SMB client sends for what programs do with files, as it counts them
//! itself: leases spare most. Free of the machine's speed but for what the client writes back by
//! time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use e2e::api::Api;
use e2e::netns::HOST;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::smb::scene::{PASSWORD, SHARE, SMB, USER, set_up};
use e2e::uml::{self, Guest};

/// Memory of the guest.
const MEMORY: &str = "mem=384M";
/// Requests of all steps with smbd 4.17, which grants leases, too.
const MOST: u64 = 4_880;
/// Those of them that read ten files forty times.
const MOST_OFTEN: u64 = 246;

#[test]
fn leases_spare_a_linux_client_most_requests() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-smb-counts", "{why}");
    }
    if !uml::is_debian() {
        skip!("kernel-smb-counts", "another kernel is set");
    }
    let _turn = uml::turn();
    let namespace = match uml::namespace(1) {
        Ok(namespace) => namespace,
        Err(why) => skip!("kernel-smb-counts", "{why}"),
    };
    let scratch = Scratch::new("kernel-smb-counts");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("a mode");
    let options = Options::new(&dir, &state);
    let mut server =
        Server::start(&Options { address: HOST, namespace: Some(&namespace), ..options });
    set_up(&Api::new(&state), &dir.join(SHARE), &[]);
    let kernel = std::ffi::OsStr::new(uml::DEBIAN);
    let mut guest = Guest::boot_with(kernel, MEMORY, &namespace, 0, scratch.path());
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("uml");
    for script in ["cifs.sh", "cifs-work.sh"] {
        fs::copy(sources.join(script), guest.share().join(script)).expect("a script");
    }
    let port = SMB + server.offset;
    let said = guest.run(&format!(
        "SERVER={HOST} PORT={port} SHARE={SHARE} USER={USER} PASSWORD='{PASSWORD}'\n\
         . /mnt/host/cifs.sh\n\
         load\n\
         mount_share smb vers=3.1.1 || {{ dmesg | tail -20; false; }}\n\
         . /mnt/host/cifs-work.sh\n"
    ));
    let step = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    let steps: BTreeMap<String, u64> = said.lines().filter_map(step).collect();
    let all: u64 = steps.values().sum();
    println!("{all} requests: {steps:?}");
    assert!(all <= MOST, "smbd is asked {MOST}");
    let often = steps.get("read_often").copied().expect("a count");
    assert!(often <= MOST_OFTEN, "smbd is asked {MOST_OFTEN}");
    assert!(server.stop().success(), "SIGTERM ends it cleanly: {}", server.stderr_text());
}
