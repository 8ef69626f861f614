//! The commands of docs/howto/pools.md, as printed but for the names of disks and of the pool, in
//! the order of the page; what happens to disks between them happens to loop devices.

use std::process::Command;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::loops::tool;
use e2e::pool_disk::{done, value, wait_online};
use e2e::server::{Server, binary};
use e2e::{patience, process, skip};
use serde_json::{Value, json};

use crate::pools::{Bed, POOLS};

const PAGE: &str = include_str!("../docs/howto/pools.md");
/// How long a command may take.
const COMMAND: Duration = patience(60);
/// How long a task may take.
const TASK: Duration = patience(240);

/// The commands of the page: lines of blocks, and the ones in its sentences.
fn commands() -> Vec<&'static str> {
    let blocks = PAGE.split("```\n").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with("plimsoll "));
    lines.collect()
}

/// A server, its disks and its pool while the page is gone through.
struct Walk {
    bed: Bed,
    /// Its disks, also when one of them is lost.
    disks: [String; 4],
    pool: String,
    server: Option<Server>,
    api: Api,
}

impl Walk {
    fn node(&self) -> String {
        format!("{POOLS}/{}", self.pool)
    }

    /// Runs a line of the page; what it printed.
    fn run(&self, line: &str) -> String {
        let names = [
            ("wwn-0x5000c50012345678", self.disks[0].clone()),
            ("wwn-0x5000c50012345679", self.disks[1].clone()),
            ("wwn-0x5000c5001234567a", self.disks[2].clone()),
            ("wwn-0x5000c5001234567b", self.disks[3].clone()),
            // Loop devices have no serial numbers.
            ("Z1Z00001", "1".to_owned()),
            ("Z1Z00002", "2".to_owned()),
            ("tank", self.pool.clone()),
        ];
        let line = names.iter().fold(line.to_owned(), |line, (name, own)| line.replace(name, own));
        let folder = binary().parent().expect("its folder").display().to_string();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-c", &line]).env("PATH", path);
        let output = process::run(&mut command, COMMAND);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {printed}{errors}");
        printed
    }

    /// Waits until the pool has no task and this state.
    fn until(&self, state: &str) {
        wait_for(state, TASK, || {
            let is_idle = value(&self.api, &self.node(), "task") == Value::Null;
            (is_idle && value(&self.api, &self.node(), "state") == state).then_some(())
        });
    }

    /// A disk of the pool fails while the machine is off.
    fn lose_a_disk(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Its entry among the servers of this machine goes with it.
            server.stop();
        }
        let at = format!("/run/plimsoll-pools/{}", self.pool);
        wait_for("the pool is not in use", TASK, || {
            tool(Command::new("umount").arg(&at)).ok().map(drop)
        });
        self.bed.detach(1);
        let (server, api) = self.bed.start();
        (self.server, self.api) = (Some(server), api);
        assert_eq!(value(&self.api, &self.node(), "state"), "failed");
    }

    /// What must be so before a line.
    fn prepare(&mut self, line: &str) {
        let again =
            "plimsoll cli -c 'storage pools tank create_snapshot share=projects name=monday'";
        if line.contains("maintenance problems show") {
            self.lose_a_disk();
        } else if line.contains("replace member=") {
            wait_online(&self.api, "projects");
        } else if line.contains("@monday rollback") {
            self.run(again);
        } else if line.contains("export_pool") {
            for share in ["projects", "projects-test"] {
                self.run(&format!("plimsoll cli -c 'shares default destroy {share} --yes'"));
            }
        }
    }

    /// What must be so after a line; `printed` is what it printed.
    fn check(&self, line: &str, printed: &str) {
        let is = |words: &str| line.contains(words);
        let has = |words: &str| assert!(printed.contains(words), "{line}: {printed}");
        match () {
            () if is("disks show") && !is("tank") => has("loop"),
            () if is("create projects") => wait_online(&self.api, "projects"),
            () if is("tank show") => has("healthy"),
            () if is("scrub'") || is("replace member=") || is("remove member=") => {
                self.until("healthy");
            }
            () if is("problems show") => has(&format!("pool-{}", self.pool)),
            () if is("mount degraded") => self.until("degraded"),
            () if is("snapshots show") => has("projects@monday"),
            () if is("clone name") => wait_online(&self.api, "projects-test"),
            () if is("pools show") => has(&self.pool),
            () => {}
        }
    }
}

#[test]
fn the_commands_of_the_page_do_what_it_has() {
    let bed = match Bed::new(&[512, 512, 512, 512]) {
        Ok(bed) => bed,
        Err(why) => skip!("pools-howto", "{why}"),
    };
    let (server, api) = bed.start();
    let pool = format!("tank{}", std::process::id());
    let disks = [0, 1, 2, 3].map(|at| bed.disk(at));
    let mut walk = Walk { bed, disks, pool, server: Some(server), api };
    let (zfs, others): (Vec<_>, Vec<_>) = commands().into_iter().partition(|line| {
        line.contains("kind=zfs") || line.contains("log_mirror") || line.contains("offline member")
    });
    assert!(zfs.len() == 3 && others.len() >= 28, "{} and {}", zfs.len(), others.len());
    for line in others {
        walk.prepare(line);
        let printed = walk.run(line);
        walk.check(line, &printed);
    }
    assert_eq!(value(&walk.api, &walk.node(), "state"), Value::Null, "its data is destroyed");
    // In a sentence of the page: accounting of a pool that has shares.
    let disks = json!([walk.disks[0], walk.disks[2]]);
    let create = json!({ "name": walk.pool, "profile": "mirror", "disks": disks });
    done(&walk.api, POOLS, "create_pool", &create);
    let line = PAGE.split('`').find(|part| part.contains("account_snapshots'")).expect("there");
    walk.run(line);
}
