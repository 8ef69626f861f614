//! The table of the comparison, the rows won and lost, and the distances of the protected protocols
//! from each other.

use std::collections::BTreeMap;

use lab::client::service::at::Scheme;

use super::case::{Case, Work};
use super::peers::Peer;
use super::transfer::Figure;
use super::{OURS, Outcome, Wanted};
use crate::stats::median;

/// Ratios this near to 1 are even: repeated runs of one server differ by as much.
const EVEN: f64 = 0.03;
/// How far the protected protocols may be from the fastest of them.
const NEAR: f64 = 0.85;

/// Prints all.
pub fn print(wanted: &Wanted, peers: &[Peer], outcome: &Outcome) {
    let mut versions = BTreeMap::new();
    for peer in peers {
        versions.insert(peer.name, peer.version.as_str());
    }
    for (name, version) in versions {
        println!("- {name}: {version}");
    }
    let exact = peers.iter().all(|peer| peer.group.is_exact());
    let how = match exact {
        true => "of the server's control group, forked and ended processes included",
        false => "of the server's processes and those that they have waited for, in clock ticks",
    };
    println!("- server CPU: {how}");
    let Wanted { rounds, mib, files, seconds, .. } = wanted;
    println!("- {rounds} rounds; large files: {mib} MiB in all");
    println!("- small files: {files} of 4 KiB, or as many as {seconds} s give");
    rows(outcome);
    gaps(outcome);
    ciphers(outcome);
    verdicts(outcome);
    near(outcome);
    checks(outcome);
}

/// Medians of a server in a case.
#[derive(Debug, Clone, Copy)]
struct Middle {
    speed: f64,
    cost: f64,
}

fn middle(case: &Case, runs: &[Figure]) -> Middle {
    let of = |f: &dyn Fn(&Figure) -> f64| median(&runs.iter().map(f).collect::<Vec<_>>());
    Middle { speed: of(&|run| run.speed(case)), cost: of(&|run| run.cost(case)) }
}

/// The medians of all servers in a case.
fn middles(outcome: &Outcome, n: usize) -> Vec<(&'static str, Middle)> {
    let Some(case) = outcome.cases.get(n) else { return Vec::new() };
    let rows = outcome.table.iter().filter(|((of, _), _)| *of == n);
    rows.map(|((_, server), runs)| (*server, middle(case, runs))).collect()
}

/// The fastest and the cheapest of the peers, each with its name.
fn best(middles: &[(&'static str, Middle)]) -> Option<[(&'static str, f64); 2]> {
    let peers = || middles.iter().filter(|(name, _)| !name.starts_with(OURS));
    let fast = peers().max_by(|a, b| a.1.speed.total_cmp(&b.1.speed))?;
    let cheap = peers().min_by(|a, b| a.1.cost.total_cmp(&b.1.cost))?;
    Some([(fast.0, fast.1.speed), (cheap.0, cheap.1.cost)])
}

fn rows(outcome: &Outcome) {
    println!(
        "\n| case | server | speed | spread | server CPU | spread | speed to the best peer \
         | CPU to the best peer |\n|---|---|---:|---:|---:|---:|---:|---:|"
    );
    for (n, case) in outcome.cases.iter().enumerate() {
        let all = middles(outcome, n);
        let best = best(&all);
        for (server, mid) in &all {
            let runs = outcome.table.get(&(n, *server)).map_or(&[][..], Vec::as_slice);
            let ratios = best.map(|[fast, cheap]| (mid.speed / fast.1, mid.cost / cheap.1));
            let (speed, cost) = ratios.filter(|_| server.starts_with(OURS)).map_or_else(
                || (String::new(), String::new()),
                |(speed, cost)| (format!("{speed:.2}"), format!("{cost:.2}")),
            );
            let (of, per, digits) = match case.is_small() {
                true => ("files/s", "µs/file", 0),
                false => ("MB/s", "s/GB", 3),
            };
            println!(
                "| {} | {server} | {:.0} {of} | {} | {:.digits$} {per} | {} | {speed} | {cost} |",
                case.name(),
                mid.speed,
                spread(runs, 0, |run| run.speed(case)),
                mid.cost,
                spread(runs, digits, |run| run.cost(case)),
            );
        }
    }
}

fn spread(runs: &[Figure], digits: usize, of: impl Fn(&Figure) -> f64) -> String {
    let values: Vec<f64> = runs.iter().map(of).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    format!("{low:.digits$}-{high:.digits$}")
}

fn gaps(outcome: &Outcome) {
    for gap in &outcome.gaps {
        println!("- no figures of {} for {}: {}", gap.name, gap.about(), gap.why);
    }
}

fn ciphers(outcome: &Outcome) {
    let mut by_cipher: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for ((protocol, server), cipher) in &outcome.ciphers {
        let who = format!("{server} ({})", protocol.name());
        by_cipher.entry(cipher).or_default().push(who);
    }
    println!();
    for (cipher, who) in by_cipher {
        println!("- {cipher}: {}", who.join(", "));
    }
}

fn verdict(ratio: f64) -> &'static str {
    match ratio {
        r if (r - 1.0).abs() <= EVEN => "even",
        r if r > 1.0 => "won",
        _ => "LOST",
    }
}

fn verdicts(outcome: &Outcome) {
    println!("\n| case | fastest peer | speed to it | | cheapest peer | its CPU to ours | |");
    println!("|---|---|---:|---|---|---:|---|");
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (n, case) in outcome.cases.iter().enumerate() {
        let all = middles(outcome, n);
        let Some((_, ours)) = all.iter().find(|(name, _)| *name == OURS) else { continue };
        let Some([fast, cheap]) = best(&all) else {
            println!("| {} | no peer has figures | | | | | |", case.name());
            continue;
        };
        let (speed, cost) = (ours.speed / fast.1, cheap.1 / ours.cost);
        *counts.entry(("speed", verdict(speed))).or_default() += 1;
        *counts.entry(("CPU", verdict(cost))).or_default() += 1;
        println!(
            "| {} | {} | {speed:.2} | {} | {} | {cost:.2} | {} |",
            case.name(),
            fast.0,
            verdict(speed),
            cheap.0,
            verdict(cost)
        );
    }
    println!();
    for of in ["speed", "CPU"] {
        let count = |what| counts.get(&(of, what)).copied().unwrap_or(0);
        let [won, even, lost] = ["won", "even", "LOST"].map(count);
        println!("- {of}: {won} rows won, {even} even (within {EVEN}), {lost} lost");
    }
}

fn near(outcome: &Outcome) {
    let protected = [Scheme::Ftps, Scheme::Https, Scheme::Sftp];
    println!(
        "\n| our protected protocols | FTPS | HTTPS | SFTP | slowest to fastest | within 15 % |"
    );
    println!("|---|---:|---:|---:|---:|---|");
    for work in Work::BOTH {
        for small in [false, true] {
            for streams in [1, 8] {
                let speeds = protected.map(|protocol| {
                    let n = outcome.cases.iter().position(|case| {
                        (case.protocol, case.work, case.streams) == (protocol, work, streams)
                            && case.is_small() == small
                    })?;
                    let all = middles(outcome, n);
                    all.iter().find(|(name, _)| *name == OURS).map(|(_, mid)| mid.speed)
                });
                let [Some(ftps), Some(https), Some(sftp)] = speeds else { continue };
                let ratio = ftps.min(https).min(sftp) / ftps.max(https).max(sftp);
                let (size, judged) = match (small, ratio >= NEAR) {
                    // A handshake for each file there, four round trips here: not the cipher.
                    (true, _) => ("4K, files/s", "not judged"),
                    (false, true) => ("large, MB/s", "yes"),
                    (false, false) => ("large, MB/s", "NO"),
                };
                println!(
                    "| {} {size} x{streams} | {ftps:.0} | {https:.0} | {sftp:.0} | {ratio:.2} \
                     | {judged} |",
                    work.name(),
                );
            }
        }
    }
}

fn checks(outcome: &Outcome) {
    if outcome.checks.is_empty() {
        return;
    }
    println!(
        "\n| the same by other clients | server | client | MB/s | server s/GB \
         | our client's MB/s | its server s/GB |\n|---|---|---|---:|---:|---:|---:|"
    );
    let figure = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "failed".to_owned(), |value| format!("{value:.digits$}"))
    };
    for check in &outcome.checks {
        let n = outcome.cases.iter().position(|case| case.name() == check.case);
        let mid = n.and_then(|n| {
            let all = middles(outcome, n);
            all.iter().find(|(name, _)| *name == check.server).map(|(_, mid)| *mid)
        });
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            check.case,
            check.server,
            check.client,
            figure(check.mb_s, 0),
            figure(check.server_s_gb, 3),
            figure(mid.map(|mid| mid.speed), 0),
            figure(mid.map(|mid| mid.cost), 3),
        );
    }
}
