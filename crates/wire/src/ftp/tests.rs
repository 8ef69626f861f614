//! The wire format, against the texts of the RFCs.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4};

use proptest::prelude::*;

use super::ascii::Ends;
use super::facts::{Entry, Facts, Kind, bit};
use super::line::{Lines, escape, unescape};
use super::list::Line;
use super::reply::{self, Multi, Reply};
use super::request::{Epsv, Opts, Request, Site, Type, parse};
use super::{Malformed, Verb, addr, date};

fn request(line: &[u8]) -> Result<Request<'_>, Malformed> {
    parse(line).request
}

#[test]
fn verbs_have_numbers_in_order_and_names_of_their_own() {
    for (at, verb) in Verb::ALL.iter().enumerate() {
        assert_eq!(usize::from(verb.number()), at + 1);
        assert_eq!(Verb::parse(verb.name().to_lowercase().as_bytes()), Ok(*verb));
        assert!(verb.help().starts_with(verb.name()));
    }
    assert_eq!(Verb::parse(b"xpwd"), Ok(Verb::Pwd));
    assert_eq!(Verb::parse(b""), Err(Malformed::Unknown));
}

#[test]
fn commands_and_their_parameters() {
    assert_eq!(request(b"user ann b"), Ok(Request::Text(Verb::User, b"ann b")));
    assert_eq!(request(b"PASS"), Ok(Request::Text(Verb::Pass, b"")));
    assert_eq!(request(b"RETR  a "), Ok(Request::Text(Verb::Retr, b" a ")));
    assert_eq!(request(b"RETR"), Err(Malformed::Missing));
    assert_eq!(request(b"RETR a\0b"), Err(Malformed::Byte));
    assert_eq!(request(b"PWD x"), Err(Malformed::Unexpected));
    assert_eq!(request(b"TYPE L 8"), Ok(Request::Type(Type::Image)));
    assert_eq!(request(b"type a n"), Ok(Request::Type(Type::Ascii)));
    assert_eq!(request(b"TYPE E"), Err(Malformed::Parameter));
    assert_eq!(request(b"LIST -la  my dir"), Ok(Request::Maybe(Verb::List, Some(b"my dir"))));
    assert_eq!(request(b"LIST  lead"), Ok(Request::Maybe(Verb::List, Some(b" lead"))));
    assert_eq!(request(b"NLST  "), Ok(Request::Maybe(Verb::Nlst, None)));
    assert_eq!(request(b"LIST -la"), Ok(Request::Maybe(Verb::List, None)));
    assert_eq!(request(b"REST 18446744073709551615"), Ok(Request::Number(Verb::Rest, u64::MAX)));
    assert_eq!(request(b"REST 18446744073709551616"), Err(Malformed::Number));
    assert_eq!(request(b"REST -1"), Err(Malformed::Number));
    assert_eq!(request(b"ALLO 5 R 9"), Ok(Request::Number(Verb::Allo, 5)));
    assert_eq!(request(b"PROT p"), Ok(Request::Code(Verb::Prot, b'P')));
    assert_eq!(request(b"EPSV all"), Ok(Request::Epsv(Epsv::All)));
    assert_eq!(request(b"EPSV 3"), Err(Malformed::Family));
    assert_eq!(request(b"SITE chmod 4755 a b"), Ok(Request::Site(Site::Chmod(0o4755, b"a b"))));
    assert_eq!(request(b"SITE CHMOD 77777 a"), Err(Malformed::Number));
    assert_eq!(request(b"SITE EXEC ls"), Err(Malformed::Parameter));
    assert_eq!(request(b"OPTS utf8 on"), Ok(Request::Opts(Opts::Utf8(true))));
    assert_eq!(request(b"SMNT x"), Err(Malformed::NotOffered));
    assert_eq!(request(b"FROB x"), Err(Malformed::Unknown));
    assert_eq!(request(b"\xf4\xffabor"), Ok(Request::Bare(Verb::Abor)), "a broken Synch");
    assert_eq!(parse(b"ADAT x").verb, Some(Verb::Adat));
    let time = (date::time(b"20200101000001").unwrap().0, 0);
    let old = request(b"SITE UTIME a b 20200101000000 20200101000001 20200101000002 UTC");
    assert_eq!(old, Ok(Request::Site(Site::Utime(time, b"a b"))));
    assert_eq!(request(b"SITE UTIME 20200101000001 a b"), old);
}

#[test]
fn addresses_of_data_connections() {
    let v4: SocketAddrV4 = "132.235.1.2:6275".parse().unwrap();
    assert_eq!(addr::port(b"132,235,1,2,24,131"), Ok(v4));
    assert_eq!(addr::port_text(v4), "132,235,1,2,24,131");
    for wrong in
        [&b"1,2,3,4,5"[..], b"1,2,3,4,5,6,7", b"1,2,3,4,5,256", b"1,2,3,4,,6", b"+1,2,3,4,5,6"]
    {
        assert_eq!(addr::port(wrong), Err(Malformed::Port));
    }
    assert_eq!(addr::pasv_reply(b"Entering Passive Mode (132,235,1,2,24,131)."), Ok(v4));
    assert_eq!(addr::pasv_reply(b"=132,235,1,2,24,131"), Ok(v4));
    let v6: SocketAddr = "[1080::8:800:200c:417a]:5282".parse().unwrap();
    assert_eq!(addr::eprt(b"|2|1080::8:800:200C:417A|5282|"), Ok(v6));
    assert_eq!(addr::eprt(b"|1|132.235.1.2|6275|"), Ok(SocketAddr::V4(v4)));
    assert_eq!(addr::eprt_text(v6), "|2|1080::8:800:200c:417a|5282|");
    assert_eq!(addr::eprt(b"|3|x|1|"), Err(Malformed::Family));
    for wrong in [&b"|1|::1|1|"[..], b"|1|1.2.3.4|65536|", b"|1|1.2.3.4|1", b"", b"|1|1.2.3.4|1||"]
    {
        assert_eq!(addr::eprt(wrong), Err(Malformed::Eprt), "{wrong:?}");
    }
    let reply = format!("Entering Extended Passive Mode {}", addr::epsv_text(6446));
    assert_eq!(addr::epsv_reply(reply.as_bytes()), Ok(6446));
    assert_eq!(addr::epsv_reply(b"(|||x|)"), Err(Malformed::Address));
    assert!(addr::eprt(b"|2|::1|1|").is_ok_and(|a| a.ip() == Ipv6Addr::LOCALHOST));
}

#[test]
fn times() {
    assert_eq!(date::time(b"19700101000000"), Ok((0, 0)));
    assert_eq!(date::time(b"19980615100045.014"), Ok((897_904_845, 14_000_000)));
    assert_eq!(date::time_text(897_904_845), "19980615100045");
    assert_eq!(date::time(b"19691231235959"), Ok((-1, 0)));
    assert_eq!(date::time_text(i64::MAX), "99991231235959");
    for wrong in [
        "1998061510004",
        "19980631100045",
        "19980615240000",
        "19980615100045.",
        "199806151000450",
        "+9980615100045",
    ] {
        assert_eq!(date::time(wrong.as_bytes()), Err(Malformed::Time), "{wrong}");
    }
}

#[test]
fn lines_come_in_pieces_and_may_be_too_long() {
    let mut lines = Lines::new();
    lines.push(b"NOO");
    assert_eq!(lines.cut(), None);
    lines.push(b"P\r\nQUIT\nPA");
    assert_eq!(lines.cut(), Some(Ok(b"NOOP".to_vec())));
    assert_eq!(lines.cut(), Some(Ok(b"QUIT".to_vec())));
    assert_eq!(lines.cut(), None);
    assert!(lines.holds());
    let long = vec![b'x'; base::limits::FTP_LINE_MAX];
    lines.push(&long);
    assert_eq!(lines.cut(), Some(Err(Malformed::TooLong)), "before its end has come");
    lines.push(&long);
    assert_eq!(lines.cut(), None);
    lines.push(b"x\r\nNOOP\r\n");
    assert_eq!(lines.cut(), Some(Ok(b"NOOP".to_vec())), "told once, and over with its end");
    assert!(!lines.holds());
}

#[test]
fn telnet_is_taken_out() {
    assert_eq!(*unescape(b"\xff\xf4\xff\xf2ABOR"), *b"ABOR");
    assert_eq!(*unescape(b"a\xff\xffb"), *b"a\xffb");
    assert_eq!(*unescape(b"\xff\xfd\x18USER"), *b"USER");
    assert_eq!(*unescape(b"a\xff"), *b"a\xff", "a client that does not double");
    let mut out = Vec::new();
    escape(b"a\xff\rb\nc", &mut out);
    assert_eq!(out, b"a\xff\xff\r\0b?c");
    assert_eq!(*unescape(&out), *b"a\xff\rb?c");
}

#[test]
fn replies_of_one_line_and_of_several() {
    let mut out = Vec::new();
    reply::single(&mut out, 220, b"Ready");
    let mut multi = Multi::begin(&mut out, 211, b"Features:");
    multi.line(b"UTF8");
    multi.line(b"211 not the end");
    multi.end(b"End");
    assert_eq!(out, b"220 Ready\r\n211-Features:\r\n UTF8\r\n 211 not the end\r\n211 End\r\n");
    let (first, taken) = reply::decode(&out).unwrap().unwrap();
    assert_eq!(first, Reply { code: 220, lines: vec![b"Ready".to_vec()] });
    let rest = &out[taken..];
    let (second, taken) = reply::decode(rest).unwrap().unwrap();
    assert_eq!((second.code, second.lines.len(), taken), (211, 4, rest.len()));
    assert_eq!(reply::decode(&rest[..rest.len() - 1]), Ok(None));
    assert_eq!(reply::decode(b"hello\r\n"), Err(Malformed::Code));
    let path = reply::quoted(b"/a \"b\"");
    assert_eq!(path, b"\"/a \"\"b\"\"\"");
    assert_eq!(reply::unquoted(&path).as_deref(), Some(&b"/a \"b\""[..]));
}

#[test]
fn facts_of_files() {
    let file = Entry {
        kind: Some(Kind::File),
        size: Some(25),
        modify: Some(897_904_845),
        perm: Some("adfrw"),
        unique: Some((0x1a, 0x2b)),
        mode: Some(0o644),
        owner: Some(1),
        group: Some(2),
        name: b"a b",
    };
    let mut line = Vec::new();
    file.encode(Facts::default(), &mut line);
    let text = "type=file;perm=adfrw;size=25;modify=19980615100045;unique=1ag2b;UNIX.mode=0644;\
                UNIX.owner=1;UNIX.group=2; a b";
    assert_eq!(String::from_utf8_lossy(&line), text);
    assert_eq!(super::facts::entry(&line), Ok(file.clone()));
    let chosen = Facts::parse(b"Type;SIZE;nonsense;");
    assert_eq!((chosen.0, chosen.list().as_str()), (bit::TYPE | bit::SIZE, "type;size;"));
    assert!(chosen.feature().starts_with("type*;perm;size*;modify;"));
    line.clear();
    Entry { name: b"x\r\ny", ..file }.encode(chosen, &mut line);
    assert_eq!(line, b"type=file;size=25; x??y", "a name cannot end the line");
    assert_eq!(super::facts::entry(b"size=x; a"), Err(Malformed::Number));
    assert_eq!(super::facts::entry(b"size=1;"), Err(Malformed::Missing));
}

#[test]
fn list_lines_have_the_form_of_ls() {
    let now = 1_000_000_000;
    let line = Line {
        mode: *b"lrwsr-x--x",
        links: 1,
        owner: 0,
        group: 10,
        size: 5,
        modify: now - 60,
        name: b"a\nb",
        target: Some(b"/t"),
    };
    let text = |line: Line<'_>| {
        let mut out = Vec::new();
        line.encode(now, &mut out);
        String::from_utf8(out).unwrap()
    };
    let recent = text(line);
    assert_eq!(recent, "lrwsr-x--x   1 0        10                  5 Sep  9 01:45 a?b -> /t\r\n");
    let old = text(Line { modify: 0, target: None, mode: *b"-rwxrwxrwT", ..line });
    assert_eq!(old, "-rwxrwxrwT   1 0        10                  5 Jan  1  1970 a?b\r\n");
}

#[test]
fn line_ends_of_text() {
    let mut wire = Vec::new();
    let mut ends = Ends::default();
    ends.outward(b"a\nb\r", &mut wire);
    ends.outward(b"\nc\n\n", &mut wire);
    assert_eq!(wire, b"a\r\nb\r\nc\r\n\r\n");
    let (mut file, mut ends) = (Vec::new(), Ends::default());
    ends.inward(b"a\r", &mut file);
    ends.inward(b"\nb\rc\r\r\nd\r", &mut file);
    assert_eq!(file, b"a\nb\rc\r\nd");
    ends.finish(&mut file);
    assert_eq!(file, b"a\nb\rc\r\nd\r");
}

proptest! {
    #[test]
    fn a_path_of_any_bytes_comes_through(path in proptest::collection::vec(1u8.., 1..300)) {
        prop_assume!(!path.contains(&b'\n'));
        let sent = Request::Text(Verb::Stor, &path);
        let mut out = Vec::new();
        sent.encode(&mut out);
        let mut lines = Lines::new();
        lines.push(&out);
        let line = lines.cut().unwrap().unwrap();
        prop_assert_eq!(parse(&line).request, Ok(sent));
    }

    #[test]
    fn any_time_comes_back(epoch in -62_000_000_000i64..250_000_000_000) {
        prop_assert_eq!(date::time(date::time_text(epoch).as_bytes()), Ok((epoch, 0)));
    }
}
