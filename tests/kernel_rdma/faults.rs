//! What goes away comes back: the server is killed while clients write, the device is removed and
//! added again; what is missing is reported in one sentence, while TCP is served.

use std::process::Command;

use e2e::process::succeed;

use super::*;

/// Bytes that are written while the server is killed.
const BIG: &str = "192";

#[test]
fn data_survives_a_server_that_is_killed_while_it_is_written() {
    let _turn = uml::turn();
    let mut stage = match Stage::over("siw", "kernel-rdma-killed") {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-rdma", "{why}"),
    };
    let big = stage.guest.share().join("big");
    let mut command = Command::new("dd");
    command.args(["if=/dev/urandom", "bs=1M", "status=none", &format!("count={BIG}")]);
    succeed(command.arg(format!("of={}", big.display())));
    // The client writes what it has soon, and all the time.
    stage.run(
        "cd /proc/sys/vm
         echo 16000000 >dirty_bytes; echo 4000000 >dirty_background_bytes",
    );
    for version in ["3", "4.0", "4.1", "4.2"] {
        let said = stage.run(&format!(
            "attach n {version} rdma
             dd if=/mnt/host/big of=/mnt/n/big bs=64k status=none & writer=$!
             until [ $(stat -c %s /mnt/t/big 2>/dev/null || echo 0) -gt 50000000 ]; do sleep 0.01; done
             kill -9 $(cat /tmp/server)
             kill -0 $writer
             begin_server
             wait $writer
             forget
             cmp /mnt/host/big /mnt/n/big; cmp /mnt/host/big /mnt/t/big
             count n WRITE
             rm /mnt/n/big; umount /mnt/n"
        ));
        println!("{version}: {} WRITEs", said.trim());
    }
}

/// Memory that the server has pinned for devices, and what it has open of them.
const HELD: &str = "awk '/^VmPin:/ { print $2 }' /proc/$(cat /tmp/server)/status
ls -l /proc/$(cat /tmp/server)/fd | grep -c 'uverbs\\|infinibandevent' || true";

fn removed_and_added(kind: &str) {
    let _turn = uml::turn();
    let mut stage = match Stage::over(kind, &format!("kernel-rdma-removed-{kind}")) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-rdma", "{why}"),
    };
    stage.guest.install("writer");
    stage.run("attach rdma 4.1 rdma; attach tcp 4.0 tcp");
    let [rdma, tcp] = ["rdma", "tcp"]
        .map(|name| stage.begin(&format!("writer {name} /mnt/{name}/by-{name} /tmp/stop-{name}")));
    for round in 0..2 {
        for at in ["rdma at", "tcp at"] {
            stage.guest.event(at);
        }
        assert_ne!(stage.run(HELD), "0\n0\n", "round {round}: there is something to give back");
        stage.run(&format!("timeout 60 rdma link delete {kind}0; [ -z \"$(rdma link)\" ]"));
        stage.run("until_state rdma_problem 'no RDMA device'");
        assert_eq!(stage.run(HELD), "0\n0\n", "round {round}: nothing is left of the device");
        stage.guest.forget("tcp at");
        stage.guest.event("tcp at");
        stage.run(&format!("rdma link add {kind}0 type {kind} netdev vec0; until_listening"));
        stage.guest.forget("rdma at");
        stage.guest.event("rdma at");
    }
    stage.run("touch /tmp/stop-rdma /tmp/stop-tcp");
    for task in [rdma, tcp] {
        let (status, log) = stage.guest.end(&task);
        assert_eq!(status, 0, "{log}");
    }
    stage.run("for by in rdma tcp; do cmp /mnt/$by/by-$by /mnt/t/by-$by; done");
}

#[test]
fn siw_that_is_removed_is_used_again_when_it_is_back() {
    removed_and_added("siw");
}

#[test]
fn rxe_that_is_removed_is_used_again_when_it_is_back() {
    removed_and_added("rxe");
}

/// A server that lacks something reports it, and serves over TCP.
fn check_missing(stage: &mut Stage, before: &str, words: &str) {
    stage.run(&format!(
        "{before}
         begin_server
         attach tcp 4.2 tcp; echo text >/mnt/tcp/file; cmp /mnt/tcp/file /mnt/t/file"
    ));
    stage.run(&format!("until_state rdma_problem '{words}'; umount /mnt/tcp; end_server"));
}

#[test]
fn missing_parts_are_reported_and_tcp_is_served() {
    let _turn = uml::turn();
    let mut stage = match Stage::bare("kernel-rdma-missing") {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-rdma", "{why}"),
    };
    check_missing(&mut stage, "", "this machine has no RDMA device");
    stage.run("rdma link add siw0 type siw netdev vec0");
    stage.run("library=$(readlink -f /usr/lib/*/librdmacm.so.1); mount --bind /dev/null $library");
    check_missing(&mut stage, "", "librdmacm.so.1 is not installed (package librdmacm1)");
    stage.run("umount $(readlink -f /usr/lib/*/librdmacm.so.1)");
    stage.run("mkdir /tmp/none; mount --bind /tmp/none /etc/libibverbs.d");
    check_missing(&mut stage, "", "package ibverbs-providers");
    stage.run("umount /etc/libibverbs.d");
    // Root may lock any amount, unless it lacks the capability.
    stage.run(
        "LOCKED=64 AROUND='setpriv --bounding-set=-ipc_lock'
         begin_server; until_listening
         mkdir -p /mnt/n
         options=$(options 4.1 rdma),port=20049
         timeout 5 mount -t nfs -o $options $SERVER:/export/t /mnt/n && exit 1
         until_state rdma_problem 'LimitMEMLOCK'
         attach tcp 4.2 tcp; umount /mnt/tcp; end_server",
    );
}
