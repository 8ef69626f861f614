//! Alerts with statistics from the test and servers of the test: a mail server, a web server, a
//! place for syslog.

mod sinks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use analytics::model::{Frame, Key, Name, Rows, Table};
use analytics::names::HubResolver;
use base::clock::ManualClock;
use base::limits::{ALERT_ATTEMPTS_MAX, ALERT_QUEUE_MAX, KEPT_DATASETS_MAX};
use base::node::{Context, Value};
use probe::hub::{Hub, HubOptions};
use serde_json::{Value as Json, json};

use super::outbox::{Job, Queue, retry};
use super::*;
use crate::analytics_room::AnalyticsRoom;
use crate::state::tests::Scratch;
use crate::tree::tests::disk::MemoryDisk;
use crate::tree::tests::{Holder, actor, commit, create, path, request, set};
use crate::tree::view;
use crate::tree::viewer::Everything;
use crate::tree::{Operational, Subtree};
use sinks::{Mailbox, Web};

static CONFIGURATION: Context =
    Context::new("configuration", "Configuration", "All of it.", "configuration")
        .children(&[&analytics::alert::node::ALERTS]);
static ROOT: Context = Context::new("", "Test", "A tree.", "status")
    .children(&[&CONFIGURATION, &analytics::node::ANALYTICS]);

/// Friday, 15 January 2027, 12:00 UTC.
const T: u64 = 1_800_000_000 - 1_800_000_000 % 86_400 + 43_200;
/// Retries in a test come at once.
const SOON: Duration = Duration::from_millis(1);

/// The state of the server, as set by the test.
#[derive(Clone, Default)]
struct FakeFacts(Arc<AtomicBool>);

impl Facts for FakeFacts {
    fn now(&self, event: Event) -> Option<String> {
        let wrong = event == Event::Service && self.0.load(Ordering::SeqCst);
        wrong.then(|| "nfs is offline".to_owned())
    }
}

struct Scene {
    tree: Arc<Tree>,
    alerts: Arc<Alerts>,
    says: FakeFacts,
    second: u64,
    scratch: Scratch,
}

impl Scene {
    fn new() -> Self {
        let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 16 });
        let engine = Engine::new(hub.clone(), Arc::new(HubResolver(hub)), None);
        let clock = Arc::new(ManualClock::at(T * 1_000_000_000));
        let disk = Arc::new(MemoryDisk::default());
        let tree = Arc::new(Tree::open(disk, &ROOT, clock.clone()).unwrap());
        let scratch = Scratch::new();
        let datasets = Datasets::open(engine.clone(), scratch.path(), clock);
        let analytics = AnalyticsRoom::start(engine.clone(), datasets.clone(), &tree);
        let says = FakeFacts::default();
        let outbox = Outbox::start(SOON).unwrap();
        // Without the thread that reads the clock: seconds come from the test.
        let alerts = Arc::new(Alerts::new(engine, Box::new(says.clone()), datasets, "box", outbox));
        tree.join(vec![
            Subtree::new(&["configuration", "alerts"], alerts.clone()),
            Subtree::new(&["analytics"], analytics),
        ]);
        Self { tree, alerts, says, second: T, scratch }
    }

    fn alert(&self, name: &str, properties: Json) {
        let mut all = json!({
            "statistic": "nfs3.ops[op=read]", "limit": 100, "for": 2, "clear_for": 2,
        });
        let properties = properties.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(properties);
        commit(&self.tree, json!([create("/configuration/alerts", name, all)])).unwrap();
    }

    /// Seconds with the given numbers of reads of client `a`, and 10 of `b`.
    fn seconds(&mut self, reads: &[u64]) {
        for reads in reads {
            let mut rows = Rows::default();
            let read = Key::Name(Name::plain("read"));
            rows.add(Key::Name(Name::plain("10.0.0.7")), read.clone(), [*reads, 0]);
            rows.add(Key::Name(Name::plain("10.0.0.8")), read.clone(), [10, 0]);
            let mut all = Rows::default();
            all.add(Key::Name(Name::plain("default")), read, [*reads + 10, 0]);
            let table = |by: &str, rows| {
                Table::from_rows("nfs3.ops".into(), [by.into(), "op".into()], rows, [0; 2])
            };
            let tables = vec![table("client", rows), table("share", all)];
            let frame = Frame { time: self.second, span: 1, covered: 1, dropped: 0, tables };
            self.alerts.second(&frame);
            self.second += 1;
        }
    }

    fn state(&self, name: &str, property: &str) -> Value {
        let states = self.alerts.state(&path(&format!("/configuration/alerts/{name}")));
        let found = states.into_iter().find(|(known, _)| *known == property);
        found.unwrap_or_else(|| panic!("{property}")).1
    }

    fn recent(&self) -> Vec<String> {
        let states = self.alerts.state(&prefix());
        let (_, recent) = states.into_iter().find(|(name, _)| *name == "recent").unwrap();
        recent.as_texts().into_iter().map(str::to_owned).collect()
    }

    /// Waits until no message of an alert is pending.
    fn settled(&self, name: &str) {
        let until = base::clock::Deadline::after(Duration::from_secs(60));
        while self.state(name, "waiting") != Value::Integer(0) {
            assert!(!until.passed(), "{}", self.state(name, "delivery_error"));
            std::thread::yield_now();
        }
    }

    fn test(&self, name: &str) -> Result<Json, crate::tree::Problem> {
        let at = path(&format!("/configuration/alerts/{name}"));
        self.tree.act(&at, "test", &Default::default(), &actor(), &Everything)
    }
}

#[test]
fn it_fires_clears_and_fires_again_and_each_is_logged() {
    let mut scene = Scene::new();
    scene.alert("reads", json!({}));
    scene.seconds(&[500, 0, 500]);
    assert_eq!(scene.state("reads", "state"), Value::text("waiting"));
    assert_eq!(scene.recent(), Vec::<String>::new());
    scene.seconds(&[490]);
    assert_eq!(scene.state("reads", "state"), Value::text("firing"));
    assert_eq!(scene.state("reads", "value"), Value::text("500 ops/s"));
    assert_eq!(scene.alerts.firing().len(), 1);
    scene.seconds(&[0, 0]);
    assert_eq!(scene.state("reads", "state"), Value::text("quiet"));
    assert!(scene.alerts.firing().is_empty());
    scene.seconds(&[500, 500]);
    assert_eq!(scene.state("reads", "fired"), Value::Integer(2));
    assert_eq!(scene.state("reads", "last_fired"), Value::Integer((T + 7) as i64));
    let recent: Vec<String> = scene.recent().iter().map(|line| line[20..].to_owned()).collect();
    assert_eq!(
        recent,
        [
            "alert reads fired: NFSv3 operations per second of type read is above 100 ops/s: \
             current value 510 ops/s",
            "alert reads has cleared: it is 10 ops/s",
            "alert reads fired: NFSv3 operations per second of type read is above 100 ops/s: \
             current value 500 ops/s",
        ]
    );
}

#[test]
fn any_one_element_is_named_and_events_count_as_well() {
    let mut scene = Scene::new();
    scene.alert("client", json!({ "statistic": "nfs3.ops[client]", "for": 1 }));
    scene.alert("event", json!({ "when": "service", "for": 1, "clear_for": 1 }));
    scene.says.0.store(true, Ordering::SeqCst);
    scene.seconds(&[99, 101]);
    assert_eq!(scene.state("client", "value"), Value::text("101 ops/s (10.0.0.7)"));
    assert_eq!(scene.state("event", "value"), Value::text("nfs is offline"));
    let firing = scene.alerts.firing();
    assert_eq!(firing.len(), 2, "{firing:?}");
    assert_eq!(firing[1], "alert event: nfs is offline");
    scene.says.0.store(false, Ordering::SeqCst);
    scene.seconds(&[0]);
    assert_eq!(scene.state("event", "state"), Value::text("quiet"));
}

#[test]
fn what_it_is_to_keep_is_kept_from_the_second_in_which_it_fires() {
    const READS: &str = "nfs3.ops[op=read][share=data][file]";
    let mut scene = Scene::new();
    scene.alert("reads", json!({ "keep": READS, "keep_for": 3600 }));
    let sentence = scene.state("reads", "sentence");
    let says = format!("for 2 s, record {READS} for 1 h.");
    assert!(sentence.as_text().is_some_and(|text| text.ends_with(&says)), "{sentence}");
    let datasets = path("/analytics/datasets");
    let shown = |scene: &Scene| view::node(&scene.tree, &datasets, 1, &Everything).unwrap();
    scene.seconds(&[500]);
    assert_eq!(shown(&scene)["items"], json!([]));
    scene.seconds(&[500]);
    let node = &shown(&scene)["items"][0];
    let value = |name: &str| {
        let properties = node["properties"].as_array().unwrap();
        properties.iter().find(|one| one["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!((value("statistic"), value("by")), (json!(READS), json!("alert reads")));
    assert_eq!((value("since"), value("until")), (json!(T + 1), json!(T + 1 + 3600)));
    assert_eq!(value("state"), "keeping");
    let written = std::fs::read_to_string(scene.scratch.path().join("kept.json")).unwrap();
    assert!(written.contains("alert reads"), "{written}");

    // The dataset is extended when the alert fires again, and not created twice.
    scene.seconds(&[0, 0, 500, 500]);
    let list = scene.alerts.engine.kept().list();
    assert_eq!((list.len(), list[0].until), (1, T + 5 + 3600));
    let anyway = json!([set("/configuration/alerts/reads", "keep", "nfs3.ops[client]")]);
    let problem = commit(&scene.tree, anyway).unwrap_err().remove(0);
    assert_eq!(problem.property.as_deref(), Some("keep"));
    assert_eq!(problem.sentence, "nfs3.ops[client] is always recorded");
}

#[test]
fn too_many_datasets_are_reported_and_a_user_can_stop_one() {
    let mut scene = Scene::new();
    let datasets = path("/analytics/datasets");
    let act = |scene: &Scene, at: &str, action: &str, parameters: Json| {
        let parameters = serde_json::from_value(parameters).unwrap();
        scene.tree.act(&path(at), action, &parameters, &actor(), &Everything)
    };
    for n in 0..KEPT_DATASETS_MAX {
        let statistic = format!("nfs3.ops[op=read][share=s{n}][file]");
        act(&scene, &datasets.to_string(), "keep", json!({ "statistic": statistic })).unwrap();
    }
    scene.alert("reads", json!({ "keep": "nfs3.ops[op=read][user=7][file]", "for": 1 }));
    scene.seconds(&[500]);
    let told = scene.state("reads", "keep_error");
    assert_eq!(told, Value::text("8 datasets are being recorded, the maximum"));
    act(&scene, "/analytics/datasets/d3", "stop", json!({})).unwrap();
    let again = act(&scene, "/analytics/datasets/d3", "stop", json!({})).unwrap_err();
    assert_eq!(again.sentence, "it has ended already");
    scene.seconds(&[0, 0, 500]);
    assert_eq!(scene.state("reads", "keep_error"), Value::text(""));
    let names: Vec<String> =
        scene.alerts.engine.kept().list().into_iter().map(|one| one.name).collect();
    assert!(!names.contains(&"d3".to_owned()) && names.contains(&"d9".to_owned()), "{names:?}");
    act(&scene, "/analytics/datasets/d9", "destroy", json!({})).unwrap();
    let gone = act(&scene, "/analytics/datasets/d9", "stop", json!({})).unwrap_err();
    assert_eq!(gone.sentence, "there is no dataset named \"d9\"");
}

#[test]
fn all_receivers_are_notified_and_the_message_can_be_checked() {
    let (mailbox, web) = (Mailbox::start(), Web::start(&[200]));
    let syslog = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    syslog.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut scene = Scene::new();
    scene.mail(&mailbox);
    scene.alert(
        "reads",
        json!({
            "for": 1, "mail": ["ops@example.org", "anna@example.org"],
            "webhook": web.url("/hook?a=b"), "webhook_secret": "between-us",
            "syslog": format!("udp://{}", syslog.local_addr().unwrap()),
        }),
    );
    scene.seconds(&[12_335]);
    let mail = mailbox.next();
    assert_eq!(mail.from, "box@example.org");
    assert_eq!(mail.to, ["ops@example.org", "anna@example.org"]);
    assert!(mail.data.contains("Subject: [box] alert reads fired\r\n"), "{}", mail.data);
    assert!(mail.data.contains("current value 12 345 ops/s.\r\n"), "{}", mail.data);
    let post = web.next();
    assert_eq!(post.line, "POST /hook?a=b HTTP/1.1");
    let signature = webhook::signature("between-us", &post.body);
    assert!(
        post.head.contains(&format!("{}: {signature}\r\n", webhook::SIGNATURE)),
        "{}",
        post.head
    );
    let body: Json = serde_json::from_str(&post.body).unwrap();
    assert_eq!(body["event"], "fired");
    assert_eq!((&body["value"], &body["limit"]), (&json!(12_345.0), &json!(100.0)));
    let mut datagram = [0; 4096];
    let n = syslog.recv(&mut datagram).unwrap();
    let line = String::from_utf8_lossy(&datagram[..n]);
    assert!(line.starts_with("<28>1 20"), "{line}");
    assert!(
        line.contains("Z box plimsoll ") && line.contains(" alert - alert reads fired: "),
        "{line}"
    );
    scene.settled("reads");
    assert_eq!(scene.state("reads", "delivered"), Value::Integer(3));
    assert_eq!(scene.state("reads", "delivery_error"), Value::text(""));
}

#[test]
fn what_fails_is_tried_again_until_it_is_abandoned() {
    let mut scene = Scene::new();
    let web = Web::start(&[503, 503, 204]);
    scene.alert("reads", json!({ "for": 1, "clear_for": 1, "webhook": web.url("/") }));
    scene.seconds(&[500]);
    scene.settled("reads");
    assert_eq!(web.taken(), 3);
    assert_eq!(scene.state("reads", "delivered"), Value::Integer(1));
    assert_eq!(scene.state("reads", "delivery_error"), Value::text(""));
    // Not found is not found the next time either.
    let web = Web::start(&[404]);
    let at = "/configuration/alerts/reads";
    commit(&scene.tree, json!([set(at, "webhook", web.url("/"))])).unwrap();
    assert_eq!(scene.state("reads", "state"), Value::text("firing"), "it watches the same");
    scene.seconds(&[0]);
    scene.settled("reads");
    assert_eq!(web.taken(), 1);
    let error = scene.state("reads", "delivery_error").to_string();
    assert!(error.starts_with("webhook: 127.0.0.1:") && error.contains("404"), "{error}");
    // Always busy: it is tried so often and no more.
    let web = Web::start(&[503; 16]);
    commit(&scene.tree, json!([set(at, "webhook", web.url("/"))])).unwrap();
    scene.seconds(&[500]);
    scene.settled("reads");
    assert_eq!(web.taken(), ALERT_ATTEMPTS_MAX as usize);
}

#[test]
fn a_trial_message_lists_what_arrived_and_what_did_not() {
    let (mailbox, web) = (Mailbox::start(), Web::start(&[403]));
    let scene = Scene::new();
    scene.mail(&mailbox);
    scene.alert("quiet", json!({}));
    assert_eq!(scene.test("quiet").unwrap_err().sentence, "it has no recipient except the log");
    scene.alert("mail", json!({ "mail": ["ops@example.org"] }));
    assert_eq!(scene.test("mail").unwrap(), json!({ "delivered": ["mail to ops@example.org"] }));
    assert!(mailbox.next().data.contains("this is a test message"));
    scene.alert("both", json!({ "mail": ["ops@example.org"], "webhook": web.url("/") }));
    let problem = scene.test("both").unwrap_err();
    assert!(problem.sentence.contains("403"), "{problem:?}");
    assert_eq!(problem.hint, "mail to ops@example.org arrived");
}

#[test]
fn a_password_is_sent_under_tls_only() {
    let scene = Scene::new();
    let at = "/configuration/alerts";
    let refused = commit(
        &scene.tree,
        json!([set(at, "smtp_security", "none"), set(at, "smtp_user", "box"),]),
    );
    assert_eq!(refused.unwrap_err()[0].property.as_deref(), Some("smtp_security"));
    // A server without STARTTLS gets nothing but its greeting answered.
    let mailbox = Mailbox::start();
    scene.mail(&mailbox);
    commit(&scene.tree, json!([set(at, "smtp_security", "starttls")])).unwrap();
    scene.alert("mail", json!({ "mail": ["ops@example.org"] }));
    let problem = scene.test("mail").unwrap_err();
    assert!(problem.sentence.contains("does not offer STARTTLS"), "{problem:?}");
}

#[test]
fn mail_is_sent_under_tls_with_the_name_and_the_password() {
    let (mailbox, ca) = Mailbox::secure();
    let scene = Scene::new();
    let at = "/configuration/alerts";
    commit(
        &scene.tree,
        json!([
            set(at, "smtp_host", "localhost"),
            set(at, "smtp_port", mailbox.port),
            set(at, "mail_from", "box@example.org"),
            set(at, "smtp_user", "box"),
            set(at, "smtp_password", "only for mail"),
        ]),
    )
    .unwrap();
    scene.alert("mail", json!({ "mail": ["ops@example.org"] }));
    let problem = scene.test("mail").unwrap_err();
    assert!(
        problem.sentence.contains("certificate") || problem.sentence.contains("trusted"),
        "{problem:?}"
    );
    commit(
        &scene.tree,
        json!([set(at, "trusted_certificates", ca.path().join("ca").to_str().unwrap())]),
    )
    .unwrap();
    scene.test("mail").unwrap();
    let mail = mailbox.next();
    assert_eq!(mail.auth, format!("PLAIN {}", base::base64::encode(b"\0box\0only for mail")));
}

#[test]
fn the_mail_password_stays_with_its_server() {
    let scene = Scene::new();
    let at = "/configuration/alerts";
    let server = json!([
        set(at, "smtp_host", "mail.example.org"),
        set(at, "mail_from", "box@example.org"),
        set(at, "smtp_user", "box"),
        set(at, "smtp_password", "only for mail"),
    ]);
    commit(&scene.tree, server).unwrap();
    let viewer = Holder(&["analytics:change", "configuration:change"]);
    let change = |changes| scene.tree.commit(&request(changes), &actor(), &viewer);
    let other = || set(at, "smtp_host", "mail.example.net");
    let refused = [
        change(json!([other()])),
        change(json!([set(at, "smtp_port", 2525)])),
        change(json!([set(at, "trusted_certificates", "/srv/share/ca.pem")])),
        change(json!([{ "unset": at, "property": "smtp_host" }])),
        scene.tree.import(
            &scene.tree.export("box").replace("example.org", "example.net"),
            false,
            &actor(),
            &viewer,
        ),
    ];
    for result in refused {
        let problem = result.unwrap_err().remove(0);
        assert_eq!(problem.property.as_deref(), Some("smtp_password"), "{problem:?}");
    }
    // What does not decide on the recipient; another one with another password, or without one.
    change(json!([set(at, "mail_from", "nas@example.org")])).unwrap();
    change(json!([other(), set(at, "smtp_password", "another")])).unwrap();
    let without = json!({ "unset": at, "property": "smtp_password" });
    change(json!([set(at, "smtp_host", "mail.example.com"), without])).unwrap();
    commit(&scene.tree, json!([set(at, "smtp_password", "again")])).unwrap();
    commit(&scene.tree, json!([other()])).unwrap();
}

#[test]
fn mail_without_a_server_and_invalid_values_are_refused() {
    let scene = Scene::new();
    let refuse = |properties: Json| {
        let made = commit(&scene.tree, json!([create("/configuration/alerts", "a", properties)]));
        let problem = made.unwrap_err().remove(0);
        (problem.path.to_string(), problem.property.unwrap_or_default())
    };
    let at = |path: &str, property: &str| (path.to_owned(), property.to_owned());
    assert_eq!(
        refuse(json!({ "statistic": "nfs3.ops", "limit": 1, "mail": ["ops@example.org"] })),
        at("/configuration/alerts", "smtp_host")
    );
    assert_eq!(refuse(json!({ "limit": 1 })), at("/configuration/alerts/a", "statistic"));
    assert_eq!(
        refuse(json!({ "statistic": "nfs3.ops", "limit": 1, "syslog": "nowhere" })),
        at("/configuration/alerts/a", "syslog")
    );
}

#[test]
fn an_alert_continues_under_another_name_and_restarts_with_another_limit() {
    let mut scene = Scene::new();
    scene.alert("reads", json!({}));
    scene.seconds(&[500, 500]);
    let rename = json!([{ "rename": "/configuration/alerts/reads", "to": "heavy" }]);
    commit(&scene.tree, rename).unwrap();
    assert_eq!(scene.state("heavy", "state"), Value::text("firing"));
    assert_eq!(scene.state("heavy", "fired"), Value::Integer(1));
    commit(&scene.tree, json!([set("/configuration/alerts/heavy", "limit", 1000)])).unwrap();
    assert_eq!(scene.state("heavy", "state"), Value::text("quiet"));
    commit(&scene.tree, json!([set("/configuration/alerts/heavy", "enabled", false)])).unwrap();
    scene.seconds(&[5000, 5000]);
    assert_eq!(scene.state("heavy", "state"), Value::text("disabled"));
}

#[test]
fn what_fires_has_cleared_for_its_recipients_when_it_is_removed_or_changed() {
    let at = "/configuration/alerts/reads";
    let ends = [
        (json!([{ "destroy": at, "confirm": true }]), "it was removed"),
        (json!([set(at, "limit", 1_000)]), "it was changed"),
        // Also those that it does not have any more.
        (json!([set(at, "limit", 1_000), set(at, "webhook", "http://[::1]:1/")]), "it was changed"),
        (json!([set(at, "enabled", false)]), "it was disabled"),
    ];
    for (changes, why) in ends {
        let mut scene = Scene::new();
        let web = Web::start(&[200, 200, 200]);
        scene.alert("reads", json!({ "for": 1, "clear_for": 1, "webhook": web.url("/") }));
        scene.seconds(&[500]);
        let event = |post: sinks::Post| {
            let body: Json = serde_json::from_str(&post.body).unwrap();
            (body["event"].clone(), body["text"].clone())
        };
        assert_eq!(event(web.next()).0, "fired");
        commit(&scene.tree, changes).unwrap();
        let text = format!("alert reads has cleared: {why}");
        assert_eq!(event(web.next()), (json!("cleared"), json!(text)));
        assert_eq!(scene.recent()[0][20..], text);
        assert!(scene.alerts.firing().is_empty());
        // Once, and not if it does not fire.
        scene.seconds(&[0, 0]);
        scene.alert("quiet", json!({ "webhook": web.url("/") }));
        commit(&scene.tree, json!([set("/configuration/alerts/quiet", "limit", 7)])).unwrap();
        assert_eq!(scene.recent().len(), 2, "{:?}", scene.recent());
        assert_eq!(scene.state("quiet", "waiting"), Value::Integer(0));
    }
}

#[test]
fn the_outbox_is_bounded_and_waits_longer_each_time() {
    let scene = Scene::new();
    scene.alert("reads", json!({}));
    let message = {
        let inner = scene.alerts.inner();
        Arc::new(scene.alerts.message("reads", &inner.watched["reads"], Kind::Fired, T))
    };
    let job = |tried, due_ns| Job {
        alert: "reads".to_owned(),
        target: Target::Syslog(analytics::alert::Syslog::Unix("/nowhere".to_owned())),
        message: message.clone(),
        tried,
        due_ns,
    };
    let mut queue = Queue::default();
    assert!(matches!(queue.take(0), Err(None)));
    queue.push(job(1, 500));
    queue.push(job(2, 100));
    assert!(matches!(queue.take(0), Err(Some(wait)) if wait == Duration::from_nanos(100)));
    assert_eq!(queue.take(100).map(|job| job.tried).ok(), Some(2), "what is due goes first");
    for n in 0..ALERT_QUEUE_MAX as u32 - 1 {
        assert!(queue.push(job(n, 0)).is_none());
    }
    let lost = queue.push(job(99, 0)).map(|job| job.due_ns);
    assert_eq!(lost, Some(500), "the oldest");
    let seconds = |tried| retry(ALERT_RETRY, tried).map(|wait| wait.as_secs());
    assert_eq!([1, 2, 3, 4].map(seconds), [5, 20, 80, 320].map(Some));
    assert_eq!(seconds(ALERT_ATTEMPTS_MAX), None);
}

#[test]
fn nothing_of_a_peer_ends_a_line() {
    let mut scene = Scene::new();
    scene.alert("reads", json!({ "statistic": "nfs3.ops[client]", "for": 1 }));
    scene.seconds(&[500]);
    let inner = scene.alerts.inner();
    let watched = &inner.watched["reads"];
    let mut message = scene.alerts.message("reads", watched, Kind::Fired, T);
    message.seen.detail = Some("a\r\n.\r\nMAIL FROM:<x@y>\r\nSubject: ü".to_owned());
    assert!(!message.line().contains('\n') && !message.syslog().contains('\n'));
    let smtp = Smtp {
        host: "h".into(),
        port: 1,
        security: Security::None,
        user: None,
        from: "b@x".into(),
    };
    let mail = String::from_utf8(mail::mail(&smtp, &["c@d".to_owned()], &message)).unwrap();
    assert!(mail.contains("Content-Transfer-Encoding: base64"), "{mail}");
    assert_eq!(mail.matches("\r\n.\r\n").count(), 1, "{mail}");
    assert!(message.date().starts_with("Fri, 15 Jan 2027 12:00:00"), "{}", message.date());
    message.seen.detail = Some("x".repeat(5_000));
    assert!(message.syslog().len() <= base::limits::SYSLOG_MESSAGE_MAX);
}

impl Scene {
    /// Mail is sent to this server, unencrypted.
    fn mail(&self, mailbox: &Mailbox) {
        let at = "/configuration/alerts";
        let changes = json!([
            set(at, "smtp_host", "127.0.0.1"),
            set(at, "smtp_port", mailbox.port),
            set(at, "smtp_security", "none"),
            set(at, "mail_from", "box@example.org"),
        ]);
        commit(&self.tree, changes).unwrap();
    }
}
