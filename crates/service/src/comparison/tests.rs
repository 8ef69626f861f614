//! Targets from the state that a server reports, and the obstacles.

use serde_json::{Value, json};

use super::*;

fn node(properties: &Value) -> Node {
    let shown = |(name, value): (&String, &Value)| json!({"name": name, "value": value});
    let all: Vec<Value> = properties.as_object().unwrap().iter().map(shown).collect();
    serde_json::from_value(json!({"path": "/x", "properties": all})).unwrap()
}

/// The report of a server with default settings, except for what is `changed` of HTTP.
fn known(ftp: &Value, http: &Value) -> ServiceNodes {
    let mut all = [
        json!({"state": "online", "listen": "0.0.0.0:10021, 0.0.0.0:10990", "tls": "offered",
            "protect_data": false, "login_root": "shares"}),
        json!({"state": "online", "listen": "0.0.0.0:10080, 0.0.0.0:10443", "plain": "redirect",
            "basic_over_plain": false, "webdav": true, "sign_in": "required"}),
    ];
    for (node, changed) in all.iter_mut().zip([ftp, http]) {
        for (name, value) in changed.as_object().unwrap() {
            node[name] = value.clone();
        }
    }
    let sftp = json!({"state": "online", "listen": "0.0.0.0:10218", "passwords": true,
        "login_root": "shares", "host_keys": ["SHA256:abc"]});
    let one = |node, pin: Option<&str>| ServiceNode { node, pin: pin.map(Into::into) };
    ServiceNodes::from([
        (Service::Ftp, one(node(&all[0]), Some("AB:01"))),
        (Service::Sftp, one(node(&sftp), None)),
        (Service::Http, one(node(&all[1]), Some("CD:02"))),
    ])
}

fn share() -> ShareStatus {
    let ports = [("ftp", 10021), ("ftps", 10990), ("sftp", 10218), ("http", 10080)];
    let access = |(name, port): (&str, u16)| {
        let url = format!("{name}://nas:{port}/a%20b");
        json!({"protocol": name, "url": url, "mount": ""})
    };
    let access: Vec<Value> = ports.into_iter().chain([("https", 10443)]).map(access).collect();
    let share = json!({"name": "a b", "dir": "/srv", "read_only": false, "access": access,
        "total_bytes": 1u64 << 40, "available_bytes": 1u64 << 30});
    serde_json::from_value(share).unwrap()
}

#[test]
fn every_protocol_becomes_a_target_that_is_pinned() {
    let mut known = known(&json!({}), &json!({"plain": "serve", "basic_over_plain": true}));
    let urls =
        Scheme::ALL.map(|scheme| of(scheme, &share(), "ann@home", &known).unwrap().to_string());
    let expected = [
        "ftp://ann%40home@127.0.0.1:10021/a%20b",
        "ftps://ann%40home@127.0.0.1:10021/a%20b?pin=ab01",
        "sftp://ann%40home@127.0.0.1:10218/a%20b?pin=SHA256:abc",
        "http://ann%40home@127.0.0.1:10080/a%20b",
        "https://ann%40home@127.0.0.1:10443/a%20b?pin=cd02",
        "webdav://ann%40home@127.0.0.1:10080/a%20b",
        "webdavs://ann%40home@127.0.0.1:10443/a%20b?pin=cd02",
    ];
    assert_eq!(urls, expected);
    known.get_mut(&Service::Http).unwrap().pin = None;
    assert!(of(Scheme::Https, &share(), "ann", &known).is_err(), "nobody is believed unseen");
}

#[test]
fn obstacles_are_reported_once_with_the_change_and_its_reversal() {
    let known = known(&json!({"state": "disabled", "listen": ""}), &json!({}));
    let mut obstacles = Obstacles::default();
    let there: Vec<&str> = Scheme::ALL
        .into_iter()
        .filter_map(|scheme| obstacles.or_none(of(scheme, &share(), "ann", &known)))
        .map(|at| at.scheme.name())
        .collect();
    assert_eq!(there, ["sftp", "https", "webdavs"]);
    assert_eq!(
        obstacles.sentence(),
        "FTP is disabled; HTTP without TLS is off; HTTP does not accept passwords without TLS"
    );
    assert_eq!(
        obstacles.hint("plimsoll cli", "sftp,https,webdavs"),
        "change the settings for all clients:\n    \
         plimsoll cli -c 'configuration services ftp set enabled=on'\n    \
         plimsoll cli -c 'configuration services http set plain=serve basic_over_plain=on'\n  \
         and restore them after the comparison:\n    \
         plimsoll cli -c 'configuration services ftp set enabled=off'\n    \
         plimsoll cli -c 'configuration services http set plain=redirect basic_over_plain=off'\n  \
         or compare the others: --protocols sftp,https,webdavs"
    );
}

#[test]
fn settings_that_keep_a_protocol_out_are_named() {
    let hint = |scheme, ftp: Value, http: Value| {
        let mut obstacles = Obstacles::default();
        obstacles.or_none(of(scheme, &share(), "ann", &known(&ftp, &http)));
        format!("{}: {}", obstacles.sentence(), obstacles.hint("cli", ""))
    };
    let none = json!({});
    let cases = [
        (Scheme::Ftp, json!({"tls": "required"}), none.clone(), "ftp set tls=offered"),
        (Scheme::Ftp, json!({"protect_data": true}), none.clone(), "ftp set protect_data=off"),
        (Scheme::Ftps, json!({"tls": "off"}), none.clone(), "ftp set tls=offered"),
        (Scheme::Ftps, json!({"login_root": "home"}), none.clone(), "ftp set login_root=shares"),
        (Scheme::Https, none.clone(), json!({"webdav": false}), "http set webdav=on"),
        (
            Scheme::Http,
            none.clone(),
            json!({"plain": "off", "basic_over_plain": true}),
            "http set plain=serve' -c 'configuration services http restart'",
        ),
        (
            Scheme::Webdav,
            json!({}),
            json!({"state": "maintenance", "reason": "port 10080 is taken"}),
            "HTTP is in the state maintenance: port 10080 is taken",
        ),
    ];
    for (scheme, ftp, http, expected) in cases {
        let told = hint(scheme, ftp, http);
        assert!(told.contains(expected), "{expected} in {told}");
    }
    // No user signs in: no password can be intercepted.
    let told = hint(Scheme::Http, none, json!({"plain": "serve", "sign_in": "none"}));
    assert!(!told.contains("basic_over_plain"), "{told}");
}

#[test]
fn shares_that_cannot_take_the_files_are_refused() {
    let status = |changed: &Value| {
        let mut share = serde_json::to_value(share()).unwrap();
        for (name, value) in changed.as_object().unwrap() {
            share[name] = value.clone();
        }
        let acting = json!({"privileged": false, "user": "x", "note": ""});
        let status = json!({"name": "", "version": "", "started": 0, "now": 0, "pid": 1,
            "healthy": true, "problems": [], "acting_as": acting, "shares": [share],
            "services": [], "budgets": []});
        serde_json::from_value::<Status>(status).unwrap()
    };
    let plan = Plan::load("secure-protocols", &[]).unwrap().unwrap();
    let why = |name: &str, changed: &Value| {
        let status = status(changed);
        usable(&status, name, "x", &plan).err().map(|failure| failure.why().to_owned())
    };
    assert_eq!(why("a b", &json!({})), None);
    assert!(why("box", &json!({})).unwrap().contains("no share has that name"));
    assert!(why("a b", &json!({"read_only": true})).unwrap().contains("read-only"));
    let small = why("a b", &json!({"available_bytes": 1u64 << 20})).unwrap();
    assert!(small.contains("512 MiB") && small.contains("1 MiB are available"), "{small}");
}

#[test]
fn only_protocols_that_there_are_can_be_named() {
    let named =
        |names: &[&str]| schemes(&names.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(named(&[]).unwrap().len(), Scheme::ALL.len());
    assert_eq!(named(&["https", "ftp"]).unwrap(), [Scheme::Https, Scheme::Ftp]);
    assert!(named(&["gopher"]).unwrap_err().why().contains("gopher"));
}
