//! Heads and resources as their nodes show them.

use std::collections::BTreeSet;

use base::node::Value;
use head::local::{ResourceStatus, Status};

use super::{Answer, HINT};

/// Properties with their values.
type State = Vec<(&'static str, Value)>;

/// `/cluster`.
pub(super) fn cluster(of_head: bool, answer: Option<Answer>) -> State {
    let state =
        |name: &str, why: &str| vec![("state", Value::text(name)), ("reason", Value::text(why))];
    let status = match answer {
        _ if !of_head => return state("none", &format!("no head has started this server: {HINT}")),
        None => return state("unknown", "the head of this machine has not answered yet"),
        Some(Err(why)) => {
            return state("unknown", &format!("the head of this machine does not answer: {why}"));
        }
        Some(Ok(status)) => status,
    };
    let (name, why) = match (&status.etcd, status.lease_s.is_some(), status.draining) {
        (Some(why), ..) => ("unknown", why.as_str()),
        (None, false, _) => ("unknown", "the head of this machine has no valid lease"),
        (None, true, true) => ("draining", ""),
        (None, true, false) => ("member", ""),
    };
    let mut shown = state(name, why);
    shown.push(("name", Value::text(&status.cluster)));
    shown.push(("head", Value::text(&status.head)));
    shown
}

/// Heads of the cluster: members, and others that resources name.
pub(super) fn heads(status: &Status) -> Vec<String> {
    let mut names: BTreeSet<&str> = status.members.iter().map(|(name, _)| name.as_str()).collect();
    for one in &status.resources {
        names.insert(&one.preferred);
        names.extend(one.owner.as_deref());
        names.extend(one.last.iter().flat_map(|last| [last.from.as_str(), last.to.as_str()]));
    }
    names.remove("");
    names.into_iter().map(str::to_owned).collect()
}

/// `/cluster/heads/NAME`.
pub(super) fn head(status: &Status, name: &str) -> State {
    let member = status.members.iter().find(|(head, _)| head == name);
    let state = match member {
        None => "absent",
        Some((_, true)) => "draining",
        Some((_, false)) => "member",
    };
    let of = |head: fn(&ResourceStatus) -> Option<&str>| {
        let all = status.resources.iter().filter(move |one| head(one) == Some(name));
        Value::texts(all.map(|one| &one.name))
    };
    vec![
        ("state", Value::text(state)),
        ("this_machine", Value::Bool(status.head == name)),
        ("owns", of(|one| one.owner.as_deref())),
        ("preferred_by", of(|one| Some(one.preferred.as_str()))),
    ]
}

/// The state of a resource in the cluster.
fn state(status: &Status, one: &ResourceStatus) -> &'static str {
    let Some(owner) = &one.owner else {
        return if one.state == "failed" { "failed" } else { "unowned" };
    };
    let served = one.last.as_ref().is_none_or(|last| last.to != *owner || last.phases.is_some());
    let here = *owner == status.head;
    match one.state.as_str() {
        "handing over" if here => "handing_over",
        "starting" if here => "starting",
        _ if !served => "starting",
        _ if one.target.as_ref().is_some_and(|target| target != owner) => "handing_over",
        _ => "served",
    }
}

/// `/cluster/resources/NAME`.
pub(super) fn resource(status: &Status, one: &ResourceStatus) -> State {
    let text = |value: &Option<String>| Value::Text(value.clone().unwrap_or_default());
    let mut shown = vec![
        ("state", Value::text(state(status, one))),
        ("owner", text(&one.owner)),
        ("preferred", Value::text(&one.preferred)),
        ("target", text(&one.target)),
        ("number", Value::number(one.number)),
        ("addresses", Value::texts([&one.address])),
        ("directory", Value::text(&one.directory)),
        ("reason", text(&one.why)),
    ];
    let Some(last) = &one.last else { return shown };
    shown.extend([
        ("takeover_from", Value::text(&last.from)),
        ("takeover_to", Value::text(&last.to)),
        ("takeover_cause", Value::text(last.cause.name())),
    ]);
    let Some(phases) = last.phases else { return shown };
    shown.extend([
        ("takeover_at", Value::number(last.at)),
        ("takeover_total", Value::number(phases.total())),
        ("takeover_hand_over", Value::number(phases.hand_over)),
        ("takeover_claim", Value::number(phases.claim)),
        ("takeover_lock", Value::number(phases.lock)),
        ("takeover_start", Value::number(phases.start)),
        ("takeover_address", Value::number(phases.address)),
    ]);
    shown
}
