//! Rows agree with each other, and names lead back to rows.

use std::collections::BTreeSet;

use super::*;

#[test]
fn numbers_and_ids_are_given_once_and_lead_back() {
    for protocol in Protocol::ALL {
        assert_eq!(Protocol::from_u8(protocol as u8), Some(protocol));
        assert_eq!(Protocol::by_id(protocol.id()), Some(protocol));
        let own = format!("group = \"{}\"", protocol.id());
        assert!(protocol.schema().lines().any(|line| line == own), "{own}");
    }
    for (at, service) in Service::ALL.into_iter().enumerate() {
        assert_eq!(service.index(), at, "tables are indexed by it");
        assert_eq!(service.protocol().service(), service);
        assert!(!service.ports().is_empty());
    }
    for scheme in Scheme::ALL {
        assert_eq!(Scheme::by_name(scheme.name()), Some(scheme));
        assert!(Scheme::by_name(scheme.listener()).is_some_and(|at| at.listener() == at.name()));
        assert!(scheme.plain().is_none_or(|plain| plain.protocol() == scheme.protocol()));
    }
    let numbers: BTreeSet<u8> = Protocol::ALL.map(|protocol| protocol as u8).into();
    assert_eq!(numbers.len(), Protocol::ALL.len());
    assert_eq!(Protocol::from_u8(0), None, "a record without a protocol");
}

#[test]
fn no_port_is_beyond_the_highest() {
    let all = Service::ALL.into_iter().flat_map(|service| service.ports());
    assert_eq!(all.map(|port| port.number).max(), Some(Port::highest().number));
}

#[test]
fn lists_are_selected_from_the_rows() {
    use Service::{Ftp, Http, Nfs, Sftp, Smb};
    assert_eq!(Service::SHARING, [Nfs, Ftp, Sftp, Http, Smb]);
    assert_eq!(Service::SIGN_IN, [Ftp, Sftp, Http, Smb]);
    let logged = Scheme::LOGGED.map(Scheme::name);
    assert_eq!(logged, ["ftp", "ftps", "sftp", "http", "https", "webdav"]);
    assert_eq!(Scheme::LOGGED_CHOICES.map(|(name, _)| name), logged);
    assert_eq!(Service::Ftp.exceptions(), "ftp_exceptions");
    assert_eq!(Service::Ftp.sign_ins(), ["ftp.logins", "ftp.failures"]);
}
