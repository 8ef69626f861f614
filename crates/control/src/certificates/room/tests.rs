//! Certificates through the tree: chosen, supplied, refused, incomplete.

use std::net::Ipv4Addr;

use base::clock::ManualClock;
use base::node::Context;
use serde_json::json;

use super::super::node::CERTIFICATES;
use super::super::pair::tests::{authority, signed};
use super::*;
use crate::state::tests::Scratch;
use crate::tree::Request;
use crate::tree::engine::Done;
use crate::tree::store::Folder as Disk;
use crate::tree::viewer::Everything;

static ROOT: Context = Context::new("", "Test", "All of it.", "status").children(&[&CONFIGURATION]);
static CONFIGURATION: Context =
    Context::new("configuration", "C", "Some of it.", "configuration").children(&[&CERTIFICATES]);

/// 2027-01-15.
const NOW: u64 = 1_800_000_000;

struct Scene {
    tree: Arc<Tree>,
    room: Arc<Certificates>,
    clock: Arc<ManualClock>,
    scratch: Scratch,
}

impl Scene {
    fn new() -> Self {
        Self::at(Scratch::new())
    }

    fn at(scratch: Scratch) -> Self {
        let clock = Arc::new(ManualClock::at(NOW * NS_PER_S));
        let disk = Arc::new(Disk::new(scratch.path()));
        let tree = Arc::new(Tree::open(disk, &ROOT, clock.clone()).unwrap());
        let names = ["localhost", "nas"].map(str::to_owned).to_vec();
        let host = Host { names, address: Ipv4Addr::LOCALHOST.into() };
        let room = Certificates::start(scratch.path(), host, &tree, clock.clone()).unwrap();
        tree.join(vec![room.branch()]);
        Self { tree, room, clock, scratch }
    }

    fn change(&self, changes: Json) -> Result<Done, Vec<Problem>> {
        let request: Request = serde_json::from_value(json!({ "changes": changes })).unwrap();
        self.tree.commit(&request, &Actor::new("anna", "local"), &Everything)
    }

    fn refused(&self, changes: Json) -> Problem {
        let before = self.room.shown().identity();
        let problem = self.change(changes).unwrap_err().remove(0);
        assert!(self.room.shown().identity() == before, "nothing has changed");
        problem
    }

    fn state(&self, name: &str, property: &str) -> String {
        let path = Path::of(&["configuration", "certificates", name]);
        let state = self.room.state(&path);
        let found = state.into_iter().find(|(name, _)| *name == property);
        found.map(|(_, value)| value.to_string()).unwrap_or_default()
    }
}

const AT: &str = "/configuration/certificates";

fn create(name: &str, identity: &Identity) -> Json {
    let Identity { certificate_pem: chain, key_pem: key } = identity;
    json!({ "create": AT, "name": name, "properties": { "chain": chain, "key": key } })
}

fn in_use(name: &str) -> Json {
    json!({ "set": AT, "property": "in_use", "value": name })
}

#[test]
fn a_supplied_certificate_is_shown_once_it_is_chosen() {
    let scene = Scene::new();
    let office = signed(&authority("CA"), &["nas.example", "nas"], 2100);
    let own = scene.room.shown().identity();
    scene.change(json!([create("office", &office)])).unwrap();
    assert!(scene.room.shown().identity() == own, "not chosen yet");
    assert_eq!(scene.state("office", "state"), "good");
    assert_eq!(scene.state("office", "reason"), "");
    assert_eq!(scene.state("office", "names_in_it"), "nas.example, nas");
    scene.change(json!([in_use("office")])).unwrap();
    assert!(scene.room.shown().identity() == office, "at once");
    assert_eq!(scene.state("office", "in_use"), "true");
    assert_eq!(scene.room.problem(), None);
    assert_eq!(scene.room.fingerprint(), scene.state("office", "fingerprint"));

    let Scene { scratch, tree, room, .. } = scene;
    drop((tree, room));
    let again = Scene::at(scratch);
    assert!(again.room.shown().identity() == office, "after a restart too");
    again.change(json!([in_use("self-signed")])).unwrap();
    assert!(again.room.shown().identity() == own);
}

#[test]
fn what_does_not_go_together_is_refused_with_the_property() {
    let scene = Scene::new();
    let ca = authority("CA");
    let (good, other) = (signed(&ca, &["nas"], 2100), signed(&ca, &["nas"], 2100));
    let mixed = Identity { key_pem: other.key_pem.clone(), ..good.clone() };
    let problem = scene.refused(json!([create("a", &mixed)]));
    assert_eq!(problem.property.as_deref(), Some("key"), "{problem}");
    let ended = signed(&ca, &["nas"], 2026);
    let problem = scene.refused(json!([create("a", &ended)]));
    assert!(problem.sentence.contains("expired at 2026-01-01"), "{problem}");
    let problem = scene.refused(json!([in_use("a")]));
    assert_eq!(problem.property.as_deref(), Some("in_use"), "{problem}");

    scene.change(json!([create("a", &good), in_use("a")])).unwrap();
    let key = json!({ "set": format!("{AT}/a"), "property": "key", "value": other.key_pem });
    assert_eq!(scene.refused(json!([key])).property.as_deref(), Some("key"));
    let destroy = json!({ "destroy": format!("{AT}/a"), "confirm": true });
    let problem = scene.refused(json!([destroy.clone()]));
    assert!(problem.sentence.contains("unknown certificate \"a\""), "{problem}");
    scene.change(json!([destroy, in_use("self-signed")])).unwrap();
    let another = json!({ "create": AT, "name": "b", "properties": { "source": "self-signed" } });
    assert_eq!(scene.refused(json!([another])).property.as_deref(), Some("source"));
}

#[test]
fn what_is_incomplete_is_reported_and_the_servers_own_is_shown() {
    let scene = Scene::new();
    let good = signed(&authority("CA"), &["elsewhere.example"], 2100);
    let chain = json!({ "chain": good.certificate_pem });
    let create = json!({ "create": AT, "name": "a", "properties": chain });
    let own = scene.room.shown().identity();
    // As an import from another server leaves it: its secrets are not in the file.
    scene.change(json!([create, in_use("a")])).unwrap();
    assert!(scene.room.shown().identity() == own);
    let problem = scene.room.problem().unwrap();
    assert_eq!(problem, "the certificate a cannot be used: its key must be set");
    assert_eq!(scene.state("a", "state"), "incomplete");
    let key = json!({ "set": format!("{AT}/a"), "property": "key", "value": good.key_pem });
    scene.change(json!([key])).unwrap();
    assert!(scene.room.shown().identity() == good && scene.room.problem().is_none());
    let reason = scene.state("a", "reason");
    assert!(reason.starts_with("it is for elsewhere.example, but this host"), "{reason}");
}

#[test]
fn it_ends_and_reports_that() {
    let scene = Scene::new();
    let good = signed(&authority("CA"), &["nas"], 2028);
    scene.change(json!([create("a", &good), in_use("a")])).unwrap();
    assert_eq!(scene.state("a", "state"), "ending", "a year of eight is left");
    scene.clock.advance(std::time::Duration::from_secs(370 * 24 * 3600));
    assert_eq!(scene.state("a", "state"), "ended");
    let problem = scene.room.problem().unwrap();
    assert_eq!(problem, "the certificate a expired at 2028-01-01 00:00:00 UTC");
}

#[test]
fn an_alert_reports_what_ends_soon_and_orders_that_failed() {
    let scene = Scene::new();
    assert_eq!(scene.room.warning(14), None);
    let good = signed(&authority("CA"), &["nas"], 2028);
    scene.change(json!([create("a", &good)])).unwrap();
    let days = |n: u64| std::time::Duration::from_secs(n * 24 * 3600);
    // From 2027-01-15 08:00 to the end of the year.
    scene.clock.advance(days(351 - 14));
    // The server's own is renewed by the keeper, which is not at work here.
    scene.room.renew_own(false).unwrap();
    assert_eq!(scene.room.warning(13), None);
    let soon = scene.room.warning(14).unwrap();
    assert_eq!(soon, "the certificate a expires at 2028-01-01 00:00:00 UTC");
    scene.clock.advance(days(14));
    let ended = scene.room.warning(1).unwrap();
    assert_eq!(ended, "the certificate a expired at 2028-01-01 00:00:00 UTC");
    scene.change(json!([{ "destroy": format!("{AT}/a"), "confirm": true }])).unwrap();
    let acme = json!({ "create": AT, "name": "le", "properties": {
        "source": "acme", "domains": ["nas.example"], "terms_agreed": true,
    } });
    scene.change(json!([acme])).unwrap();
    assert_eq!(scene.room.warning(14), None, "requested from the CA");
    scene.room.ordered("le", Some("nobody answers".to_owned()));
    let failed = scene.room.warning(14).unwrap();
    assert_eq!(failed, "the certificate le cannot be issued: nobody answers");
    scene.room.ordered("le", None);
    assert_eq!(scene.room.warning(14), None);
}

#[test]
fn the_servers_own_is_renewed_in_time_and_when_asked() {
    let scene = Scene::new();
    let own = scene.room.shown().identity();
    scene.room.renew_own(false).unwrap();
    assert!(scene.room.shown().identity() == own, "nothing to do yet");
    let wait = scene.room.next() - scene.room.now();
    scene.clock.advance(std::time::Duration::from_secs(wait));
    scene.room.renew_own(false).unwrap();
    let second = scene.room.shown().identity();
    assert!(second != own);
    let path = Path::of(&["configuration", "certificates", OWN]);
    let who = Actor::new("anna", "local");
    scene.tree.act(&path, "renew", &BTreeMap::new(), &who, &Everything).unwrap();
    assert!(scene.room.shown().identity() != second);
    scene.change(json!([{ "set": AT, "property": "names", "value": ["10.1.2.3"] }])).unwrap();
    assert!(scene.state(OWN, "names_in_it").contains("10.1.2.3"));
}

#[test]
fn orders_wait_for_the_terms_and_longer_after_each_failure() {
    let scene = Scene::new();
    let acme = json!({ "create": AT, "name": "le", "properties": {
        "source": "acme", "domains": ["nas.example"], "directory": "https://127.0.0.1:1/dir",
    } });
    scene.change(json!([acme])).unwrap();
    assert!(scene.room.due().is_empty() && scene.state("le", "state") == "incomplete");
    let path = Path::of(&["configuration", "certificates", "le"]);
    let who = Actor::new("anna", "local");
    let renew = || scene.tree.act(&path, "renew", &BTreeMap::new(), &who, &Everything);
    assert_eq!(renew().unwrap_err().sentence, "the terms of the CA are not agreed to");
    let agree = json!({ "set": format!("{AT}/le"), "property": "terms_agreed", "value": true });
    scene.change(json!([agree])).unwrap();
    assert_eq!(scene.room.due().len(), 1);
    assert_eq!(scene.state("le", "state"), "waiting");
    for wait in [60, 240, 960] {
        scene.room.ordered("le", Some("no".to_owned()));
        assert_eq!(scene.state("le", "state"), "failed");
        assert_eq!(scene.state("le", "reason"), "no");
        assert!(scene.room.due().is_empty());
        assert_eq!(scene.room.next(), scene.room.now() + wait);
        scene.clock.advance(std::time::Duration::from_secs(wait));
        assert_eq!(scene.room.due().len(), 1);
    }
    scene.room.ordered("le", Some("no".to_owned()));
    renew().unwrap();
    assert_eq!(scene.room.due().len(), 1, "asked for");

    let given = signed(&authority("CA"), &["nas.example"], 2100);
    scene.room.keep("le", |issued| {
        issued.directory = "https://127.0.0.1:1/dir".to_owned();
        issued.domains = vec!["nas.example".to_owned()];
        (issued.chain, issued.key) = (Some(given.certificate_pem), Some(given.key_pem));
    });
    scene.room.ordered("le", None);
    assert!(scene.room.due().is_empty());
    let rename = json!({ "rename": format!("{AT}/le"), "to": "public" });
    scene.change(json!([rename])).unwrap();
    assert!(scene.room.due().is_empty(), "it goes on under its new name");
    let domains = json!(["nas.example", "www.example"]);
    let more = json!({ "set": format!("{AT}/public"), "property": "domains", "value": domains });
    scene.change(json!([more])).unwrap();
    assert_eq!(scene.room.due().len(), 1, "other names take another certificate");
    assert_ne!(scene.state("public", "state"), "waiting", "the one before goes on");

    let file = scene.scratch.path().join("certificates/public.json");
    scene.room.forget();
    assert!(file.exists());
    scene.change(json!([{ "destroy": format!("{AT}/public"), "confirm": true }])).unwrap();
    scene.room.forget();
    assert!(!file.exists(), "keys of what is no more are not kept");
}

#[test]
fn orders_that_cannot_be_are_refused() {
    let scene = Scene::new();
    let case = |property: &str, properties: Json| {
        let create = json!({ "create": AT, "name": "le", "properties": properties });
        let problem = scene.refused(json!([create]));
        assert_eq!(problem.property.as_deref(), Some(property), "{problem}");
    };
    case("domains", json!({ "source": "acme" }));
    let http = "http://ca.example/directory";
    case("directory", json!({ "source": "acme", "domains": ["a.b"], "directory": http }));
    let pem = "-----BEGIN X-----\nMAA=\n-----END X-----";
    case("authorities", json!({ "source": "acme", "domains": ["a.b"], "authorities": pem }));
}

#[test]
fn the_host_goes_by_its_names_and_those_of_its_certificates() {
    let scene = Scene::new();
    let is_own = |host: &str| scene.room.is_own_host(host);
    for host in ["nas", "NAS:215", "nas.", "nas.local", "localhost:1", "10.0.0.1", "[::1]:215", ""]
    {
        assert!(is_own(host), "{host}");
    }
    for host in ["evil.example", "nas.evil.example", "local", "nasty", "office.example"] {
        assert!(!is_own(host), "{host}");
    }
    let office = signed(&authority("CA"), &["office.example", "*.site.example"], 2100);
    scene.change(json!([create("office", &office)])).unwrap();
    assert!(is_own("office.example") && is_own("any.site.example:443"));
    assert!(!is_own("more.any.site.example"));
    let other = json!({ "set": AT, "property": "names", "value": ["nas.example.org"] });
    scene.change(json!([other])).unwrap();
    assert!(is_own("nas.example.org:215"));
    assert!(!is_own("evil.example"));
}
