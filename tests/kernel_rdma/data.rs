//! What is written is what is read, and goes by chunks: large files, files of sizes at which
//! something changes, long names, many names, long access control lists; and the operations of a
//! program build.

use std::process::Command;

use e2e::process::succeed;

use super::*;

/// Bytes of the large file.
const BIG: u64 = 256 << 20;
/// Names of the large directory.
const NAMES: u32 = 20_000;
/// Entries of the long access control list, in addition to those of owner, group, others and mask.
const ENTRIES: u32 = 200;
/// Versions, and how many connections each mount has.
const MOUNTS: [(&str, u32); 8] =
    [("3", 1), ("4.0", 1), ("4.1", 1), ("4.2", 1), ("3", 4), ("4.0", 4), ("4.1", 4), ("4.2", 4)];

/// What exists before the first mount: the large directory, and a file with a long access control
/// list.
fn plant(stage: &mut Stage) {
    let big = stage.guest.share().join("big");
    let mut command = Command::new("dd");
    command.args(["if=/dev/urandom", "bs=1M", "status=none"]);
    succeed(command.arg(format!("of={}", big.display())).arg(format!("count={}", BIG >> 20)));
    stage.run(&format!(
        "mkdir /mnt/t/many; cd /mnt/t/many
         seq -f 'a_name_that_is_rather_long_%05.0f' {NAMES} | xargs touch
         echo text >/mnt/t/list
         setfacl -m \"$(seq -f 'u:%.0f:r' -s, 5000 {})\" /mnt/t/list",
        4999 + ENTRIES
    ));
}

/// What a client does over one version.
fn script(version: &str, connections: u32) -> String {
    format!(
        r#"attach n {version} rdma nconnect={connections}
cd /mnt/n; mkdir w; cd w
cp /mnt/host/big big; forget
cmp /mnt/host/big big; cmp big /mnt/t/w/big
for size in 0 1 1023 1024 4095 4096 4097 70001; do
    head -c $size /mnt/host/big >/tmp/small; cp /tmp/small f$size; forget
    cmp /tmp/small f$size; cmp /tmp/small /mnt/t/w/f$size
done
target=$(printf 'a%.0s' $(seq 4000)); ln -s $target link; forget
[ "$(readlink link)" = "$target" ]; [ "$(readlink /mnt/t/w/link)" = "$target" ]
[ "$(ls ../many | wc -l)" = {NAMES} ]; [ "$(ls ../many | sort -u | wc -l)" = {NAMES} ]
case {version} in
4*) nfs4_getfacl ../list >/tmp/list
    [ "$(grep -c '^A::[0-9]*:' /tmp/list)" = {ENTRIES} ]
    cp ../list changed; nfs4_setfacl -S /tmp/list changed
    [ "$(getfacl -ncp /mnt/t/w/changed | grep -c '^user:[0-9]*:r--')" = {ENTRIES} ] ;;
esac
cd /; awk '/xprt:.*rdma/ {{ print "counts", $10, $13, $14, $15, $16, $17, $22 }}' /proc/self/mountstats
rm -r /mnt/n/w; umount /mnt/n"#
    )
}

/// The kernel's statistics of one connection (the `xprt` line of `mountstats`).
struct Counts {
    bad_xids: u64,
    read_chunks: u64,
    write_chunks: u64,
    reply_chunks: u64,
    written: u64,
    read: u64,
    bad_replies: u64,
}

fn counts(line: &str) -> Counts {
    let all: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a count")).collect();
    let [bad_xids, read_chunks, write_chunks, reply_chunks, written, read, bad_replies] = all[..]
    else {
        panic!("{line}");
    };
    Counts { bad_xids, read_chunks, write_chunks, reply_chunks, written, read, bad_replies }
}

fn check_transfers(kind: &str, mounts: &[(&str, u32)]) {
    let _turn = uml::turn();
    let mut stage = match Stage::over(kind, &format!("kernel-rdma-{kind}")) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-rdma", "{why}"),
    };
    plant(&mut stage);
    for (version, connections) in mounts {
        let said = stage.run(&script(version, *connections));
        let lines = said.lines().filter_map(|line| line.strip_prefix("counts "));
        let all: Vec<_> = lines.map(counts).collect();
        let what = format!("{kind}, version {version}: {said}");
        assert_eq!(all.len(), *connections as usize, "{what}");
        assert!(all.iter().all(|one| (one.bad_xids, one.bad_replies) == (0, 0)), "{what}");
        let sum = |of: fn(&Counts) -> u64| all.iter().map(of).sum::<u64>();
        assert!(sum(|one| one.read_chunks) > 0 && sum(|one| one.write_chunks) > 0, "{what}");
        assert!(sum(|one| one.reply_chunks) > 0, "the directory comes in reply chunks: {what}");
        let bulk = BIG / 100 * 99;
        assert!(sum(|one| one.written) >= bulk && sum(|one| one.read) >= bulk, "{what}");
        println!("{what}");
    }
    let left = stage.run("until_state rdma_connections 0; nfs_state rdma_connections");
    assert_eq!(left.trim(), "0");
}

#[test]
fn a_linux_client_speaks_to_us_over_siw() {
    check_transfers("siw", &MOUNTS);
}

#[test]
fn a_linux_client_speaks_to_us_over_rxe() {
    check_transfers("rxe", &MOUNTS);
}

#[test]
fn a_linux_client_builds_a_c_project_over_rdma() {
    let _turn = uml::turn();
    let mut stage = match Stage::over("siw", "kernel-rdma-build") {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-rdma", "{why}"),
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let share = stage.guest.share();
    std::fs::copy(here.join("uml/build.sh"), share.join("build.sh")).expect("the script");
    let archive = share.join("project.tar.gz");
    let project = here.join("fixtures/project");
    succeed(Command::new("tar").arg("czf").arg(archive).arg("-C").arg(project).arg("."));
    for version in ["3", "4.0", "4.1", "4.2"] {
        stage.run(&format!(
            "PORT=20049 PROTO=rdma EXPORT=/export/t VERSION={version}
             if [ $VERSION = 3 ]; then MOUNTPORT=2049; fi
             . /mnt/host/build.sh
             find /mnt/t -mindepth 1 -delete"
        ));
    }
}
