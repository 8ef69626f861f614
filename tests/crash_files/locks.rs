//! The locks of WebDAV: granted, refreshed and removed on disk before the response; each flush of
//! their file left out is noticed; a file that has grown is rewritten and loses nothing.

use std::fs;
use std::process::Command;

use e2e::process::succeed;
use e2e::server::binary;
use e2e::{http, skip};
use sim::forget::{self, ForgetFs};

use super::cases::USER;
use super::world::{World, on_disk};

/// Most locks that are granted and removed until their file is rewritten.
const CYCLES: usize = 600;

fn body(owner: &str) -> String {
    format!(
        "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope><locktype><write/></locktype>\
         <owner>{owner}</owner></lockinfo>"
    )
}

impl World {
    fn ask(&self, line: &str, headers: &[&str], body: &str) -> (u16, String) {
        let at = self.server.as_ref().expect("a server").at(80);
        http::ask(at, USER, line, headers, body.as_bytes())
    }

    /// Takes a lock; its token.
    fn lock(&self, name: &str, owner: &str) -> String {
        let headers = ["Timeout: Second-3600", "Depth: 0"];
        let (code, answer) = self.ask(&format!("LOCK /share/{name}"), &headers, &body(owner));
        assert!(code == 200 || code == 201, "{answer}");
        let token = http::field(&answer, "lock-token").expect("a token");
        token.trim_matches(['<', '>']).to_owned()
    }

    fn unlock(&self, name: &str, token: &str) {
        let token = format!("Lock-Token: <{token}>");
        assert_eq!(self.ask(&format!("UNLOCK /share/{name}"), &[&token], "").0, 204);
    }

    /// The output of `plimsoll inspect` for the file that a power cut would leave.
    fn inspected(&self, image: &ForgetFs) -> String {
        let Some(left) = image.look("state/dav-locks") else { return String::new() };
        let path = self.scratch.folder("left", None).join("dav-locks");
        fs::write(&path, left.data).expect("a copy");
        let mut command = Command::new(binary());
        command.arg("inspect").arg(path).arg("--json");
        String::from_utf8(succeed(&mut command)).expect("text")
    }
}

/// Takes, refreshes and ends locks; the first thing that a power cut right after the answer would
/// have undone.
fn undone(world: &mut World) -> Option<&'static str> {
    world.start();
    let kept = |world: &World, token: &str| world.inspected(&world.mounted.image()).contains(token);
    let token = world.lock("f", "anna");
    if !kept(world, &token) {
        return Some("a lock that was given");
    }
    let with = format!("If: (<{token}>)");
    let (code, _) = world.ask("LOCK /share/f", &[&with, "Timeout: Second-7000"], "");
    assert_eq!(code, 200);
    if !world.inspected(&world.mounted.image()).contains("7000") {
        return Some("a refresh");
    }
    world.unlock("f", &token);
    if kept(world, &token) {
        return Some("the end of a lock");
    }
    let token = world.lock("f", "anna");
    // Killed without a power cut: the file is still complete, and the next start rewrites it.
    drop(world.server.take());
    on_disk(world.state());
    world.start();
    if !kept(world, &token) {
        return Some("a lock of before, at the next start");
    }
    if let Some(lost) = grown(world) {
        return Some(lost);
    }
    kept_by_the_next(world, &token)
}

/// Lets the file grow until it is rewritten.
fn grown(world: &World) -> Option<&'static str> {
    let (owner, file) = ("x".repeat(4_000), world.state().join("dav-locks"));
    let length = || fs::metadata(&file).expect("the file").len();
    let mut longest = 0;
    for _ in 0..CYCLES {
        let token = world.lock("g", &owner);
        world.unlock("g", &token);
        if length() < longest {
            let token = world.lock("h", "anna");
            let lost = !world.inspected(&world.mounted.image()).contains(&token);
            return lost.then_some("a lock after the file was written anew");
        }
        longest = length();
    }
    panic!("the file grows for ever: {longest} bytes");
}

/// A real cut: the lock binds, and its holder has it.
fn kept_by_the_next(world: &mut World, token: &str) -> Option<&'static str> {
    world.power_cut();
    world.start();
    if world.ask("PUT /share/f", &[], "x").0 != 423 {
        return Some("a lock, after the cut");
    }
    assert_eq!(world.ask("PUT /share/f", &[&format!("If: (<{token}>)")], "x").0, 204);
    None
}

#[test]
fn locks_outlive_a_power_cut() {
    if let Err(why) = forget::available() {
        skip!("crash-dav-locks", "{why}");
    }
    assert_eq!(undone(&mut World::new(None, true)), None);
}

#[test]
fn leaving_out_any_one_flush_of_locks_is_noticed() {
    if let Err(why) = forget::available() {
        skip!("crash-dav-locks-each-flush", "{why}");
    }
    for site in ["journal", "journal-whole", "journal-name"] {
        match undone(&mut World::new(Some(site), true)) {
            Some(what) => println!("without {site}: {what} was lost"),
            None => panic!("nobody noticed that the flush {site} was left out"),
        }
    }
}
