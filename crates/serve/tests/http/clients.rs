//! What people use: curl, wget, a browser.

use std::process::{Command, Stdio};

use crate::scene::Scratch;
use crate::stand::Stand;

/// Whether a program is installed; prints a line if it is not.
fn has(program: &str) -> bool {
    let has = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !has {
        println!("SKIP http-{program}: {program} is not installed");
    }
    has
}

/// Runs a program; returns its output.
fn run(program: &str, args: &[&str]) -> String {
    let done = Command::new(program).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{program} {args:?}: {errors}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 13 + n / 257) as u8).collect()
}

#[test]
fn curl_uploads_downloads_and_resumes() {
    if !has("curl") {
        return;
    }
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    let body = pattern(5_000_000);
    let up = scratch.file("up", &body);
    let down = scratch.0.join("down").to_str().unwrap().to_owned();
    let ports = [(format!("http://{}", stand.plain), "--http1.1", "1.1")];
    let secure = format!("https://{}", stand.secure);
    let both = [(secure.clone(), "--http1.1", "1.1"), (secure, "--http2", "2")];
    for (n, (at, version, said)) in ports.into_iter().chain(both).enumerate() {
        let url = format!("{at}/share/a%20%22b%22%20{n}");
        let options = ["-w", "%{http_code} %{http_version}", "-sSk", version];
        let put = run("curl", &[&options[..], &["-T", &up, &url]].concat());
        assert_eq!(put, format!("201 {said}"));
        assert_eq!(scratch.read(&format!("share/a \"b\" {n}")), body);
        run("curl", &[&options[..], &["-f", "-o", &down, &url]].concat());
        assert_eq!(scratch.read("down"), body);
        scratch.file("down", &body[..1_234_567]);
        let rest = run("curl", &[&options[..], &["-C", "-", "-o", &down, &url]].concat());
        assert_eq!(rest, format!("206 {said}"));
        assert_eq!(scratch.read("down"), body);
        // An upload resumes where it ended.
        let part = scratch.0.join(format!("share/a \"b\" {n}"));
        std::fs::File::options().write(true).open(part).unwrap().set_len(2_000_000).unwrap();
        run("curl", &[&options[..], &["-f", "-C", "2000000", "-T", &up, &url]].concat());
        assert_eq!(scratch.read(&format!("share/a \"b\" {n}")), body);
    }
}

#[test]
fn curl_has_what_it_asks_for_and_nothing_else() {
    if !has("curl") {
        return;
    }
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    scratch.file("secret", b"secret");
    scratch.file("share/empty", b"");
    scratch.file("share/f", &pattern(10_000));
    let outside = scratch.0.join("secret");
    std::os::unix::fs::symlink(outside, scratch.0.join("share/absolute")).unwrap();
    std::os::unix::fs::symlink("../secret", scratch.0.join("share/relative")).unwrap();
    std::os::unix::fs::symlink("f", scratch.0.join("share/inside")).unwrap();
    let at = format!("http://{}/share", stand.plain);
    let code = |args: &[&str]| {
        run(
            "curl",
            &[
                &["-sS", "--path-as-is", "-o", "/dev/null", "-w", "%{http_code} %{size_download}"]
                    [..],
                args,
            ]
            .concat(),
        )
    };
    assert_eq!(code(&[&format!("{at}/empty")]), "200 0");
    assert_eq!(code(&[&format!("{at}/inside")]), "200 10000");
    assert_eq!(code(&["-r", "10-19", &format!("{at}/f")]), "206 10");
    assert_eq!(code(&["-z", "20350101", &format!("{at}/f")]), "304 0");
    for out in ["absolute", "relative", "../secret", "../../secret", "%2e%2e/secret"] {
        let said = code(&[&format!("{at}/{out}")]);
        assert!(said.starts_with("403") || said.starts_with("404"), "{out}: {said}");
    }
}

#[test]
fn ten_gibibytes_of_nothing_are_sent() {
    if !has("curl") {
        return;
    }
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    let sparse = std::fs::File::create(scratch.0.join("share/sparse")).unwrap();
    sparse.set_len(10 << 30).unwrap();
    let url = format!("http://{}/share/sparse", stand.plain);
    let sized = ["-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download}"];
    let tail = run("curl", &[&sized[..], &["-r", "10737000000-", &url]].concat());
    assert_eq!(tail, "206 418240");
    let head = run("curl", &["-sSI", &url]);
    assert!(head.to_ascii_lowercase().contains("content-length: 10737418240"), "{head}");
}

#[test]
fn wget_resumes_where_it_stopped_and_takes_folders() {
    if !has("wget") {
        return;
    }
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    let body = pattern(300_000);
    scratch.file("share/f", &body);
    std::fs::create_dir(scratch.0.join("share/d ä")).unwrap();
    scratch.file("share/d ä/g", b"g");
    let down = scratch.file("down", &body[..100_000]);
    run("wget", &["-q", "-c", "-O", &down, &format!("http://{}/share/f", stand.plain)]);
    assert_eq!(scratch.read("down"), body);
    let into = scratch.0.join("all").to_str().unwrap().to_owned();
    let all = format!("http://{}/share/", stand.plain);
    run("wget", &["-q", "-r", "-np", "-nH", "-R", "*archive*,*sort*", "-P", &into, &all]);
    assert_eq!(scratch.read("all/share/f"), body);
    assert_eq!(scratch.read("all/share/d ä/g"), b"g");
}

#[test]
fn a_browser_shows_a_folder_and_its_script_runs() {
    if !has("chromium") {
        return;
    }
    let scratch = Scratch::new();
    let stand = Stand::of(&scratch);
    scratch.file("share/<b>bold & plain", b"x");
    let profile = format!("--user-data-dir={}", scratch.0.join("profile").display());
    let url = format!("http://{}/share/", stand.plain);
    let args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom", &profile, &url];
    let page = run("chromium", &args);
    assert!(page.contains("&lt;b&gt;bold &amp; plain</a>"), "{page}");
    // The script shows what only it can do.
    assert!(page.contains("<button id=\"upload\" class=\"main\">"), "{page}");
}
