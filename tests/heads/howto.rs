//! The commands of docs/howto/heads.md as printed, but for the place of the cluster file system, on
//! two machines; and its wrong steps, each of which gets the sentence that the page has.

use e2e::skip;

use super::cluster::{LEFT, RIGHT};
use super::machines::{Machines, PAGE, blocks, configuration};

/// The configuration of the other head.
fn of_right(text: &str) -> String {
    text.replacen("name = \"left\"", "name = \"right\"", 1)
}

/// Begins a line on both machines, and waits until the resource is served.
fn begin(machines: &mut Machines, line: &str) {
    machines.configure(LEFT, &configuration());
    machines.configure(RIGHT, &of_right(&configuration()));
    machines.begin(LEFT, line);
    machines.wait_for_owner(LEFT);
    machines.begin(RIGHT, line);
    wait_for_both(machines);
}

/// Waits until each head has read that both are members, and that none drains.
fn wait_for_both(machines: &Machines) {
    for machine in [LEFT, RIGHT] {
        machines.wait_for(machine, "plimsoll head status", "members: left, right\n");
    }
}

/// Runs a line at the machine where it makes sense, and waits until the resource is where it then
/// is to be.
fn step(machines: &mut Machines, line: &str) {
    let words = line.split('#').next().unwrap_or_default().trim();
    // Lines of the command line of a server, which is that of the owner.
    let at_server =
        |line: &str| format!("plimsoll cli --state /cluster/.plimsoll/accounts -c '{line}'");
    // A terminal shows a prompt for confirmation.
    let confirmed = format!("{words} --yes");
    match words {
        "mkdir /cluster/accounts" => drop(machines.run(LEFT, line)),
        "plimsoll doctor cluster /mnt/a /mnt/b" => {
            let printed = machines.run(LEFT, line);
            assert!(printed.contains("Two heads may serve resources"), "{printed}");
        }
        "plimsoll head" => begin(machines, line),
        "plimsoll head status" => {
            for machine in [LEFT, RIGHT] {
                let printed = machines.run(machine, line);
                assert!(printed.contains("accounts"), "{printed}");
            }
        }
        "plimsoll head takeover accounts" => {
            machines.run(RIGHT, line);
            machines.wait_for_owner(RIGHT);
        }
        "plimsoll head failback accounts" => {
            machines.run(RIGHT, line);
            machines.wait_for_owner(LEFT);
        }
        "plimsoll head drain" => {
            machines.run(LEFT, line);
            machines.wait_for_owner(RIGHT);
            back(machines);
        }
        "plimsoll cli --state /cluster/.plimsoll/accounts" => {
            let printed = machines.run(LEFT, &at_server("cluster show"));
            assert!(printed.contains("member"), "{printed}");
        }
        "cluster resources show" => {
            let printed = machines.run(LEFT, &at_server(words));
            assert!(printed.contains("accounts") && printed.contains("left"), "{printed}");
        }
        "cluster resources accounts takeover to=right" => {
            machines.run(LEFT, &at_server(&confirmed));
            machines.wait_for_owner(RIGHT);
            back(machines);
        }
        "cluster heads left drain" => {
            machines.run(LEFT, &at_server(&confirmed));
            machines.wait_for_owner(RIGHT);
            back(machines);
        }
        "plimsoll analytics show 'nfs.ops[client]' --cluster" => drop(machines.run(RIGHT, line)),
        "plimsoll head takeover accounts --unfenced" => {
            machines.run(RIGHT, line);
            machines.wait_for_owner(RIGHT);
        }
        other => panic!("the page has a command that is not tried: {other}"),
    }
}

/// Ends a drain of the preferred head, as the page has it, and moves the resource there.
fn back(machines: &Machines) {
    machines.run(LEFT, "plimsoll head drain --off");
    wait_for_both(machines);
    machines.run(RIGHT, "plimsoll head failback accounts");
    machines.wait_for_owner(LEFT);
}

#[test]
fn the_commands_of_the_page_do_what_it_has() {
    let mut machines = match Machines::start() {
        Ok(machines) => machines,
        Err(why) => skip!("heads-howto", "{why}"),
    };
    let lines = blocks().into_iter().flatten().filter(|line| {
        let is_toml = line.contains(" = ") || line.starts_with("[[") || line.is_empty();
        !is_toml
    });
    let lines: Vec<_> = lines.collect();
    assert!(lines.len() >= 12, "{lines:?}");
    for line in lines {
        println!("{line}");
        step(&mut machines, line);
    }
    machines.end(LEFT);
    machines.end(RIGHT);
}

/// Whether the page has a row about this sentence.
fn has_row(sentence: &str) {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    let has = rows.filter_map(|row| row.split('`').nth(1)).any(|message| {
        // What differs is left out there.
        let parts = message.split('…').map(str::trim).filter(|part| !part.is_empty());
        let mut rest = sentence;
        parts.into_iter().all(|part| match rest.split_once(part.trim_end_matches(':')) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    });
    assert!(has, "the page has no row for: {sentence}");
}

#[test]
fn each_wrong_step_gets_a_sentence_that_the_page_has() {
    let mut machines = match Machines::start() {
        Ok(machines) => machines,
        Err(why) => skip!("heads-wrong-steps", "{why}"),
    };
    let text = configuration();
    let refused = |machines: &Machines, text: &str, expected: &str| {
        machines.configure(LEFT, text);
        let printed = machines.refused(LEFT, "plimsoll head");
        assert!(printed.contains(expected), "{expected}: {printed}");
        has_row(&printed);
    };
    let printed = machines.refused(LEFT, "plimsoll head");
    assert!(printed.contains("cannot read /etc/plimsoll/head.toml"), "{printed}");
    has_row(&printed);
    refused(
        &machines,
        &text.replace("preferred", "prefered"),
        "is not the configuration of a head",
    );
    refused(&machines, &text, "accounts: No such file or directory");
    std::fs::create_dir(machines.disk().join("accounts")).expect("made");
    let printed = machines.refused(LEFT, "plimsoll doctor cluster /mnt/a /run");
    assert!(printed.contains("are not the same file system"), "{printed}");
    has_row(&printed);
    let printed = machines.refused(LEFT, "plimsoll head status");
    assert!(printed.contains("no head runs here"), "{printed}");
    has_row(&printed);

    // These a head tries again: it may be repaired elsewhere.
    for (from, to, sentence) in [
        ("10.0.0.", "10.0.9.", "no member of etcd answers; the last one"),
        ("\"eth0\"", "\"eth9\"", "the address 10.0.0.100/24 cannot be set on eth9"),
    ] {
        machines.configure(LEFT, &text.replace(from, to));
        machines.begin(LEFT, "plimsoll head");
        machines.wait_for(LEFT, "plimsoll head status", sentence);
        machines.wait_for_log(LEFT, sentence);
        has_row(sentence);
        machines.end(LEFT);
    }
    elsewhere(&mut machines);
    port_in_use(&mut machines);
}

/// The cluster file system is not mounted on one of the machines: it does not serve what it has in
/// the place of that, however often it tries.
fn elsewhere(machines: &mut Machines) {
    const SENTENCE: &str = "the state directory /mnt/cluster/.plimsoll/accounts \
        is not the one that was served last";
    begin(machines, "plimsoll head");
    machines.end(RIGHT);
    machines.set_mounted(RIGHT, false);
    machines.begin(RIGHT, "plimsoll head");
    wait_for_both(machines);
    machines.end(LEFT);
    machines.wait_for(RIGHT, "plimsoll head status", SENTENCE);
    machines.wait_for(RIGHT, "plimsoll head status", "failed");
    has_row(SENTENCE);
    machines.begin(LEFT, "plimsoll head");
    machines.wait_for_owner(LEFT);
    machines.end(RIGHT);
    machines.set_mounted(RIGHT, true);
    machines.begin(RIGHT, "plimsoll head");
    wait_for_both(machines);
    machines.run(RIGHT, "plimsoll head takeover accounts");
    machines.wait_for_owner(RIGHT);
    machines.end(RIGHT);
    machines.wait_for_owner(LEFT);
}

/// Another program has a port of the resource; and a head that is not there.
fn port_in_use(machines: &mut Machines) {
    let refused = machines.refused(LEFT, "plimsoll head takeover accounts --to rihgt");
    assert!(refused.contains("the head rihgt is not a member of the cluster now"), "{refused}");
    has_row(&refused);
    machines.end(LEFT);
    machines.run(LEFT, "mkdir /run/data");
    let line = "plimsoll serve /run/data --state /run/state --address 0.0.0.0 --port-offset 0";
    let other = machines.alongside(LEFT, line);
    machines.wait_for(LEFT, "ss -ltn", ":2049");
    machines.begin(LEFT, "plimsoll head");
    let sentence = "it did not get ready";
    machines.wait_for(LEFT, "plimsoll head status", sentence);
    machines.wait_for_log(LEFT, "port 2049 is in use");
    has_row(sentence);
    drop(other);
    machines.run(LEFT, "plimsoll head takeover accounts");
    machines.end(LEFT);
}
