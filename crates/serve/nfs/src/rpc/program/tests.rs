//! What statistics call operations and statuses is what their RFCs call them.

use probe::labels;
use probe::op::Protocol;
use wire::nfs3::{Nfsstat3, Proc};
use wire::nfs4::{Nfsstat4, Opnum4};

#[test]
fn operations_have_the_names_of_their_rfcs() {
    for proc in Proc::ALL {
        assert_eq!(labels::op_name(Protocol::Nfs3, proc.0 as u8), proc.to_string());
    }
    for op in Opnum4::ALL.iter().filter(|op| **op != Opnum4::ILLEGAL) {
        assert_eq!(labels::op_name(Protocol::Nfs4, op.0 as u8), op.to_string());
    }
}

#[test]
fn statuses_have_the_names_of_their_rfcs() {
    for status in Nfsstat3::ALL {
        assert_eq!(labels::status_name(Protocol::Nfs3, status.0 as u16), status.to_string());
    }
    for status in Nfsstat4::ALL {
        assert_eq!(labels::status_name(Protocol::Nfs4, status.0 as u16), status.to_string());
    }
}
