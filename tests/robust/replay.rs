//! A call that is sent again over another connection is answered again and not done again.

use e2e::api::{self, Api};
use e2e::nfs3::Client;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use wire::nfs3::{CreateHow, DiropArgs, Fh3, Filename3, Nfsstat3, Proc, RemoveArgs, RenameArgs};

use super::mode;

#[test]
fn a_repeated_removal_over_a_new_connection_is_not_done_twice() {
    let scratch = Scratch::new("replay");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let started = api::now();
    let server = Server::start(&Options::new(&dir, &state));
    let (api, from) = (Api::new(&state), api::now());
    let (mut client, root) = server.mount(0, 0);
    let how = CreateHow::Guarded(mode(0o644));
    client.create(&root, "file", how).expect("a file");
    let at = |name: &'static str| DiropArgs { dir: Fh3(&root), name: Filename3(name.as_bytes()) };
    let remove = client.nfs_record(Proc::REMOVE, &RemoveArgs { object: at("file") });
    client.send(&remove).expect("sent");
    let first = client.receive().expect("an answer");
    drop(client);

    // Its name is in use again before the answer, lost with the connection, is asked for again.
    let (mut other, _) = server.mount(0, 0);
    other.create(&root, "file", how).expect("a new file");
    let rename = other.nfs_record(Proc::RENAME, &RenameArgs { from: at("file"), to: at("kept") });
    other.send(&rename).expect("sent");
    let renamed = other.receive().expect("an answer");
    other.create(&root, "file", how).expect("another new file");
    drop(other);

    let mut again = Client::connect(server.nfs(), 0, 0).expect("a connection");
    for (record, answer) in [(&remove, &first), (&rename, &renamed), (&remove, &first)] {
        again.send(record).expect("sent");
        assert_eq!(&again.receive().expect("an answer"), answer, "byte for byte");
    }
    for name in ["file", "kept"] {
        again.lookup(&root, name).unwrap_or_else(|e| panic!("{name} is gone: {e:?}"));
    }
    // With a number of its own the same call is another one.
    again.remove(&root, "file", false).expect("removed");
    let gone = again.lookup(&root, "file").map(|made| made.handle);
    assert_eq!(gone, Err(e2e::nfs3::Failure::Status(Nfsstat3::NOENT)));

    let to = api::now() + 1;
    api.wait_for_second(to);
    assert_eq!(api.count("nfs3.replays", (from, to)), 3);
    assert_eq!(api.count("nfs3.ops[op=remove]", (from, to)), 2);
    assert_eq!(api.count("nfs3.ops[op=rename]", (from, to)), 1);
    api.wait_counter("server.drc_replays", started, 3);
}
