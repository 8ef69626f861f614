//! Makes the seeds of these targets: `cargo test -p wire write_smb_corpus -- --ignored`.

use std::path::PathBuf;

use crate::smb::create::{CloseRequest, Facts, FileId};
use crate::smb::dir::{Entries, Entry};
use crate::smb::negotiate::{Contexts, Dialect};
use crate::smb::ntlm::Challenge;

use super::*;

const FILE: FileId = FileId { persistent: 3, volatile: 3 };
const FACTS: Facts = Facts {
    created: 1,
    accessed: 2,
    written: 3,
    changed: 4,
    allocation: 4096,
    size: 6,
    attributes: 0x20,
};

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    std::fs::create_dir_all(&folder).expect("corpus folder");
    std::fs::write(folder.join(name), bytes).expect("seed");
}

/// A message with this body.
fn message(command: Command, flags: u32, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let header = Header {
        credit_charge: 1,
        status: 0,
        command,
        credits: 1,
        flags,
        next: 0,
        message_id: 3,
        id: 1 << 32,
        session_id: 5,
        signature: [0; 16],
    };
    let mut message = Vec::new();
    header.put(&mut message);
    body(&mut message);
    message
}

fn negotiations() {
    let contexts =
        Contexts { salt: Some(vec![1; 32]), ciphers: Some(vec![2, 1]), signings: Some(vec![2]) };
    let request = negotiate::Request {
        security_mode: 1,
        capabilities: 0x7f,
        client_guid: [1; 16],
        dialects: vec![Dialect::SMB210, Dialect::SMB300, Dialect::SMB311],
        contexts: contexts.clone(),
    };
    let response = negotiate::Response {
        security_mode: 3,
        dialect: Dialect::SMB311,
        server_guid: [2; 16],
        capabilities: 4,
        max_transact: 1 << 20,
        max_read: 1 << 20,
        max_write: 1 << 20,
        system_time: 1,
        blob: spnego::offer(),
        contexts,
    };
    let (one, two) = (Command::NEGOTIATE, flags::RESPONSE);
    write("smb_message", "negotiate", &message(one, 0, |out| request.put(out, 0)));
    write("smb_message", "negotiated", &message(one, two, |out| response.put(out, 0)));
}

fn requests() {
    let name = utf16::encode("folder\\file");
    let mut list = Vec::new();
    let v2 = Some(lease::LeaseV2 { parent: [2; 16], epoch: 1, reserved: 0 });
    let lease = lease::Lease { key: [1; 16], state: 7, flags: 0, duration: 0, v2 };
    let mut asked = Vec::new();
    lease.put(&mut asked);
    let maximal = contexts::Context { name: b"MxAc", data: &[] };
    let asked = contexts::Context { name: contexts::LEASE, data: &asked };
    contexts::put(&[maximal, asked], &mut list);
    let ack = lease::LeaseAck { reserved: 0, flags: 0, key: [1; 16], state: 3, duration: 0 };
    let level = lease::OplockBreak { level: 1, reserved: 0, reserved2: 0, file: FILE };
    let open = create::Request {
        oplock: 0,
        impersonation: 2,
        access: create::access::GENERIC_READ,
        attributes: 0,
        share: 7,
        disposition: 1,
        options: 0x40,
        name: &name,
        contexts: &list,
    };
    let read = io::ReadRequest { length: 4096, offset: 0, file: FILE, minimum: 0 };
    let data = io::WriteRequest { offset: 0, file: FILE, flags: 0, data: b"some data" };
    let query = dir::Request { level: 37, flags: 0, file: FILE, pattern: b"*\0", output_max: 999 };
    let lock = lock::Request {
        lock_sequence: 0x21,
        file: FILE,
        locks: vec![lock::Element { offset: 0, length: 1, flags: 2, reserved: 0 }],
    };
    let filter = notify::filter::NAMES;
    let notify =
        notify::ChangeNotify { flags: 1, output_max: 4_096, file: FILE, filter, reserved: 0 };
    let control =
        ioctl::Request { code: 0x0014_0204, file: FILE, output_max: 24, flags: 1, input: &[1; 28] };
    let close = CloseRequest { flags: 1, reserved: 0, file: FILE };
    let mut whole = message(Command::CREATE, 0, |out| open.put(out, 0));
    crate::smb::codec::pad(&mut whole, 0, 8);
    let next = whole.len() as u32;
    crate::smb::codec::patch(&mut whole, 20, &next.to_le_bytes());
    whole.extend(message(Command::CLOSE, flags::RELATED, |out| close.put_body(out)));
    write("smb_message", "compound", &whole);
    for (name, bytes) in [
        ("read", message(Command::READ, 0, |out| read.put(out))),
        ("write", message(Command::WRITE, 0, |out| data.put(out))),
        ("list", message(Command::QUERY_DIRECTORY, 0, |out| query.put(out))),
        ("lock", message(Command::LOCK, 0, |out| lock.put(out))),
        ("lease_ack", message(Command::OPLOCK_BREAK, 0, |out| ack.put_body(out))),
        ("notify", message(Command::CHANGE_NOTIFY, 0, |out| notify.put_body(out))),
        ("oplock_ack", message(Command::OPLOCK_BREAK, 0, |out| level.put_body(out))),
        ("ioctl", message(Command::IOCTL, 0, |out| control.put(out))),
    ] {
        write("smb_message", name, &bytes);
    }
}

fn responses() {
    let opened = create::Response { oplock: 0, action: 1, facts: FACTS, file: FILE, contexts: &[] };
    let mut entries = Entries::new(Level::IdBoth, 1000);
    for name in ["one", "two"] {
        assert!(entries.add(&Entry { facts: FACTS, fileid: 7, name: utf16::encode(name) }));
    }
    let listed = entries.finish();
    for (name, command, body) in [
        ("opened", Command::CREATE, {
            let mut out = vec![0; HEADER];
            opened.put(&mut out);
            out
        }),
        ("listed", Command::QUERY_DIRECTORY, {
            let mut out = vec![0; HEADER];
            dir::put_output(&mut out, &listed);
            out
        }),
        ("broken", Command::OPLOCK_BREAK, {
            let (key, hints) = ([1; 16], [0; 12]);
            let broken = lease::LeaseBreak { epoch: 2, flags: 1, key, from: 7, to: 3, hints };
            let mut out = vec![0; HEADER];
            broken.put_body(&mut out);
            out
        }),
    ] {
        let bytes = message(command, flags::RESPONSE, |out| {
            out.extend_from_slice(&body[HEADER..]);
        });
        write("smb_message", name, &bytes);
    }
}

/// The data of a lease of each version, with all that there is to cache.
fn lease_data() -> [Vec<u8>; 2] {
    let v2 = lease::LeaseV2 { parent: [3; 16], epoch: 5, reserved: 0 };
    [None, Some(v2)].map(|v2| {
        let (mut data, flags) = (Vec::new(), if v2.is_some() { 4 } else { 0 });
        lease::Lease { key: [2; 16], state: 7, flags, duration: 0, v2 }.put(&mut data);
        data
    })
}

fn create_contexts() {
    fn of<'a>(name: &'a [u8], data: &'a [u8]) -> contexts::Context<'a> {
        contexts::Context { name, data }
    }
    let [first, second] = lease_data();
    let (first, second) = (of(contexts::LEASE, &first), of(contexts::LEASE, &second));
    let (maximal, on_disk) = (of(contexts::MAXIMAL_ACCESS, b""), of(contexts::ON_DISK_ID, b""));
    let allocation = of(contexts::ALLOCATION, &[0, 16, 0, 0, 0, 0, 0, 0]);
    let snapshot = of(contexts::SNAPSHOT, &[1; 8]);
    let instance = of(contexts::APP_INSTANCE, &[5; 20]);
    let version = of(contexts::APP_VERSION, &[6; 24]);
    for (name, list) in [
        ("durable", vec![of(contexts::DURABLE, &[0; 16]), maximal]),
        ("durable_v2", vec![of(contexts::DURABLE_V2, &[1; 32]), maximal]),
        ("reconnect", vec![of(contexts::DURABLE_RECONNECT, &[3; 16])]),
        ("reconnect_v2", vec![of(contexts::DURABLE_V2_RECONNECT, &[4; 36])]),
        ("application", vec![instance, version]),
        ("one", vec![maximal]),
        ("two", vec![maximal, on_disk]),
        ("data", vec![allocation, maximal]),
        ("snapshot", vec![on_disk, snapshot, allocation]),
        ("lease", vec![first, maximal]),
        ("lease_v2", vec![second, of(contexts::DURABLE_V2, &[1; 32])]),
        ("lease_reconnect", vec![of(contexts::DURABLE_V2_RECONNECT, &[4; 36]), second]),
    ] {
        let mut bytes = Vec::new();
        contexts::put(&list, &mut bytes);
        write("smb_contexts", name, &bytes);
    }
}

fn sign_ins() {
    let challenge = Challenge::new(ntlm::negotiate::SIGN, [1; 8], "server", 9);
    let (response, _) = ntlm::respond(&[7; 16], &[1; 8], (&[2; 8], 9, &challenge.info));
    let user = utf16::encode("alice");
    let auth = ntlm::Authenticate {
        lm: &[],
        nt: &response,
        domain: &[],
        user: &user,
        workstation: &[],
        session_key: &[3; 16],
        flags: ntlm::negotiate::UNICODE | ntlm::negotiate::KEY_EXCHANGE,
        mic: None,
    };
    write("smb_sign_in", "negotiate", &spnego::begin(&ntlm::put_negotiate(1)));
    write("smb_sign_in", "challenge", &challenge.encode());
    write("smb_sign_in", "authenticate", &spnego::next_token(&auth.encode(), Some(&[4; 16])));
    write("smb_sign_in", "bare", &auth.encode());
}

#[test]
#[ignore = "writes fuzz/corpus: run it after adding a message"]
fn write_smb_corpus() {
    negotiations();
    requests();
    responses();
    sign_ins();
    create_contexts();
    let (bind, list) = (rpc::bind(1), rpc::list_shares(2, "\\\\server"));
    let mut info = list.clone();
    crate::smb::codec::patch(&mut info, 22, &21u16.to_le_bytes());
    let mut unknown = list.clone();
    crate::smb::codec::patch(&mut unknown, 22, &99u16.to_le_bytes());
    for (name, pdu) in [("bind", bind), ("list", list), ("info", info), ("unknown", unknown)] {
        write("smb_rpc", name, &pdu);
    }
    for (name, mode) in [("file", 0o644), ("script", 0o755), ("folder", 0o1777), ("none", 0)] {
        let mut bytes = Vec::new();
        Descriptor::of_mode(1000, 100, mode, name == "folder").put(&mut bytes);
        write("smb_descriptor", name, &bytes);
    }
}
