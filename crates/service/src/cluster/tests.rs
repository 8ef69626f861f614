//! What the tree, alerts and problems have of a head that answers, of one that does not, and
//! without one.

use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use control::tree::Operational;
use head::local::Response;
use head::takeover::{Cause, Phases};

use super::*;

type State = Vec<(&'static str, Value)>;

fn path(segments: &[&str]) -> Path {
    Path::of(segments)
}

fn value(state: &State, name: &str) -> Option<Value> {
    state.iter().find(|(one, _)| *one == name).map(|(_, value)| value.clone())
}

fn now() -> u64 {
    wall_ns() / NS_PER_S
}

fn accounts(owner: Option<&str>) -> ResourceStatus {
    let phases = Phases { hand_over: 300, claim: 20, lock: 5, start: 400, address: 1 };
    ResourceStatus {
        name: "accounts".to_owned(),
        state: "owner".to_owned(),
        owner: owner.map(str::to_owned),
        preferred: "left".to_owned(),
        address: "10.0.0.7/24".to_owned(),
        last: Some(Takeover {
            from: "left".to_owned(),
            to: "right".to_owned(),
            cause: Cause::HeadLost,
            at: now(),
            phases: Some(phases),
            ..Takeover::default()
        }),
        ..ResourceStatus::default()
    }
}

fn status(resource: ResourceStatus) -> Status {
    Status {
        head: "right".to_owned(),
        cluster: "lab".to_owned(),
        lease_s: Some("1.5".to_owned()),
        members: vec![("left".to_owned(), true), ("right".to_owned(), false)],
        resources: vec![resource],
        ..Status::default()
    }
}

/// A cluster of which this was the last answer.
fn with(answer: Answer) -> Arc<Cluster> {
    let cluster = Cluster::new(Some(PathBuf::from("/nonexistent/head.sock")));
    cluster.take(answer);
    cluster
}

/// A head that answers a number of requests with this status, and refuses the head `x`.
fn answering(name: &str, requests: usize, status: Status) -> (PathBuf, JoinHandle<Vec<Command>>) {
    let socket = std::env::temp_dir().join(format!("cluster-{name}-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&socket).expect("a socket");
    let work = move || {
        let mut commands = Vec::new();
        for stream in listener.incoming().take(requests) {
            let answered = local::answer(stream.expect("a connection"), |command| {
                let strange =
                    matches!(&command, Command::Takeover { to: Some(to), .. } if to == "x");
                commands.push(command);
                let error = strange.then(|| "the head x is not a member".to_owned());
                Some(Response { error, status: status.clone() })
            });
            answered.expect("answered");
        }
        commands
    };
    (socket, std::thread::spawn(work))
}

#[test]
fn heads_and_resources_are_shown() {
    let cluster = with(Ok(status(accounts(Some("right")))));
    assert_eq!(cluster.items(&path(&["cluster", "heads"])), ["left", "right"]);
    assert_eq!(cluster.items(&path(&["cluster", "resources"])), ["accounts"]);
    let shown = cluster.state(&path(&["cluster"]));
    assert_eq!(value(&shown, "state"), Some(Value::text("member")));
    assert_eq!(value(&shown, "reason"), Some(Value::text("")));
    let right = cluster.state(&path(&["cluster", "heads", "right"]));
    assert_eq!(value(&right, "state"), Some(Value::text("member")));
    assert_eq!(value(&right, "this_machine"), Some(Value::Bool(true)));
    assert_eq!(value(&right, "owns"), Some(Value::texts(["accounts"])));
    let left = cluster.state(&path(&["cluster", "heads", "left"]));
    assert_eq!(value(&left, "state"), Some(Value::text("draining")));
    assert_eq!(value(&left, "preferred_by"), Some(Value::texts(["accounts"])));
    let shown = cluster.state(&path(&["cluster", "resources", "accounts"]));
    let expected = [
        ("state", Value::text("served")),
        ("owner", Value::text("right")),
        ("addresses", Value::texts(["10.0.0.7/24"])),
        ("takeover_from", Value::text("left")),
        ("takeover_cause", Value::text("head_lost")),
        ("takeover_total", Value::number(726)),
        ("takeover_start", Value::number(400)),
    ];
    for (name, wanted) in expected {
        assert_eq!(value(&shown, name), Some(wanted), "{name}");
    }
}

#[test]
fn the_state_of_a_resource_is_that_of_its_owner() {
    let state = |change: fn(&mut ResourceStatus)| {
        let mut one = accounts(Some("left"));
        change(&mut one);
        let cluster = with(Ok(status(one)));
        value(&cluster.state(&path(&["cluster", "resources", "accounts"])), "state")
    };
    // Of another head it is known what etcd has.
    assert_eq!(state(|_| ()), Some(Value::text("served")));
    let moves = state(|one| one.target = Some("right".to_owned()));
    assert_eq!(moves, Some(Value::text("handing_over")));
    let starts = state(|one| {
        one.owner = Some("right".to_owned());
        one.last.as_mut().expect("a takeover").phases = None;
    });
    assert_eq!(starts, Some(Value::text("starting")));
    assert_eq!(state(|one| one.owner = None), Some(Value::text("unowned")));
    let failed = state(|one| (one.owner, one.state) = (None, "failed".to_owned()));
    assert_eq!(failed, Some(Value::text("failed")));
}

#[test]
fn a_takeover_is_an_alert_and_a_line_in_the_log() {
    let mut one = accounts(Some("right"));
    let cluster = with(Ok(status(one.clone())));
    let said = cluster.takeover().expect("an alert");
    let expected = "accounts was taken over by right from left (the lease of the former owner is \
                    over) in 726 ms: hand-over 300 ms, claim 20 ms, fence and lock 5 ms, start \
                    400 ms, address 1 ms";
    assert_eq!(said, expected);
    let is_logged = || {
        let lines = base::log::lines(&base::log::LogQuery::newest(1_000));
        lines.iter().filter(|line| line.text.starts_with("accounts: taken over by right")).count()
    };
    assert_eq!(is_logged(), 1);
    cluster.take(Ok(status(one.clone())));
    assert_eq!(is_logged(), 1, "each takeover is one line");

    // The first start is none, and an older one is over.
    let last = one.last.as_mut().expect("a takeover");
    last.at -= RECENT_S + 1;
    assert_eq!(with(Ok(status(one.clone()))).takeover(), None);
    let last = one.last.as_mut().expect("a takeover");
    (last.at, last.from) = (now(), String::new());
    assert_eq!(with(Ok(status(one))).takeover(), None);
}

#[test]
fn a_resource_without_owner_and_a_head_alone_are_problems() {
    let good = with(Ok(status(accounts(Some("right")))));
    assert_eq!(good.warning(), None);
    let mut lost = accounts(None);
    lost.why = Some("the lock is held by left".to_owned());
    let mut tried = lost.clone();
    let faults = with(Ok(status(lost))).faults();
    let [fault] = faults.as_slice() else { panic!("{faults:?}") };
    assert_eq!(
        (fault.id.as_str(), fault.severity),
        ("cluster-resource-accounts", Severity::Critical)
    );
    assert_eq!(fault.what, "No head owns the resource accounts: the lock is held by left.");
    // This head claims it again; when it has the lock, the reason is gone.
    (tried.owner, tried.state) = (Some("right".to_owned()), "starting".to_owned());
    let again = with(Ok(status(tried.clone()))).faults();
    let [fault] = again.as_slice() else { panic!("{again:?}") };
    assert_eq!(fault.id, "cluster-resource-accounts");
    let what = "The head right does not serve the resource accounts yet: the lock is held by left.";
    assert_eq!(fault.what, what);
    tried.why = None;
    assert_eq!(with(Ok(status(tried))).warning(), None);

    let mut alone = status(accounts(Some("right")));
    alone.members.remove(0);
    assert_eq!(
        with(Ok(alone)).warning().as_deref(),
        Some("right is the only head of the cluster.")
    );
    let mut cut = status(accounts(None));
    cut.etcd = Some("no member of etcd answers".to_owned());
    let faults = with(Ok(cut)).faults();
    assert_eq!(faults.len(), 1, "what is known of resources is out of date: {faults:?}");
    assert_eq!(faults[0].id, "cluster-etcd");
    let away = with(Err("Connection refused".to_owned()));
    assert_eq!(away.faults()[0].id, "cluster-head");
    assert_eq!(value(&away.state(&path(&["cluster"])), "state"), Some(Value::text("unknown")));
}

#[test]
fn a_link_that_is_cut_and_a_resource_that_is_kept_are_problems() {
    let mut one = accounts(Some("right"));
    one.cut = Some("the link eth0 has no carrier".to_owned());
    let faults = with(Ok(status(one.clone()))).faults();
    let [fault] = faults.as_slice() else { panic!("{faults:?}") };
    assert_eq!(fault.id, "cluster-link-accounts");
    let what = "Clients do not reach the resource accounts at the head right: the link eth0 has no \
                carrier.";
    assert_eq!(fault.what, what);

    one.cut = None;
    one.why = Some("no other head may take accounts over: the head left drains".to_owned());
    let faults = with(Ok(status(one.clone()))).faults();
    let [fault] = faults.as_slice() else { panic!("{faults:?}") };
    assert_eq!(fault.id, "cluster-kept-accounts");
    // What another head owns is its own problem.
    one.owner = Some("left".to_owned());
    assert_eq!(with(Ok(status(one))).warning(), None);
}

#[test]
fn commands_reach_the_head_and_its_refusals_the_administrator() {
    let (socket, head) = answering("commands", 4, status(accounts(Some("right"))));
    let cluster = Cluster::new(Some(socket.clone()));
    cluster.poll();
    let who = Actor::new("a test", "command line");
    let none = BTreeMap::new();
    let accounts = path(&["cluster", "resources", "accounts"]);
    let to = |head: &str| BTreeMap::from([("to".to_owned(), Value::text(head))]);
    cluster.act(&accounts, "takeover", &to("left"), &who).expect("requested");
    let refused = cluster.act(&accounts, "takeover", &to("x"), &who).expect_err("refused");
    assert_eq!(refused.sentence, "the head x is not a member");
    let right = path(&["cluster", "heads", "right"]);
    cluster.act(&right, "drain", &none, &who).expect("requested");
    // Another head is not reached from here.
    let left = path(&["cluster", "heads", "left"]);
    let refused = cluster.act(&left, "drain", &none, &who).expect_err("refused");
    assert!(refused.sentence.contains("is not the head of this machine"), "{}", refused.sentence);
    let takeover = |to: &str| Command::Takeover {
        resource: "accounts".to_owned(),
        to: Some(to.to_owned()),
        unfenced: false,
    };
    let commands = head.join().expect("the head");
    let expected = [Command::Status, takeover("left"), takeover("x"), Command::Drain { on: true }];
    assert_eq!(commands, expected);
    std::fs::remove_file(socket).expect("removed");
}

#[test]
fn a_server_in_no_cluster_has_a_sentence_for_it() {
    let none = Cluster::start(None).expect("no thread is needed");
    let shown = none.state(&path(&["cluster"]));
    assert_eq!(value(&shown, "state"), Some(Value::text("none")));
    let reason = value(&shown, "reason").expect("a reason");
    assert_eq!(reason.as_text(), Some(format!("no head has started this server: {HINT}").as_str()));
    assert_eq!((none.warning(), none.takeover()), (None, None));
    assert_eq!(none.items(&path(&["cluster", "heads"])), Vec::<String>::new());
    let who = Actor::new("a test", "command line");
    let accounts = path(&["cluster", "resources", "accounts"]);
    let refused = none.act(&accounts, "failback", &BTreeMap::new(), &who).expect_err("refused");
    assert_eq!(refused.sentence, "this server is in no cluster");
}
