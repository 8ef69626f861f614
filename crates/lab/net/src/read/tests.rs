//! Profiles: what is read, what is refused, and with which line and flowop.

use super::{Variables, read};
use crate::profile::{Op, Profile, Protocol, Size};

fn with(options: &str, kind: &str) -> String {
    format!(
        "<profile name=\"p\">\n<group nthreads=\"2\">\n<transaction>\n\
         <flowop type=\"connect\" options=\"remotehost=h protocol=tcp\"/>\n\
         <flowop type=\"{kind}\" options=\"{options}\"/>\n</transaction>\n</group>\n</profile>"
    )
}

fn profile(text: &str) -> Profile {
    read("p.xml", text, &Variables::default()).expect("profile")
}

fn fault(text: &str) -> String {
    read("p.xml", text, &Variables::default()).expect_err(text).to_string()
}

#[test]
fn options_of_flowops_are_read() {
    let read = profile(&with("count=3 size=1.5K canfail timeout=20ms", "write"));
    let flowop = &read.groups[0].transactions[0].flowops[1];
    assert_eq!((flowop.count, flowop.canfail), (3, true));
    assert_eq!(flowop.timeout_ns, Some(20_000_000));
    let Op::Write(transfer) = &flowop.op else { panic!("{flowop:?}") };
    assert_eq!(transfer.size, Size::fixed(1536));
    let read = profile(&with("size=rand(4k, 8k)", "recv"));
    let Op::Read(transfer) = &read.groups[0].transactions[0].flowops[1].op else { panic!() };
    assert_eq!(transfer.size, Size { min: 4096, max: 8192 });
    let read = profile(&with("dir=. nfiles=10 size=4k", "sendfilev"));
    let Op::Sendfile(transfer) = &read.groups[0].transactions[0].flowops[1].op else { panic!() };
    assert_eq!(transfer.size, Size::fixed(40_960));
}

#[test]
fn what_is_not_supported_is_refused_with_line_and_flowop() {
    for (kind, options, what) in [
        ("connect", "remotehost=h protocol=sctp", "protocol=sctp is not supported"),
        ("connect", "remotehost=h protocol=vsock", "protocol=vsock is not supported"),
        ("connect", "remotehost=h protocol=rds", "protocol=rds is not supported"),
        ("connect", "remotehost=h protocol=udapl", "protocol=udapl is not supported"),
        ("connect", "remotehost=h protocol=ssl engine=pkcs11", "protocol=ssl is not supported"),
        ("connect", "remotehost=h protocol=tcp engine=pkcs11", "TLS engines"),
        ("connect", "remotehost=h protocol=tcp encaps=9899", "encapsulation"),
        ("connect", "remotehost=h", "has no protocol"),
        ("wait", "count=32 waittype=dequeue", "asynchronous"),
        ("write", "async size=1", "asynchronous"),
        ("write", "size=0", "size=0, expected 1 to"),
        ("write", "", "has no size"),
        ("write", "size=rand(9,1)", "more than the most"),
        ("write", "size=1 conn=2", "connection 2 is not open"),
        ("write", "size=3 rsize=7 count=2", "rsize 7 does not divide the 6 bytes"),
        ("write", "size=x", "\"x\" is not a number"),
        ("write", "size=1 colour=red", "no such option \"colour\""),
        ("write", "size=$w", "variable $w has no value"),
        ("think", "idle", "has no duration"),
        ("dance", "", "no such flowop"),
    ] {
        let fault = fault(&with(options, kind));
        assert!(fault.starts_with(&format!("p.xml:5: flowop {kind}: ")), "{fault}");
        assert!(fault.contains(what), "{fault}");
    }
}

#[test]
fn a_datagram_is_bounded() {
    let text = with("size=70000", "write").replace("protocol=tcp", "protocol=udp");
    assert!(fault(&text).contains("a datagram has at most 65507 bytes"));
}

#[test]
fn elements_are_refused_with_their_line() {
    for (text, what) in [
        ("<Profile>\n<goup nthreads='2'/></Profile>", "p.xml:2: element <goup>, expected <group>"),
        ("<profile>\n<group/></profile>", "p.xml:2: <group> has neither nthreads nor nprocs"),
        ("<profile/>", "p.xml:1: the profile has no <group>"),
        ("", "p.xml: no <profile> in this text"),
        (
            "<profile><group nthreads='5000'><transaction/></group></profile>",
            "p.xml:1: nthreads 5000, expected 1 to 4096",
        ),
        (
            "<profile><group nthreads='1'>\n<transaction duration='2d'/></group></profile>",
            "p.xml:2: \"2d\" is not a time, as 30s, 10ms or 5us",
        ),
    ] {
        assert_eq!(fault(text), what);
    }
}

#[test]
fn options_of_freebsd_are_ignored_and_listed() {
    let text = with("size=1", "write").replace("protocol=tcp", "protocol=tcp stack=fastack");
    assert_eq!(profile(&text).notes, ["line 4: stack=fastack, an option of FreeBSD, is ignored"]);
}

#[test]
fn variables_have_values_or_are_named() {
    let text = with("size=$w", "write").replace("remotehost=h", "remotehost=$h");
    let mut variables = Variables::of(&["w=64k".to_owned()]).expect("variables");
    assert!(read("p", &text, &variables).expect_err("h").what.contains("$h has no value"));
    variables.local_hosts = true;
    let profile = read("p", &text, &variables).expect("profile");
    assert_eq!(profile.hosts(), ["127.0.0.11"]);
    assert_eq!(profile.notes, ["$h has no value: 127.0.0.11 of this machine"]);
    variables.set.insert("h".into(), "server".into());
    assert_eq!(read("p", &text, &variables).expect("profile").hosts(), ["server"]);
    assert!(Variables::of(&["w".to_owned()]).is_err());
}

#[test]
fn flowops_without_a_number_use_the_first_connection() {
    let text = "<profile><group nprocs='1'><transaction>\
        <flowop type='accept' options='conn=3 remotehost=h protocol=udp'/>\
        <flowop type='read' options='size=1'/><flowop type='disconnect'/>\
        </transaction></group></profile>";
    let profile = profile(text);
    let flowops = &profile.groups[0].transactions[0].flowops;
    assert_eq!(flowops.iter().map(|f| f.conn).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(flowops[0].endpoint().expect("endpoint").protocol, Protocol::Udp);
    assert_eq!(profile.notes, ["nprocs: processes are threads here"]);
}
