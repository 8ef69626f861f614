//! Lines typed one after the other, their output and the requests to the server.

use serde_json::{Value as Json, json};

use super::fake::{Fake, shell};
use crate::cli::shell::Answer;
use crate::cli::{CliError, Shell};

/// The output of a line.
fn say(shell: &mut Shell, line: &str) -> String {
    match shell.run(line) {
        Ok(Answer::Text(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

/// What is wrong with a line, with its exit code.
fn wrong(shell: &mut Shell, line: &str) -> (u8, String) {
    match shell.run(line) {
        Err(error) => (error.exit_code(), format!("{error} ({})", error.hint())),
        other => panic!("{line}: {other:?}"),
    }
}

fn last_changes(fake: &Fake) -> Json {
    let held = fake.0.lock().unwrap();
    held.committed.last().map_or(Json::Null, |body| body["changes"].clone())
}

#[test]
fn going_about() {
    let (mut shell, ..) = shell();
    for (line, here) in [
        ("configuration services nfs", "configuration services nfs"),
        ("..", "configuration services"),
        ("up", "configuration"),
        ("/shares/default/tank", "shares default tank"),
        ("cd ..", "shares default"),
        ("select tank", "shares default tank"),
        ("cd ../../../configuration/users", "configuration users"),
        ("done", "configuration"),
        ("services/nfs show", "configuration"),
        ("top", ""),
        ("cd shares", "shares"),
        ("cd /", ""),
    ] {
        say(&mut shell, line);
        assert_eq!(shell.here(), here, "{line}");
    }
    let (code, text) = wrong(&mut shell, "cd shares/default/tonk");
    assert_eq!(
        (code, text.as_str()),
        (1, "/shares/default has no share 'tonk' (did you mean 'tank'?)")
    );
    let (code, text) = wrong(&mut shell, "configuratoin");
    assert_eq!(code, 2);
    assert!(text.contains("did you mean 'configuration'?"), "{text}");
    assert_eq!(wrong(&mut shell, "select nfs").0, 1);
    assert_eq!(wrong(&mut shell, "set").0, 2);
    assert_eq!(wrong(&mut shell, "set a='").0, 2);
}

#[test]
fn a_place_reads_as_in_the_original() {
    let (mut shell, ..) = shell();
    say(&mut shell, "cd configuration/services/nfs");
    say(&mut shell, "set lease=2m");
    assert_eq!(
        say(&mut shell, "show"),
        "/configuration/services/nfs: NFS
Properties:
                       enabled = on (default)
                         lease = 120s (uncommitted)
                         limit = 1M (default)
                      <status> = -
Actions:
                        expire => Expire
                       history => History
"
    );
    assert_eq!(
        say(&mut shell, "get enabled lease"),
        "enabled = on (default)\n  lease = 120s (uncommitted)\n"
    );
    say(&mut shell, "abort");
    assert_eq!(say(&mut shell, "get lease"), "lease = 90s (default)\n");
    assert_eq!(
        say(&mut shell, "/shares/default show"),
        "/shares/default: PROJECT
Properties:
                           nfs = -
Shares:
SHARE  DIRECTORY  NFS
tank   /srv/tank  -
"
    );
    say(&mut shell, "cd /");
    assert_eq!(
        say(&mut shell, "ls"),
        "Children:
                 configuration => CONFIGURATION
                        shares => SHARES
                   maintenance => MAINTENANCE
"
    );
    assert_eq!(say(&mut shell, "configuration users list"), "Users: none\n");
    // The path may stand behind the command, too.
    let below = say(&mut shell, "ls");
    assert_eq!(say(&mut shell, "ls /"), below);
    assert_eq!(say(&mut shell, "list configuration/users"), "Users: none\n");
    let tank = say(&mut shell, "/shares/default/tank show");
    assert_eq!(say(&mut shell, "show /shares/default/tank"), tank);
    say(&mut shell, "cd configuration");
    assert_eq!(say(&mut shell, "ls .."), below);
    assert_eq!(say(&mut shell, "ls users"), "Users: none\n");
    say(&mut shell, "cd /");
}

#[test]
fn changes_wait_and_are_committed_together() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd configuration/services/nfs");
    assert_eq!(
        say(&mut shell, "set lease=60 enabled=off"),
        "  lease = 60s (uncommitted)\nenabled = off (uncommitted)\n"
    );
    say(&mut shell, "cd /shares/default/tank");
    say(&mut shell, "set exceptions='10.0.0.0/8(rw,sync),*(ro)'");
    say(&mut shell, "set exceptions+='192.168.0.0/16(rw)' exceptions-='*(ro)'");
    assert_eq!(shell.waiting(), 3);
    assert_eq!(fake.0.lock().unwrap().committed.len(), 0);
    assert_eq!(
        say(&mut shell, "pending"),
        "/configuration/services/nfs set lease=60s
/configuration/services/nfs set enabled=off
/shares/default/tank set exceptions='10.0.0.0/8(rw,sync),192.168.0.0/16(rw)'
"
    );
    assert_eq!(say(&mut shell, "commit for the new office"), "committed as revision 8\n");
    assert_eq!(shell.waiting(), 0);
    let held = fake.0.lock().unwrap();
    let [body] = held.committed.as_slice() else { panic!("{:?}", held.committed) };
    assert_eq!(body["comment"], "for the new office");
    assert_eq!(body["revision"], 7);
    assert_eq!(
        body["changes"],
        json!([
            {"set": "/configuration/services/nfs", "property": "lease", "value": 60},
            {"set": "/configuration/services/nfs", "property": "enabled", "value": false},
            {"set": "/shares/default/tank", "property": "exceptions",
             "value": ["10.0.0.0/8(rw,sync)", "192.168.0.0/16(rw)"]},
        ])
    );
}

#[test]
fn wrong_values_are_refused_at_once_and_change_nothing() {
    let (mut shell, ..) = shell();
    say(&mut shell, "cd configuration/services/nfs");
    for (line, sentence) in [
        ("set leese=1", "has no property 'leese' (did you mean 'lease'?)"),
        ("set lease=soon", "lease: 'soon' is not a time such as 90, 90s, 15m or 2h"),
        ("set lease=9999", "lease is at most 3600 seconds"),
        ("set enabled=off lease=9999", "lease is at most"),
        ("set status=online", "status is read-only"),
        ("unset nothing", "has no property 'nothing'"),
        (
            "/shares/default/tank set directory=/x",
            "directory can only be set when the share is created",
        ),
        ("/shares/default/tank set exceptions-='x'", "exceptions does not have x"),
        ("create x", "/configuration/services/nfs has no items that can be created"),
        ("/maintenance/sessions create x", "sessions are created by the server"),
        ("/shares/default create tank", "/shares/default/tank already exists"),
    ] {
        let (code, text) = wrong(&mut shell, line);
        assert_eq!(code, 1, "{line}");
        assert!(text.contains(sentence), "{line}: {text}");
        assert_eq!(shell.waiting(), 0, "{line}");
    }
    assert_eq!(wrong(&mut shell, "set lease").0, 2);
}

#[test]
fn a_line_with_a_path_commits_alone_unless_something_waits() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "configuration services nfs set lease=60");
    assert_eq!(shell.waiting(), 0);
    assert_eq!(last_changes(&fake)[0]["value"], 60);
    say(&mut shell, "/shares/default/tank");
    say(&mut shell, "set nfs=read-only");
    say(&mut shell, "/configuration/services/nfs set lease=70");
    assert_eq!(shell.waiting(), 2);
    assert_eq!(fake.0.lock().unwrap().committed.len(), 1);
}

#[test]
fn items_are_made_step_by_step() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd shares/default");
    assert_eq!(
        say(&mut shell, "create box nfs=read-only"),
        "nfs = read-only (uncommitted)\nnote: required, not set yet: directory\n"
    );
    assert_eq!(shell.here(), "shares default box");
    let (_, text) = wrong(&mut shell, "commit");
    assert!(text.contains("a share needs a directory"), "{text}");
    say(&mut shell, "set directory=/srv/box");
    say(&mut shell, "rename crate");
    assert_eq!(shell.here(), "shares default crate");
    assert!(say(&mut shell, ".. show").contains("crate  /srv/box   read-only"));
    say(&mut shell, "commit");
    assert_eq!(
        last_changes(&fake),
        json!([{"create": "/shares/default", "name": "crate",
            "properties": {"nfs": "read-only", "directory": "/srv/box"}}])
    );
    say(&mut shell, ".. create other directory=/o");
    assert_eq!(last_changes(&fake)[0]["name"], "other");
    assert_eq!(shell.here(), "shares default crate");
    say(&mut shell, "cd ..");
    say(&mut shell, "create third directory=/t");
    say(&mut shell, "abort");
    assert_eq!(shell.here(), "shares default");
}

#[test]
fn destroying_lists_what_goes_and_asks() {
    let (mut shell, fake, user) = shell();
    say(&mut shell, "cd /shares/default/tank");
    let (code, text) = wrong(&mut shell, "destroy");
    assert_eq!(
        (code, text.as_str()),
        (1, "1 share goes, its files stay (confirm with `destroy --yes`)")
    );
    user.0.lock().unwrap().yes = Some(false);
    say(&mut shell, "destroy");
    assert_eq!((shell.waiting(), shell.here().as_str()), (0, "shares default tank"));
    assert_eq!(user.0.lock().unwrap().asked[1], "1 share goes, its files stay. Destroy?");
    user.0.lock().unwrap().yes = Some(true);
    say(&mut shell, "destroy");
    assert_eq!((shell.waiting(), shell.here().as_str()), (1, "shares default"));
    assert_eq!(say(&mut shell, "list"), "Shares: none\n");
    say(&mut shell, "commit");
    assert_eq!(last_changes(&fake), json!([{"destroy": "/shares/default/tank", "confirm": true}]));
    assert_eq!(wrong(&mut shell, "destroy tank --yes").0, 1);
    say(&mut shell, "/shares destroy default --yes");
    assert_eq!(last_changes(&fake)[0]["destroy"], "/shares/default");
}

#[test]
fn renaming_keeps_what_was_there() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd shares/default");
    say(&mut shell, "rename tank vault");
    assert_eq!(say(&mut shell, "vault get directory"), "directory = /srv/tank\n");
    assert_eq!(wrong(&mut shell, "select tank").0, 1);
    say(&mut shell, "vault set nfs=none");
    say(&mut shell, "commit");
    assert_eq!(
        last_changes(&fake),
        json!([
            {"rename": "/shares/default/tank", "to": "vault"},
            {"set": "/shares/default/vault", "property": "nfs", "value": "none"},
        ])
    );
}

#[test]
fn changes_follow_an_item_that_is_renamed() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd shares/default/tank");
    say(&mut shell, "set exceptions+='10.0.0.1(rw),*(ro)'");
    say(&mut shell, "rename vault");
    say(&mut shell, "set exceptions-='*(ro)' nfs=none");
    say(&mut shell, "cd ..");
    say(&mut shell, "rename vault safe");
    say(&mut shell, "safe set exceptions+='10.0.0.2(rw)'");
    let shown = say(&mut shell, "safe get exceptions");
    assert!(shown.contains("10.0.0.1(rw)") && shown.contains("10.0.0.2(rw)"), "{shown}");
    assert!(say(&mut shell, "safe get nfs").contains("none (uncommitted)"));
    say(&mut shell, "commit");
    let rules = json!(["10.0.0.1(rw)", "10.0.0.2(rw)"]);
    assert_eq!(
        last_changes(&fake),
        json!([
            {"rename": "/shares/default/tank", "to": "vault"},
            {"set": "/shares/default/vault", "property": "nfs", "value": "none"},
            {"rename": "/shares/default/vault", "to": "safe"},
            {"set": "/shares/default/safe", "property": "exceptions", "value": rules},
        ])
    );
}

#[test]
fn changes_of_an_item_stay_when_another_one_gets_its_name() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd shares/default");
    say(&mut shell, "create box directory=/srv/box");
    say(&mut shell, "commit");
    say(&mut shell, "cd ../tank");
    say(&mut shell, "set nfs=none exceptions='10.0.0.1(rw)'");
    say(&mut shell, "cd ..");
    say(&mut shell, "rename tank old");
    say(&mut shell, "rename box tank");
    assert!(say(&mut shell, "tank get nfs").contains("nfs = -"));
    say(&mut shell, "tank set nfs=read-only");
    say(&mut shell, "tank unset exceptions");
    say(&mut shell, "commit");
    let (at, rules) = ("/shares/default/tank", json!(["10.0.0.1(rw)"]));
    assert_eq!(
        last_changes(&fake),
        json!([
            {"set": at, "property": "nfs", "value": "none"},
            {"set": at, "property": "exceptions", "value": rules},
            {"rename": at, "to": "old"},
            {"rename": "/shares/default/box", "to": "tank"},
            {"set": at, "property": "nfs", "value": "read-only"},
            {"unset": at, "property": "exceptions"},
        ])
    );
}

#[test]
fn a_new_item_below_one_that_is_renamed_stays_new() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd shares/default");
    say(&mut shell, "create box directory=/srv/box exceptions='10.0.0.1(rw)'");
    say(&mut shell, "cd /shares");
    say(&mut shell, "rename default main");
    say(&mut shell, "cd main/box");
    say(&mut shell, "set directory=/srv/crate exceptions+='10.0.0.2(rw)'");
    say(&mut shell, "rename crate");
    let list = say(&mut shell, ".. list");
    assert!(list.contains("crate") && list.contains("/srv/crate") && list.contains("tank"));
    assert!(!list.contains("box"), "{list}");
    let rename = json!({"rename": "/shares/default", "to": "main"});
    say(&mut shell, "commit");
    assert_eq!(
        last_changes(&fake),
        json!([
            {"create": "/shares/default", "name": "crate", "properties":
                {"directory": "/srv/crate", "exceptions": ["10.0.0.1(rw)", "10.0.0.2(rw)"]}},
            rename
        ])
    );
    say(&mut shell, "cd ..");
    say(&mut shell, "create box directory=/srv/box");
    say(&mut shell, "cd /shares");
    say(&mut shell, "rename main all");
    say(&mut shell, "cd all");
    say(&mut shell, "destroy box");
    assert!(!say(&mut shell, "list").contains("box"));
    say(&mut shell, "commit");
    assert_eq!(last_changes(&fake), json!([{"rename": "/shares/main", "to": "all"}]));
}

#[test]
fn secrets_are_asked_for_or_read_and_never_shown() {
    let (mut shell, fake, user) = shell();
    say(&mut shell, "cd configuration/users");
    user.0.lock().unwrap().files.insert("pw".into(), "from a file\n".into());
    assert_eq!(say(&mut shell, "create mia password=@pw"), "password = (set) (uncommitted)\n");
    assert_eq!(
        say(&mut shell, "pending"),
        "/configuration/users create mia password='(set)'\n".replace('\'', "")
    );
    say(&mut shell, "commit");
    assert_eq!(last_changes(&fake)[0]["properties"]["password"], "from a file");
    assert_eq!(wrong(&mut shell, "set password").0, 1);
    user.0.lock().unwrap().secret = Some("typed".into());
    say(&mut shell, "set password");
    say(&mut shell, "json on");
    assert!(!say(&mut shell, "pending").contains("typed"));
    assert!(!say(&mut shell, "show").contains("typed"));
    say(&mut shell, "commit");
    assert_eq!(last_changes(&fake)[0]["value"], "typed");
    say(&mut shell, "set password=@@home");
    say(&mut shell, "commit");
    assert_eq!(last_changes(&fake)[0]["value"], "@home");
    assert_eq!(
        wrong(&mut shell, "set password=@none").1,
        "cannot read none (write @@ for a value that starts with @)"
    );
    assert!(shell.has_secret("configuration users mia set password=x"));
    assert!(shell.has_secret("set password=@@x"));
    assert!(!shell.has_secret("set password=@file"));
    assert!(!shell.has_secret("set full_name='the password'"));
}

#[test]
fn actions_by_their_name() {
    let (mut shell, fake, user) = shell();
    let (code, text) = wrong(&mut shell, "configuration services nfs expire 10.0.0.1");
    assert_eq!(code, 1);
    assert!(text.contains("confirm with `expire --yes`"), "{text}");
    assert_eq!(
        say(&mut shell, "configuration services nfs expire client=a=b --yes"),
        "ended = 3\n"
    );
    let (code, text) = wrong(&mut shell, "configuration services nfs expire clinet=b --yes");
    assert_eq!(code, 2);
    assert!(text.contains("no parameter 'clinet' (did you mean 'client'?"), "{text}");
    say(&mut shell, "configuration services nfs");
    assert_eq!(wrong(&mut shell, "expire").0, 2);
    assert_eq!(wrong(&mut shell, "expire a b").0, 2);
    user.0.lock().unwrap().yes = Some(true);
    say(&mut shell, "expire client=c1");
    // An action comes before a command of the shell's outskirts.
    say(&mut shell, "history");
    let acted = fake.0.lock().unwrap().acted.clone();
    let expire = "/nodes/configuration/services/nfs/actions/expire".to_owned();
    assert_eq!(acted[0], (expire.clone(), json!({"parameters": {"client": "a=b"}})));
    assert_eq!(acted[1], (expire, json!({"parameters": {"client": "c1"}})));
    assert!(acted[2].0.ends_with("/actions/history"));
}

#[test]
fn a_conflict_is_reported_and_can_be_overridden() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd configuration/services/nfs");
    say(&mut shell, "set lease=60");
    fake.0.lock().unwrap().revision = 9;
    let (code, text) = wrong(&mut shell, "commit");
    assert_eq!(code, 1);
    assert!(text.contains("mia changed") && text.contains("commit --force"), "{text}");
    assert_eq!(shell.waiting(), 1);
    say(&mut shell, "commit --force");
    assert_eq!(last_changes(&fake)[0]["value"], 60);
}

#[test]
fn a_lost_server_is_one_sentence() {
    let (mut shell, fake, _) = shell();
    fake.0.lock().unwrap().gone = true;
    for line in ["show", "cd shares/default", "shares default", "export"] {
        let error = shell.run(line).unwrap_err();
        assert_eq!(
            error,
            CliError::Lost { sentence: "cannot reach the server".to_owned() },
            "{line}"
        );
        assert_eq!(error.exit_code(), 1);
    }
}

#[test]
fn what_may_have_been_done_is_not_called_undone() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd configuration/services/nfs");
    say(&mut shell, "set lease=60");
    fake.0.lock().unwrap().dies = true;
    for line in ["commit", "/shares/default create box directory=/srv/box"] {
        let error = shell.run(line).unwrap_err();
        let (hint, code) = (error.hint(), error.exit_code());
        if line == "commit" {
            assert!(hint.contains("unknown") && hint.contains("`history`"), "{hint}");
        } else {
            // Something waits: the line was only tried.
            assert!(hint.contains("uncommitted changes are lost"), "{line}: {hint}");
        }
        assert_eq!(code, 1);
        assert_eq!(shell.waiting(), 1, "{line}");
    }
}

#[test]
fn json_is_one_value_a_line() {
    let (mut shell, ..) = shell();
    say(&mut shell, "json");
    for line in [
        "show",
        "list",
        "get",
        "help",
        "pending",
        "configuration services nfs set lease=5",
        "help set",
    ] {
        let text = say(&mut shell, line);
        assert_eq!(text.lines().count(), 1, "{line}: {text}");
        serde_json::from_str::<Json>(&text).unwrap();
    }
    assert_eq!(say(&mut shell, "configuration services nfs get lease"), "{\"lease\":5}\n");
    assert_eq!(say(&mut shell, "cd shares"), "");
    say(&mut shell, "json off");
    assert!(say(&mut shell, "help").contains("Commands:"));
}

#[test]
fn files_out_and_in() {
    let (mut shell, _, user) = shell();
    assert_eq!(say(&mut shell, "export"), "# revision 7\n");
    say(&mut shell, "export a.toml");
    assert_eq!(user.0.lock().unwrap().files["a.toml"], "# revision 7\n");
    assert_eq!(say(&mut shell, "import a.toml"), "no difference\nrevision 8\n");
    assert_eq!(wrong(&mut shell, "import b.toml").0, 1);
    assert_eq!(wrong(&mut shell, "import --dry-run").0, 2);
    say(&mut shell, "cd configuration/services/nfs");
    say(&mut shell, "set lease=5");
    let (_, text) = wrong(&mut shell, "import a.toml");
    assert!(text.contains("1 change is not committed"), "{text}");
}

#[test]
fn leaving_with_changes_asks() {
    let (mut shell, _, user) = shell();
    say(&mut shell, "cd configuration/services/nfs");
    say(&mut shell, "set lease=60");
    assert_eq!(wrong(&mut shell, "exit").0, 1);
    user.0.lock().unwrap().yes = Some(false);
    assert_eq!(say(&mut shell, "exit"), "");
    user.0.lock().unwrap().yes = Some(true);
    assert_eq!(shell.run("quit"), Ok(Answer::Leave));
}

#[test]
fn help_lists_all_commands() {
    let (mut shell, ..) = shell();
    say(&mut shell, "cd configuration/services/nfs");
    let text = say(&mut shell, "help");
    for word in ["NFS: All about nfs.", "<status>", "expire CLIENT [--yes]", "set PROPERTY=VALUE"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("create NAME"), "{text}");
    let lease = say(&mut shell, "help lease");
    assert_eq!(lease, "lease: What lease is.\n  kind     time from 1s to 3600s\n  default  90s\n");
    assert!(say(&mut shell, "help expire").contains("usage    expire CLIENT [--yes]"));
    assert_eq!(wrong(&mut shell, "help nothing").0, 1);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn an_import_shows_what_has_come_and_gone_and_whether_it_was_done() {
    let answer = json!({"revision": 8, "notes": ["mind"], "changes": [
        {"path": "/a", "property": null, "before": null, "after": true},
        {"path": "/b", "property": null, "before": true, "after": null},
        {"path": "/a", "property": "p", "before": null, "after": true},
    ]});
    let told = "/a: made\n/b: gone\n/a p: - -> on\nnote: mind\n";
    assert_eq!(crate::cli::show::would_change(&answer), told);
    assert_eq!(crate::cli::show::changed(&answer), format!("{told}revision 8\n"));
    let (mut shell, _, user) = shell();
    user.0.lock().unwrap().files.insert("nas.toml".to_owned(), "format = 1\n".to_owned());
    assert_eq!(
        say(&mut shell, "import nas.toml --dry-run"),
        "no difference\nnothing was changed\n"
    );
    assert_eq!(say(&mut shell, "import nas.toml"), "no difference\nrevision 8\n");
}

#[test]
fn the_audit_log_is_asked_by_a_path_from_here() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "cd configuration/services");
    for (line, about) in [
        ("audit nfs", "/configuration/services/nfs"),
        ("audit ../users/gone", "/configuration/users/gone"),
        ("audit /shares", "/shares"),
    ] {
        assert_eq!(say(&mut shell, line), format!("no entries for {about}\n"));
        let asked = fake.0.lock().unwrap().acted.pop().unwrap().0;
        assert!(asked.ends_with(&about.replace('/', "%2F")), "{line}: {asked}");
    }
}

#[test]
fn transient_nodes_have_actions_of_any_name() {
    let (mut shell, fake, _) = shell();
    say(&mut shell, "shares default set nfs=read-only");
    say(&mut shell, "cd /shares/default");
    say(&mut shell, "set nfs=none");
    for name in ["abort", "destroy"] {
        let (code, text) = wrong(&mut shell, &format!("/maintenance/sessions/s1 {name}"));
        assert!(code == 1 && text.contains(&format!("confirm with `{name} --yes`")), "{text}");
        say(&mut shell, &format!("/maintenance/sessions/s1 {name} --yes"));
        let acted = fake.0.lock().unwrap().acted.pop().expect("it was asked for");
        assert_eq!(acted.0, format!("/nodes/maintenance/sessions/s1/actions/{name}"));
    }
    assert_eq!(shell.waiting(), 1, "what waits is not forgotten");
    say(&mut shell, "abort");
    assert_eq!(shell.waiting(), 0, "and here the word means what it means everywhere");
}

#[test]
fn what_has_not_happened_has_a_word_and_what_is_of_no_use_is_left_out() {
    let (mut shell, ..) = shell();
    let shown = say(&mut shell, "/maintenance/sessions/s1 show");
    assert!(shown.contains("<used> = never\n") && !shown.contains("phone"), "{shown}");
    assert_eq!(
        say(&mut shell, "/maintenance/sessions/s1 get used phone"),
        " <used> = never\n<phone> = -\n"
    );
    let help = say(&mut shell, "/maintenance/sessions/s1 help phone");
    assert!(help.contains("if       kind is phone\n"), "{help}");
}
