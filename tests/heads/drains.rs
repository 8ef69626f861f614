//! Drains: of both heads at once, of one that is stopped, and takeovers to heads that cannot.

use std::sync::Barrier;

use e2e::skip;
use serde_json::json;

use super::cluster::{ACCOUNTS, Cluster, LEFT, PROJECTS, RIGHT};
use super::tree::{act, both, property};

/// How often both are drained: which one reads the drain of the other first differs.
const ROUNDS: usize = 3;

#[test]
fn both_heads_drained_at_once_leave_no_resource_without_owner() {
    let (mut cluster, accounts, projects) = match both() {
        Ok(all) => all,
        Err(why) => skip!("heads-drains", "{why}"),
    };
    for round in 1..=ROUNDS {
        let start = Barrier::new(2);
        // By the tree, at the server of the resource that each head owns.
        let drain = |api, head: &str| {
            start.wait();
            act(api, &format!("/cluster/heads/{head}"), "drain", &json!({}))
        };
        let (left, right) = std::thread::scope(|scope| {
            let left = scope.spawn(|| drain(&accounts, "left"));
            let right = drain(&projects, "right");
            (left.join(), right)
        });
        let answers = [left.expect("an answer"), right];
        println!("round {round}: {answers:?}");
        for (code, answer) in &answers {
            let refused = answer.to_string().contains("no other head may take");
            assert!(*code == 200 || *code == 409 && refused, "{answer}");
        }
        assert!(answers.iter().any(|(code, _)| *code == 200), "one of them is not refused");
        settle(&cluster);
        for head in [LEFT, RIGHT] {
            cluster.command(head, &["drain", "--off"]);
        }
        settle(&cluster);
        for resource in [ACCOUNTS, PROJECTS] {
            cluster.command(LEFT, &["failback", resource.name]);
        }
        cluster.wait_for_owner(ACCOUNTS, LEFT);
        cluster.wait_for_owner(PROJECTS, RIGHT);
    }
    cluster.end();
}

/// Waits until both resources are served, and neither is to move.
fn settle(cluster: &Cluster) {
    cluster.wait("both are served, and stay", || {
        [ACCOUNTS, PROJECTS].iter().all(|resource| {
            let states = [LEFT, RIGHT].map(|head| cluster.observe(resource, head));
            let is = |state: &str| {
                states.iter().flatten().filter(|(one, _)| one.as_str() == state).count()
            };
            is("owner") == 1 && is("offline") == 1
        })
    });
}

#[test]
fn heads_that_are_stopped_or_absent_are_named_in_a_refusal() {
    let (mut cluster, accounts, _) = match both() {
        Ok(all) => all,
        Err(why) => skip!("heads-stopped", "{why}"),
    };
    cluster.command(LEFT, &["takeover", PROJECTS.name]);
    let refused = cluster.refused(LEFT, &["takeover", ACCOUNTS.name, "--to", "nowhere"]);
    assert!(refused.contains("the head nowhere is not a member"), "{refused}");

    cluster.stop_head(RIGHT);
    let refused = cluster.refused(RIGHT, &["drain"]);
    assert!(refused.contains("it does not answer within 10 s"), "{refused}");
    cluster.wait("its lease is over", || {
        property(&accounts, "/cluster/heads/right", "state") == "absent"
    });
    for (command, expected) in [
        (&["takeover", ACCOUNTS.name, "--to", "right"][..], "the head right is not a member"),
        (&["failback", PROJECTS.name][..], "the head right is not a member"),
        (&["drain"][..], "no other head may take accounts over: no other one is a member"),
    ] {
        let refused = cluster.refused(LEFT, command);
        assert!(refused.contains(expected), "{command:?}: {refused}");
    }
    for resource in [ACCOUNTS, PROJECTS] {
        assert!(cluster.process(resource, LEFT) > 0);
    }
    cluster.wake_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    cluster.end();
}
