//! What statistics call operations and status codes (`schema/`) is what their protocols call them,
//! by the numbers that the protocols' folders count them under.

use probe::labels;
use probe::op::Protocol;
use wire::smb::header::Command;
use wire::smb::status::NtStatus;
use wire::{ftp, http, mount3, nlm4, nsm, sftp};

fn named(protocol: Protocol, op: u8, name: &str) {
    assert_eq!(labels::op_name(protocol, op), name.to_lowercase(), "{protocol:?} {op}");
}

fn called(protocol: Protocol, status: u32, name: &str) {
    assert_eq!(labels::status_name(protocol, status as u16), name, "{protocol:?}");
}

#[test]
fn procedures_of_mount_and_nlm() {
    for proc in mount3::Proc::ALL {
        named(Protocol::Mount3, proc.0 as u8, &proc.to_string());
    }
    for status in mount3::Mountstat3::ALL {
        called(Protocol::Mount3, status.0, &status.to_string());
    }
    for proc in nlm4::Proc::ALL {
        named(Protocol::Nlm, proc.0 as u8, &proc.to_string());
    }
    for proc in nsm::Proc::ALL {
        named(Protocol::Nlm, crate::nlm::nsm::OPS_AT + proc.0 as u8, &proc.to_string());
    }
    for status in nlm4::Nlm4Stat::ALL {
        called(Protocol::Nlm, status.0, &status.to_string());
    }
}

#[test]
fn commands_and_methods() {
    for verb in ftp::verb::Verb::ALL {
        named(Protocol::Ftp, verb.number(), verb.name());
    }
    assert_eq!(labels::ops(Protocol::Ftp).len(), 1 + ftp::verb::Verb::ALL.len());
    for method in http::fields::Method::ALL {
        named(Protocol::Http, *method as u8, method.name());
    }
    assert_eq!(labels::ops(Protocol::Http).len(), http::fields::Method::ALL.len());
}

#[test]
fn requests_of_sftp() {
    let first = crate::sftp::EXTENSIONS;
    for (op, (name, _)) in (first..).zip(sftp::Extended::KNOWN) {
        named(Protocol::Sftp, op, name.split('@').next().unwrap_or_default());
    }
    let known = usize::from(first) + sftp::Extended::KNOWN.len();
    let rest = labels::ops(Protocol::Sftp).get(known..);
    assert_eq!(rest, Some(&["extended".to_owned(), "connect".to_owned()][..]));
    for status in sftp::StatusCode::ALL {
        called(Protocol::Sftp, status.0, &status.to_string());
    }
}

#[test]
fn commands_of_smb() {
    for (op, name) in (0..).zip(Command::NAMES) {
        named(Protocol::Smb, op, name);
    }
    assert_eq!(labels::ops(Protocol::Smb).len(), Command::NAMES.len() + 1);
    for (number, name) in NtStatus::ALL {
        let recorded = crate::smb::recorded(NtStatus(*number));
        called(Protocol::Smb, recorded.into(), name);
    }
}

#[test]
fn commands_of_scsi() {
    use wire::scsi::opcodes::COMMANDS;
    let all = crate::iscsi::ops::all();
    assert_eq!(labels::ops(Protocol::Iscsi).len(), 1 + all.len());
    for row in COMMANDS.iter().filter(|row| !row.is_type2_only) {
        let number = crate::iscsi::ops::number(row.opcode());
        assert_ne!(number, 0, "{}", row.name);
        if row.action.is_none() {
            named(Protocol::Iscsi, number, row.name);
        }
    }
    called(Protocol::Iscsi, 0x0e02, "MISCOMPARE");
}

#[test]
fn operations_of_dsync() {
    use crate::sftp::dsync::count::Op;
    let all = [
        Op::List,
        Op::Look,
        Op::Open,
        Op::Seek,
        Op::Read,
        Op::Write,
        Op::Create,
        Op::SetAttr,
        Op::SetXattr,
        Op::Mkdir,
        Op::Symlink,
        Op::Mknod,
        Op::Link,
        Op::Rename,
        Op::Remove,
        Op::Flush,
        Op::Clone,
    ];
    for op in all {
        named(Protocol::Dsync, op as u8, &format!("{op:?}"));
    }
    assert_eq!(labels::ops(Protocol::Dsync).len(), all.len());
}
