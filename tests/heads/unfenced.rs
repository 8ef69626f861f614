//! A file system that does not keep a former owner from writing: FUSE, which the administrator has
//! found fit otherwise. What is known of the former owner decides, and what is set.

use std::fs;
use std::path::Path;

use e2e::scratch::Scratch;
use e2e::{is_root, process, skip};
use serde_json::{Value, json};
use sim::forget::available;
use sim::through::Through;

use super::cluster::{ACCOUNTS, Cluster, FileSystem, LEFT, PROJECTS, RIGHT, Setup};

/// A file system of FUSE with the directory below it.
struct Fuse {
    mount: Through,
    _below: Scratch,
}

impl FileSystem for Fuse {
    fn path(&self) -> &Path {
        self.mount.path()
    }

    fn crash(&mut self) {
        panic!("this one loses nothing");
    }
}

fn start(resource_keys: &'static str) -> Result<Cluster, String> {
    available().map_err(|e| e.to_string())?;
    if !is_root() {
        return Err("network namespaces and mounts need root".to_owned());
    }
    let below = Scratch::new("heads-unfenced");
    let (data, at) = (below.folder("data", None), below.folder("mount", None));
    let mount = Through::mount(&data, &at, "host:/data").map_err(|e| e.to_string())?;
    let head_keys = "unchecked_file_system = true";
    let setup = Setup { head_keys, resource_keys, ..Setup::default() };
    Cluster::set_up(Box::new(Fuse { mount, _below: below }), &[ACCOUNTS, PROJECTS], &setup)
}

/// Kills the owner with its server, and makes its machine another one than that of its successor.
fn lose(cluster: &mut Cluster, head: usize) {
    let servers = [ACCOUNTS, PROJECTS]
        .map(|resource| cluster.observe(resource, head).filter(|(state, _)| state == "owner"));
    let servers: Vec<u32> = [ACCOUNTS, PROJECTS]
        .into_iter()
        .zip(servers)
        .filter(|(_, server)| server.is_some())
        .map(|(resource, _)| cluster.process(resource, head))
        .collect();
    cluster.kill(head);
    for server in servers {
        process::signal(server, libc::SIGKILL);
        cluster.wait_until_gone(server);
    }
    let owner = cluster.state(ACCOUNTS).join("owner");
    let text = fs::read_to_string(&owner).expect("the file");
    let mut content: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(content["released"], false);
    content["boot"] = json!("another machine");
    fs::write(owner, format!("{content:<511}\n")).expect("written");
}

#[test]
fn a_former_owner_that_may_write_is_not_followed_until_it_is_known_to_be_down() {
    let mut cluster = match start("") {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-unfenced", "{why}"),
    };
    // Its end is known: planned, and of a server alone.
    cluster.command(RIGHT, &["failback", PROJECTS.name]);
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    cluster.command(LEFT, &["failback", ACCOUNTS.name]);
    let server = cluster.process(ACCOUNTS, LEFT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_until_gone(server);
    cluster.wait_for_some_owner(ACCOUNTS);
    cluster.command(LEFT, &["failback", ACCOUNTS.name]);

    lose(&mut cluster, LEFT);
    wait_for_failure(&cluster);
    assert!(cluster.process(PROJECTS, RIGHT) > 0, "the other resource is served");

    // The former owner itself knows that its server is gone.
    cluster.start_head(LEFT);
    cluster.wait_for_owner(ACCOUNTS, LEFT);

    lose(&mut cluster, LEFT);
    wait_for_failure(&cluster);
    let refused = cluster.refused(RIGHT, &["takeover", ACCOUNTS.name]);
    assert!(refused.contains("nothing keeps the former owner left from writing"), "{refused}");
    let confirm = ["takeover", ACCOUNTS.name, "--unfenced"];
    cluster.command(RIGHT, &confirm);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    let refused = cluster.refused(RIGHT, &confirm);
    assert!(refused.contains("owns accounts already"), "{refused}");
    cluster.start_head(LEFT);
    cluster.wait_for_member(RIGHT, LEFT);
    cluster.end();
}

/// Waits until the other head does not try again, with the reason; without an owner that is a
/// problem and an alert.
fn wait_for_failure(cluster: &Cluster) {
    cluster.wait("it is not tried again", || {
        let failed = cluster.observe(ACCOUNTS, RIGHT).is_some_and(|(state, _)| state == "failed");
        let (why, _) = cluster.reasons(ACCOUNTS, RIGHT);
        failed && why.contains("nothing keeps the former owner left from writing")
    });
}

#[test]
fn a_takeover_without_a_fence_is_done_if_it_is_set() {
    let mut cluster = match start("unfenced_takeover = true") {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-unfenced", "{why}"),
    };
    cluster.command(RIGHT, &["failback", PROJECTS.name]);
    lose(&mut cluster, LEFT);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    cluster.start_head(LEFT);
    cluster.wait_for_member(RIGHT, LEFT);
    cluster.end();
}
