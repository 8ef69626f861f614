//! A Linux client over RDMA: client and server in the same guest of User Mode Linux, over siw, a
//! device in software. The kernel is what `tests/uml/build-kernel` makes; `make rdma` does both.
//!
//! It shows that they understand each other, and that bytes go by chunks. It shows nothing of the
//! order in which an adapter does things, and no speed: all of them share one processor.

use std::path::Path;

use e2e::scratch::Scratch;
use e2e::skip;
use e2e::uml::{self, Guest};

/// Memory of a guest that holds the server, its data and the client's cache.
const MEMORY: &str = "mem=1G";
/// Ports of the server: the standard ones and this.
const OFFSET: u16 = 10_000;
const SERVER: &str = "10.0.2.15";

/// Boots a guest with a device, and a server in it that listens on it.
fn guest_with_server(scratch: &Path, namespace: &e2e::netns::Namespace) -> Option<Guest> {
    let kernel = uml::built_kernel()?;
    let mut guest = Guest::boot_with(kernel.as_os_str(), MEMORY, namespace, 0, scratch);
    std::fs::copy(e2e::server::binary(), guest.share().join("plimsoll")).expect("the server");
    guest.run(&format!(
        "rdma link add siw0 type siw netdev vec0
         ulimit -l unlimited
         mkdir -p /mnt/t /mnt/state
         plimsoll serve /mnt/t --state /mnt/state --address {SERVER} \
             --port-offset {OFFSET} >/mnt/host/server.log 2>&1 </dev/null &
         for n in $(seq 600); do
             rdma resource show cm_id | grep -q 'state LISTEN' && exit 0
             kill -0 $! || break
             sleep 0.1
         done
         cat /mnt/host/server.log; rdma link; exit 1"
    ));
    Some(guest)
}

/// What a client does over one version: data written, dropped from its cache and compared; files of
/// sizes at which something changes; long names, many names, and what the client counts of chunks.
fn script(version: &str, connections: u32) -> String {
    let mount = match version {
        "3" => format!("vers=3,mountproto=tcp,mountport={},nolock", 2049 + OFFSET),
        version => format!("vers={version}"),
    };
    format!(
        r#"options={mount},proto=rdma,port={port},nconnect={connections},noresvport
mkdir -p /mnt/nfs; mount -t nfs -o $options {SERVER}:/export/t /mnt/nfs
grep -q 'proto=rdma' /proc/mounts
cd /mnt/nfs; mkdir w; cd w
dd if=/dev/urandom of=/mnt/big bs=1M count=32 2>/dev/null
cp /mnt/big big; sync; echo 3 >/proc/sys/vm/drop_caches
cmp /mnt/big big; cmp /mnt/big /mnt/t/w/big
for size in 0 1 1023 1024 4095 4097 70001; do
    head -c $size /mnt/big >/mnt/small; cp /mnt/small f$size; sync
    echo 3 >/proc/sys/vm/drop_caches; cmp /mnt/small f$size; cmp /mnt/small /mnt/t/w/f$size
done
target=$(printf 'a%.0s' $(seq 4000)); ln -s $target link
echo 3 >/proc/sys/vm/drop_caches; [ "$(readlink link)" = "$target" ]
mkdir many; (cd many; seq -f 'a_name_that_is_rather_long_%05.0f' 2000 | xargs touch)
echo 3 >/proc/sys/vm/drop_caches; [ "$(ls many | wc -l)" = 2000 ]
[ $connections = 1 ] || [ $version = 3 ] || flock big true
cd /; awk '/xprt:.*rdma/ {{ print $10, $13, $14, $15, $16, $17, $22 }}' /proc/self/mountstats
rm -r /mnt/nfs/w; umount /mnt/nfs"#,
        port = 20049 + OFFSET,
    )
    .replace("$connections", &connections.to_string())
    .replace("$version", version)
}

#[test]
fn a_linux_client_speaks_rdma() {
    if let Some(why) = uml::unavailable() {
        skip!("kernel-rdma", "{why}");
    }
    if uml::built_kernel().is_none() {
        skip!("kernel-rdma", "its kernel is made by `make rdma`");
    }
    if !e2e::has("rdma") || !Path::new("/etc/libibverbs.d/siw.driver").exists() {
        skip!("kernel-rdma", "not installed: iproute2's rdma, librdmacm1 or ibverbs-providers");
    }
    let _turn = uml::turn();
    let namespace = match uml::namespace(1) {
        Ok(namespace) => namespace,
        Err(why) => skip!("kernel-rdma", "{why}"),
    };
    let scratch = Scratch::new("kernel-rdma");
    let mut guest = guest_with_server(scratch.path(), &namespace).expect("there is a kernel");
    for (version, connections) in [("3", 1), ("4.0", 1), ("4.1", 1), ("4.2", 1), ("4.2", 4)] {
        let said = guest.run(&script(version, connections));
        let (mut read, mut written) = (0, 0);
        for line in said.lines() {
            let counts: Vec<u64> =
                line.split(' ').map(|word| word.parse().expect("a count")).collect();
            let [bad_xids, reads, writes, _, out, into, bad_replies] = counts[..] else {
                panic!("{version}: {said}");
            };
            assert_eq!((bad_xids, bad_replies), (0, 0), "{version}: {said}");
            assert!(reads > 0 && writes > 0 || connections > 1, "{version}: {said}");
            (written, read) = (written + out, read + into);
        }
        // All but some of the small files.
        let bulk = (32 << 20) / 100 * 99;
        assert!(written >= bulk && read >= bulk, "{version}: {written} and {read} bytes by chunks");
    }
    let log = std::fs::read_to_string(guest.share().join("server.log")).unwrap_or_default();
    assert!(!log.contains("panicked"), "{log}");
}
