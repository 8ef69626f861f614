//! Ways out of a share that there must not be: dots in every spelling, links, and links that come
//! and go during requests. By FTP, SFTP, HTTP and WebDAV.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use e2e::ftp::Ftp;
use e2e::http::{Http, field};
use e2e::sftp::{Came, Sftp};
use e2e::tcp::HERE;
use e2e::transfer::{PASSWORD, Scene};
use wire::sftp::request::{OfPath, Read, SetByPath, Symlink, TwoPaths};
use wire::sftp::{Attrs, Extended, HandleBytes, OpenFlags, PathBytes, Request};

const SECRET: &[u8] = b"what is outside";
const INSIDE: &[u8] = b"what is inside";
/// Requests of each protocol while links come and go.
const RACES: usize = 150;

/// Next to the share is `out` with a file in it, and in the share are links that lead there.
fn furnished(name: &str) -> Scene {
    let scene = Scene::new(name);
    let (share, out) = (scene.dir.join("box"), scene.dir.join("out"));
    for folder in [&out, &share.join("d"), &share.join("in")] {
        fs::create_dir_all(folder).expect("a folder");
    }
    fs::write(out.join("secret"), SECRET).expect("a file");
    fs::write(share.join("in/file"), INSIDE).expect("a file");
    relink(&scene);
    // All users may do everything: it is not the mode that confines them to the share.
    for path in [&out, &out.join("secret"), &share, &share.join("d"), &share.join("in")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("a mode");
    }
    scene
}

/// Makes the links that lead out, as far as they are not there.
fn relink(scene: &Scene) {
    let (share, out) = (scene.dir.join("box"), scene.dir.join("out"));
    for (name, to) in [
        ("absolute", out.clone()),
        ("relative", Path::new("../out").into()),
        ("above", Path::new("..").into()),
        ("root", Path::new("/").into()),
        ("d/up", Path::new("../../out").into()),
        ("chain", Path::new("d/up").into()),
        ("file", out.join("secret")),
        ("proc", "/proc/self/root".into()),
    ] {
        let link = share.join(name);
        if !link.is_symlink() {
            let _made_instead = (fs::remove_file(&link), fs::remove_dir_all(&link));
            fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
            symlink(to, link).expect("a link");
        }
    }
}

/// Paths that would lead to `out/secret`, as bytes of a name.
fn tricks(scene: &Scene) -> Vec<Vec<u8>> {
    let out = scene.dir.join("out/secret");
    let mut all: Vec<Vec<u8>> = [
        "/../out/secret",
        "/box/../../out/secret",
        "/box/../out/secret",
        "/box/d/../../../out/secret",
        "/box/./.././../out/secret",
        "/box//..//..//out/secret",
        "/box/d/../../../../out/secret",
        "/box/..\\..\\out\\secret",
        "/box/..\\../out/secret",
        "/box/%2e%2e/%2e%2e/out/secret",
        "/box/..%2f..%2fout/secret",
        "/box/.../.../out/secret",
        "/box/absolute/secret",
        "/box/relative/secret",
        "/box/above/out/secret",
        "/box/d/up/secret",
        "/box/chain/secret",
        "/box/file",
        "/box/d/../absolute/secret",
        "/box/absolute/../out/secret",
        "~/../out/secret",
        "/box/absolute/./secret",
        "/box/above/box/above/out/secret",
    ]
    .map(|path| path.as_bytes().to_vec())
    .into();
    // Overlong forms of the dot and the slash, NUL, and the whole path on the disk.
    all.push(b"/box/\xc0\xae\xc0\xae/\xc0\xae\xc0\xae/out/secret".to_vec());
    all.push(b"/box/..\xc0\xaf..\xc0\xafout/secret".to_vec());
    all.push(b"/box/..\0/../out/secret".to_vec());
    let absolute = out.as_os_str().as_bytes();
    for before in ["", "/", "/box", "/box/root", "/box/proc", "/box/d/../root"] {
        all.push([before.as_bytes(), absolute].concat());
    }
    all
}

/// Each byte as it is, or with all that could be taken for something else encoded.
fn targets(path: &[u8]) -> [Vec<u8>; 3] {
    let encoded = |plain: fn(u8) -> bool| -> Vec<u8> {
        let one = |b: &u8| if plain(*b) { vec![*b] } else { format!("%{b:02x}").into_bytes() };
        path.iter().flat_map(one).collect()
    };
    let slash =
        |rest: Vec<u8>| if rest.starts_with(b"/") { rest } else { [b"/", &rest[..]].concat() };
    [
        slash(encoded(|b| b.is_ascii_graphic() && b != b'%')),
        slash(encoded(|b| b.is_ascii_alphanumeric() || b == b'/')),
        slash(encoded(|b| b.is_ascii_alphanumeric())),
    ]
}

/// That nothing outside was read, made, changed or removed.
fn unharmed(scene: &Scene, by: &str, came: &[u8]) {
    assert!(
        !came.windows(SECRET.len()).any(|part| part == SECRET),
        "{by} has read what is outside"
    );
    let out = scene.dir.join("out");
    let names: Vec<_> = fs::read_dir(&out).expect("the folder").flatten().collect();
    assert_eq!(names.len(), 1, "{by}: {names:?}");
    assert!(fs::read(out.join("secret")).is_ok_and(|data| data == SECRET), "{by} has changed it");
    let beside = fs::read_dir(&scene.dir).expect("the folder").count();
    assert_eq!(beside, 2, "{by} has made something beside the share");
}

fn signed_in(scene: &Scene) -> Ftp {
    let mut ftp = scene.ftp(HERE).expect("FTP");
    assert_eq!(ftp.sign_in("anna", PASSWORD).expect("FTP"), 230);
    ftp
}

fn by_ftp(ftp: &mut Ftp, path: &[u8]) -> io::Result<Vec<u8>> {
    let line = |verb: &str| [verb.as_bytes(), b" ", path].concat();
    let hash = ftp.say(line("HASH"))?;
    assert_ne!(hash.0 / 100, 2, "it tells what is in there: {hash:?}");
    let mut came = ftp.data(line("RETR"), None)?.1;
    for verb in ["STOR", "APPE"] {
        ftp.data(line(verb), Some(b"changed"))?;
    }
    for verb in ["MLSD", "LIST"] {
        came.extend(ftp.data(line(verb), None)?.1);
    }
    for verb in ["SIZE", "MLST", "MFMT 20200101000000", "SITE CHMOD 600"] {
        ftp.say(line(verb))?;
    }
    // Away from there, and to there.
    if ftp.say(line("RNFR"))?.0 == 350 {
        ftp.say("RNTO /box/taken")?;
        came.extend(ftp.data("RETR /box/taken", None)?.1);
    }
    ftp.data("STOR /box/given", Some(b"given"))?;
    ftp.say("RNFR /box/given")?;
    ftp.say(line("RNTO"))?;
    for verb in ["DELE", "RMD", "MKD"] {
        ftp.say(line(verb))?;
    }
    Ok(came)
}

fn by_http(http: &mut Http, scene: &Scene, target: &[u8]) -> Vec<u8> {
    let (mut came, host) = (Vec::new(), format!("http://{}", scene.server.at(80)));
    let mut ask = |what: (&str, &[u8]), fields: &[u8], body: &[u8]| {
        if let Ok((_, head, body)) = http.ask(what, fields, body) {
            came.extend(body);
            if field(&head, "connection") != Some("close") {
                return;
            }
        }
        // An invalid request ends the connection.
        *http = scene.http(HERE, PASSWORD).expect("HTTP");
    };
    for method in ["GET", "HEAD", "PROPFIND"] {
        ask((method, target), b"depth: 1\r\n", b"");
    }
    ask(("PUT", target), b"", b"changed");
    let lock = b"<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope><locktype><write/>\
        </locktype></lockinfo>";
    ask(("LOCK", target), b"", lock);
    for method in ["COPY", "MOVE"] {
        ask((method, target), b"destination: /box/taken\r\noverwrite: T\r\n", b"");
        ask(("GET", b"/box/taken"), b"", b"");
        ask(("PUT", b"/box/given"), b"", b"given");
        for host in ["", &host] {
            let to = [b"destination: ", host.as_bytes(), target, b"\r\noverwrite: T\r\n"].concat();
            ask((method, b"/box/given"), &to, b"");
        }
    }
    ask(("DELETE", target), b"", b"");
    ask(("MKCOL", target), b"", b"");
    came
}

fn read(sftp: &mut Sftp, path: &[u8]) -> io::Result<Vec<u8>> {
    let Ok(handle) = sftp.open(path, OpenFlags::READ)? else { return Ok(Vec::new()) };
    let read = Read { handle: HandleBytes(&handle), offset: 0, len: 1000 };
    let came = sftp.call(&Request::Read(read))?;
    sftp.close(&handle)?;
    Ok(if let Came::Other(data) = came { data } else { Vec::new() })
}

fn write(sftp: &mut Sftp, path: &[u8]) -> io::Result<bool> {
    let flags = OpenFlags::WRITE.with(OpenFlags::CREAT);
    let Ok(handle) = sftp.open(path, flags)? else { return Ok(false) };
    sftp.write(&handle, 0, b"changed")?;
    sftp.close(&handle)?;
    Ok(true)
}

fn by_sftp(sftp: &mut Sftp, path: &[u8]) -> io::Result<Vec<u8>> {
    let mut came = read(sftp, path)?;
    write(sftp, path)?;
    let (at, attrs) = (PathBytes(path), Attrs::default());
    let small = Attrs { size: Some(0), ..attrs };
    let two = |a, b| TwoPaths { oldpath: PathBytes(a), newpath: PathBytes(b) };
    write(sftp, b"/box/given")?;
    for request in [
        Request::Setstat(SetByPath { path: at, attrs: small }),
        Request::Rename(two(path, b"/box/taken")),
        Request::Rename(two(b"/box/given", path)),
        Request::Extended(Extended::PosixRename(two(path, b"/box/taken"))),
        Request::Extended(Extended::PosixRename(two(b"/box/given", path))),
        Request::Extended(Extended::Hardlink(two(path, b"/box/linked"))),
        Request::Symlink(Symlink { targetpath: at, linkpath: PathBytes(b"/box/made") }),
        Request::Mkdir(SetByPath { path: at, attrs }),
        Request::Remove(OfPath { path: at }),
        Request::Rmdir(OfPath { path: at }),
    ] {
        sftp.call(&request)?;
    }
    for name in ["/box/taken", "/box/linked", "/box/made"] {
        came.extend(read(sftp, name.as_bytes())?);
        write(sftp, name.as_bytes())?;
        sftp.call(&Request::Remove(OfPath { path: PathBytes(name.as_bytes()) }))?;
    }
    Ok(came)
}

#[test]
fn no_path_leads_out_of_a_share() {
    let scene = furnished("hostile-paths");
    let (mut ftp, mut http) = (signed_in(&scene), scene.http(HERE, PASSWORD).expect("HTTP"));
    let mut sftp = scene.sftp(HERE, PASSWORD).expect("SFTP");
    for path in tricks(&scene) {
        let told = String::from_utf8_lossy(&path).into_owned();
        let came = by_ftp(&mut ftp, &path).unwrap_or_else(|e| panic!("FTP {told}: {e}"));
        unharmed(&scene, &format!("FTP {told}"), &came);
        relink(&scene);
        let came = by_sftp(&mut sftp, &path).unwrap_or_else(|e| panic!("SFTP {told}: {e}"));
        unharmed(&scene, &format!("SFTP {told}"), &came);
        for target in targets(&path) {
            relink(&scene);
            let came = by_http(&mut http, &scene, &target);
            unharmed(&scene, &format!("HTTP {}", String::from_utf8_lossy(&target)), &came);
        }
    }
    // The ways that there are lead on.
    assert_eq!(ftp.data("RETR /box/in/file", None).expect("FTP"), (226, INSIDE.to_vec()));
    assert_eq!(http.ask(("GET", b"/box/in/../in/file"), b"", b"").expect("HTTP").2, INSIDE);
    assert!(read(&mut sftp, b"/box/in/file").expect("SFTP").ends_with(INSIDE));
}

/// Exchanges two names of a folder, repeatedly.
fn swap(folder: &Path, [a, b]: [&str; 2], end: &AtomicBool, count: &AtomicU64) {
    let name = |name: &str| {
        let path = folder.join(name);
        std::ffi::CString::new(path.as_os_str().as_bytes()).expect("a path")
    };
    let (a, b) = (name(a), name(b));
    while !end.load(Relaxed) {
        // SAFETY: both are strings that end with NUL, and the call keeps neither.
        let done = unsafe {
            libc::renameat2(
                libc::AT_FDCWD,
                a.as_ptr(),
                libc::AT_FDCWD,
                b.as_ptr(),
                libc::RENAME_EXCHANGE,
            )
        };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        count.fetch_add(1, Relaxed);
    }
}

/// What requests for a name below `swap` brought, by each protocol; and whether some were done.
fn race(scene: &Scene, n: usize, (ftp, http, sftp): (&mut Ftp, &mut Http, &mut Sftp)) -> Vec<u8> {
    let (file, new) = (b"/box/swap/file".as_slice(), format!("/box/swap/new{n}").into_bytes());
    let line = |verb: &str, path: &[u8]| [verb.as_bytes(), b" ", path].concat();
    let mut came = ftp.data(line("RETR", file), None).expect("FTP").1;
    ftp.data(line("STOR", &new), Some(b"x")).expect("FTP");
    ftp.say(line("DELE", b"/box/swap/secret")).expect("FTP");
    for (method, path) in [("GET", file), ("PUT", &new), ("DELETE", b"/box/swap/secret")] {
        came.extend(http.ask((method, path), b"", b"").expect("HTTP").2);
    }
    let to = [b"destination: ", new.as_slice(), b"-moved\r\n"].concat();
    http.ask(("COPY", b"/box/in/file"), &to, b"").expect("HTTP");
    http.ask(("MOVE", &new), b"destination: /box/d/moved\r\n", b"").expect("HTTP");
    came.extend(read(sftp, file).expect("SFTP"));
    write(sftp, &[&new[..], b"-sftp"].concat()).expect("SFTP");
    let secret = OfPath { path: PathBytes(b"/box/swap/secret") };
    sftp.call(&Request::Remove(secret)).expect("SFTP");
    unharmed(scene, "somebody who was quick", &came);
    came
}

#[test]
fn links_that_come_and_go_lead_no_client_out() {
    let scene = furnished("hostile-race");
    let share = scene.dir.join("box");
    // `swap` is now a folder of the share, now a link to one outside that has a file of the same
    // name as its own.
    fs::rename(share.join("in"), share.join("swap")).expect("renamed");
    fs::create_dir(share.join("in")).expect("a folder");
    fs::write(share.join("in/file"), INSIDE).expect("a file");
    fs::write(share.join("swap/secret"), INSIDE).expect("a file");
    symlink(scene.dir.join("out"), share.join("other")).expect("a link");
    let (end, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut inside = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&share, ["swap", "other"], &end, &count));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let (mut ftp, mut http) =
                (signed_in(&scene), scene.http(HERE, PASSWORD).expect("HTTP"));
            let mut sftp = scene.sftp(HERE, PASSWORD).expect("SFTP");
            for n in 0..RACES {
                let came = race(&scene, n, (&mut ftp, &mut http, &mut sftp));
                inside += usize::from(came.windows(INSIDE.len()).any(|part| part == INSIDE));
            }
        }));
        end.store(true, Relaxed);
        if let Err(why) = outcome {
            std::panic::resume_unwind(why);
        }
    });
    let swaps = count.load(Relaxed);
    println!("{swaps} exchanges; {inside} of {RACES} rounds have read what is inside");
    assert!(swaps > 100 && inside > 0, "{swaps} exchanges, {inside} rounds");
}
