//! Commands of FTP.

use base::limits::PEER_PATIENCE;
use base::random::{Random, SeededRandom};
use serve::ftp::Settings;
use vfs::share::Service;
use wire::ftp::{Request, Verb};

use crate::ftp::{Client, Running};
use crate::scene::Scene;
use crate::search::worst;
use crate::tree::{self, one_of, path, up_to};

/// A pattern of names.
fn pattern(random: &mut SeededRandom) -> String {
    let part =
        one_of(random, &["*a", "*?", "*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "?", "a*", "**"]);
    let count = 1 + up_to(random, 4_000 / part.len() as u64);
    let end = one_of(random, &["", "b", "*", "?b"]);
    format!("{}{end}", part.repeat(count as usize))
}

/// A listing of a directory, over a data connection.
fn list(client: &mut Client, random: &mut SeededRandom) -> String {
    let verb = *one_of(random, &[&Verb::List, &Verb::Nlst, &Verb::Mlsd]);
    let large = random.below(20) == 0;
    let dir = if large { "large" } else { one_of(random, &["few", "many", "links", "hidden"]) };
    let what = match verb {
        Verb::Mlsd => dir.to_owned(),
        _ => format!("{dir}/{}", pattern(random)),
    };
    let at = client.passive();
    let reply = client.request(&Request::Maybe(verb, Some(what.as_bytes())));
    if reply.code == 150 {
        let data = crate::ftp::Stream::Plain(crate::ftp::connect(at)).all();
        assert_eq!(client.reply().code, 226);
        return format!("{} {what} {} bytes", verb.name(), data.len());
    }
    format!("{} {what} {}", verb.name(), reply.code)
}

#[test]
fn of_ftp() {
    let folder = tree::new();
    let scene = Scene::in_folder(Service::Ftp, &folder, PEER_PATIENCE);
    let ftp = Running::over(scene, Settings::default());
    let mut client = ftp.signed_in();
    worst("ftp", |random: &mut SeededRandom| {
        if random.below(12) == 0 {
            return list(&mut client, random);
        }
        let path = match random.below(20) {
            0 => format!("{}/{}", one_of(random, &["few", "many", "large"]), pattern(random)),
            1 => one_of(random, &["few", "many", "hidden", "large"]).to_owned(),
            _ => path(random),
        };
        let line = match random.below(12) {
            0 => format!("CWD /share/{path}"),
            1 => format!("MLST /share/{path}"),
            2 | 3 => format!("STAT /share/{path}"),
            4 => format!("SIZE /share/{path}"),
            5 => format!("MDTM /share/{path}"),
            6 => format!("RNFR /share/{path}"),
            7 => format!("DELE /share/work/{path}"),
            8 => format!("MKD /share/work/{}", up_to(random, 300)),
            9 => format!("SITE CHMOD 644 /share/{path}"),
            10 => format!("AVBL /share/{path}"),
            _ => format!("HASH /share/{}", one_of(random, &["small", "holes"])),
        };
        let reply = client.ask(&line);
        format!("{} {line}", reply.code)
    });
}
