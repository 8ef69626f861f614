//! Sentences from made-up samples: distinguished where intervals allow it, and not where not.

use super::list;
use crate::record::ServerInfo;
use crate::transfer::plan::{BUILT_IN, Plan};
use crate::transfer::record::{Comparison, Direction, Line, Sample, VERSION};

/// A line with transfers of a gigabyte in `seconds` each, uploads and downloads alike.
fn line(protocol: &str, cipher: Option<&str>, plain: Option<usize>, seconds: &[f64]) -> Line {
    let one = |(round, seconds): (usize, &f64), way| Sample {
        round: round as u32,
        way,
        seconds: *seconds,
        bytes: 1_000_000_000,
        sign_in_s: 0.001,
        client_cpu_s: seconds / 2.0,
        server_cpu_s: Some(seconds / 4.0),
    };
    let rounds = |way| seconds.iter().enumerate().map(move |sample| one(sample, way));
    Line {
        target: format!("{}://ann@nas:1/share", protocol.to_lowercase()),
        protocol: protocol.into(),
        secure: cipher.is_some(),
        plain,
        cipher: cipher.map(str::to_owned),
        identity: "pin".into(),
        server: ServerInfo::default(),
        samples: Direction::BOTH.into_iter().flat_map(rounds).collect(),
        ways: Vec::new(),
        failed: None,
    }
}

fn comparison(lines: Vec<Line>) -> Comparison {
    let mut made = Comparison {
        kind: "comparison".into(),
        format: VERSION,
        program: "plimsoll".into(),
        started: 0.0,
        ended: 1.0,
        plan: Plan::parse("secure-protocols", BUILT_IN[0].1, &[]).unwrap(),
        command: Vec::new(),
        client: serde_json::Value::Null,
        lines,
        findings: Vec::new(),
        degraded: Vec::new(),
        failed: None,
    };
    made.derive();
    made
}

/// Six rounds of about this long.
fn about(seconds: f64) -> [f64; 6] {
    [0.99, 1.0, 1.01, 1.0, 0.995, 1.005].map(|factor| factor * seconds)
}

#[test]
fn the_fastest_is_named_and_what_protection_takes() {
    let lines = vec![
        line("FTP", None, None, &about(1.0)),
        line("FTPS", Some("TLS 1.3 AES_256_GCM_SHA384"), Some(0), &about(2.0)),
        line("SFTP", Some("SSH aes128-gcm"), None, &about(4.0)),
    ];
    let found = comparison(lines).findings;
    assert_eq!(found.len(), 8, "{found:#?}");
    assert!(found[0].starts_with("Uploads: FTP is the fastest with 954 MiB/s (95 % interval: "));
    assert_eq!(
        found[1],
        "Uploads: FTPS with TLS 1.3 AES_256_GCM_SHA384 is 50 % slower than FTP \
         (95 % interval: 50 % to 50 %); its CPU is 2.0 times that of FTP at the client and 2.0 \
         times at the server."
    );
    assert!(
        found[2].contains(
            "SFTP with SSH aes128-gcm is 75 % slower than FTP, the fastest of the plain ones"
        ),
        "{}",
        found[2]
    );
    assert_eq!(
        found[3],
        "Uploads: CPU time per gigabyte: lowest over FTP (0.50 s at the client and 0.25 s at the \
         server), highest over SFTP (2.00 s at the client and 1.00 s at the server)."
    );
    assert!(found[4].starts_with("Downloads: FTP is the fastest"));
}

#[test]
fn what_intervals_do_not_distinguish_is_not_distinguished() {
    let lines = vec![
        line("HTTP", None, None, &[1.0, 1.1, 0.9, 1.0, 1.05, 0.95]),
        line("HTTPS", Some("TLS 1.3 X"), Some(0), &[1.05, 1.0, 0.95, 1.02, 1.0, 1.0]),
        line("WebDAV", None, None, &about(3.0)),
    ];
    let found = comparison(lines).findings;
    assert!(found[0].contains("is not significant (the intervals overlap)."), "{}", found[0]);
    assert!(!found[0].contains("WebDAV"), "{}", found[0]);
    assert!(
        found[1].contains("HTTPS with TLS 1.3 X shows no significant difference to HTTP: "),
        "{}",
        found[1]
    );
    assert!(found[1].contains(" slower to ") && found[1].contains(" faster)"), "{}", found[1]);
}

#[test]
fn few_rounds_and_few_lines_are_reported() {
    let lines = vec![
        line("FTP", None, None, &[1.0, 1.1]),
        line("FTPS", Some("TLS 1.2 X"), Some(0), &[0.5, 0.52]),
    ];
    let found = comparison(lines).findings;
    assert!(found[1].contains("% faster than FTP ("), "{}", found[1]);
    assert!(found[1].contains(" in 2 rounds, too few for 95 %)"), "{}", found[1]);
    let mut alone = line("HTTP", None, None, &[1.0]);
    alone.samples.truncate(1);
    alone.samples[0].server_cpu_s = None;
    let found = comparison(vec![alone]).findings;
    assert_eq!(found, ["Uploads over HTTP: 954 MiB/s (one round: no interval)."]);
    assert_eq!(comparison(vec![line("FTP", None, None, &[])]).findings, [""; 0]);
}

#[test]
fn names_are_listed() {
    assert_eq!(list(&["FTP"]), "FTP");
    assert_eq!(list(&["FTP", "HTTP"]), "FTP and HTTP");
    assert_eq!(list(&["FTP", "HTTP", "SFTP"]), "FTP, HTTP and SFTP");
}
