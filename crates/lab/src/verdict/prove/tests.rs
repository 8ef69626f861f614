//! Interventions on synthetic systems: each has a capacity of operations, of bytes, of the
//! generator and of the cipher; the least of them limits, and the interventions must say so.

use super::*;
use base::random::{Random, SeededRandom};

/// Capacities, operations of 4 KiB per second.
#[derive(Clone, Copy)]
struct System {
    /// Of the server's cores, with `cores` of them and without a cipher.
    cpu: f64,
    /// Of the network.
    bytes: f64,
    /// Of one client.
    client: f64,
    /// Share of the server's CPU time that the cipher takes.
    cipher: f64,
    /// By latency: 32 in flight.
    latency: f64,
}

const CORES: f64 = 4.0;
const CLIENTS: f64 = 4.0;

const WIDE: System = System { cpu: 1e9, bytes: 1e9, client: 1e9, cipher: 0.0, latency: 1e9 };

fn of(intervention: Intervention, pairs: Vec<(f64, f64)>) -> Trial {
    Trial { pairs, ..Trial::new(intervention) }
}

impl System {
    fn reaches(&self, changed: Option<Intervention>) -> f64 {
        let is = |which| changed == Some(which);
        let clients = if is(Intervention::TwiceClients) { 2.0 * CLIENTS } else { CLIENTS };
        let generator = self.client * clients;
        if is(Intervention::NullTarget) {
            return generator;
        }
        let bytes = if is(Intervention::HalfBlock) { 2.0 * self.bytes } else { self.bytes };
        let cores = if is(Intervention::OneCoreLess) { (CORES - 1.0) / CORES } else { 1.0 };
        let cipher = if is(Intervention::CipherOff) { 0.0 } else { self.cipher };
        let cpu = self.cpu * cores * (1.0 - cipher);
        generator.min(bytes).min(cpu).min(self.latency)
    }

    fn trial(&self, intervention: Intervention, seed: u64) -> Trial {
        let mut random = SeededRandom::new(seed);
        // Each run differs by up to 2 %.
        let mut noise = || 0.98 + 0.04 * ((random.next_u64() >> 11) as f64 / (1u64 << 53) as f64);
        let mut pair =
            || (self.reaches(None) * noise(), self.reaches(Some(intervention)) * noise());
        of(intervention, (0..6).map(|_| pair()).collect())
    }

    fn proof(&self, seed: u64) -> Proof {
        let trial = |i| judge(&self.trial(i, seed)).expect("figures");
        Proof { findings: Intervention::ALL.map(trial).to_vec(), not_run: Vec::new() }
    }
}

fn systems() -> [(Limiter, System); 5] {
    [
        (Limiter::ServerCpu, System { cpu: 1e5, ..WIDE }),
        (Limiter::ServerCpu, System { cpu: 1e5, cipher: 0.4, ..WIDE }),
        (Limiter::Network, System { bytes: 5e4, ..WIDE }),
        (Limiter::Generator, System { client: 2e4, ..WIDE }),
        (Limiter::Latency, System { latency: 2e4, ..WIDE }),
    ]
}

fn verdict(limiter: Limiter) -> Verdict {
    let (why, ruled_out, marks) = (Vec::new(), Vec::new(), Vec::new());
    Verdict { limiter, confidence: 0.8, why, ruled_out, marks }
}

#[test]
fn the_limiter_of_a_system_is_not_refuted_and_others_are() {
    for seed in 0..20 {
        for (limiter, system) in systems() {
            let proof = system.proof(seed);
            let refutes = |l: Limiter| proof.findings.iter().any(|f| f.refutes.contains(&l));
            assert!(!refutes(limiter), "{limiter:?}: {proof:?}");
            for (other, _) in systems() {
                let same = other == limiter;
                assert!(same || refutes(other), "{limiter:?}, {other:?}: {proof:?}");
            }
        }
    }
}

#[test]
fn a_verdict_cites_what_ran() {
    let proof = System { cpu: 1e5, cipher: 0.4, ..WIDE }.proof(1);
    let mut right = verdict(Limiter::ServerCpu);
    apply(&mut right, &proof);
    assert_eq!((right.limiter, right.why.len()), (Limiter::ServerCpu, 5));
    assert!(right.confidence > 0.85, "{right:?}");
    assert!(right.why.iter().any(|why| why.starts_with("without encryption: 1.6")), "{right:?}");
}

#[test]
fn a_refuted_verdict_does_not_stay() {
    let proof = System { cpu: 1e5, ..WIDE }.proof(1);
    let mut wrong = verdict(Limiter::Network);
    apply(&mut wrong, &proof);
    assert_eq!(wrong.limiter, Limiter::ServerCpu, "the one that is left");
    assert!(wrong.why[0].starts_with("network is refuted by"), "{wrong:?}");
    assert!((wrong.confidence - REFUTED).abs() < 1e-9);
}

/// The thresholds, written out: just below one side is shown, just above the other.
#[test]
fn interventions_decide_at_their_thresholds() {
    use Intervention::{CipherOff, HalfBlock, NullTarget, OneCoreLess, TwiceClients};
    for (intervention, threshold) in [
        (TwiceClients, 1.10),
        (HalfBlock, 1.50),
        (NullTarget, 1.0 / 0.7),
        (CipherOff, 1.10),
        (OneCoreLess, 0.90),
    ] {
        let at =
            |ratio: f64| judge(&of(intervention, vec![(1e4, 1e4 * ratio); 6])).expect("figures");
        let (below, above) = (at(threshold * 0.995), at(threshold * 1.005));
        assert_ne!(
            (&below.refutes, &below.supports),
            (&above.refutes, &above.supports),
            "{intervention:?}"
        );
        assert!(above.sentence.contains(&format!("{:.2} times", threshold * 1.005)));
    }
}

#[test]
fn few_or_scattered_runs_decide_nothing() {
    let with =
        |pairs: Vec<(f64, f64)>| judge(&of(Intervention::OneCoreLess, pairs)).expect("figures");
    for found in [with(vec![(1.0, 0.5); 3]), with([(1.0, 0.5), (1.0, 1.5)].repeat(3))] {
        assert!(found.refutes.is_empty() && found.supports.is_empty(), "{found:?}");
        assert!(found.sentence.contains("decides nothing"), "{found:?}");
    }
    assert!(judge(&of(Intervention::HalfBlock, vec![])).is_none());
}

/// Runs that the load generator limited are the least that the server does: a ratio that may be
/// larger excludes nothing below a threshold, one that may be smaller nothing above it.
#[test]
fn a_figure_that_the_generator_limited_is_a_bound() {
    use Intervention::{CipherOff, HalfBlock, NullTarget, OneCoreLess, TwiceClients};
    let decides = |intervention, ratio: f64, at_least| {
        let pairs = vec![(1e4, 1e4 * ratio); 6];
        let found = judge(&Trial { at_least, ..of(intervention, pairs) }).expect("figures");
        let bounds = (found.at_most, found.at_least);
        assert_eq!(found.reservations.len(), usize::from(bounds.0) + usize::from(bounds.1));
        let sentence = found.sentence.clone();
        let words = [sentence.contains(": at most "), sentence.contains(": at least ")];
        let both = bounds == (true, true);
        assert_eq!(words, [bounds.0 && !both, bounds.1 && !both], "{sentence}");
        !found.refutes.is_empty() || !found.supports.is_empty()
    };
    for (intervention, below, above) in
        [(HalfBlock, 1.0, 2.0), (CipherOff, 0.5, 1.6), (OneCoreLess, 0.5, 1.0)]
    {
        // Without the change, the ratio is at most this.
        assert!(!decides(intervention, above, [1, 0]), "{intervention:?}");
        assert!(!decides(intervention, above, [6, 6]) && !decides(intervention, below, [6, 6]));
        assert!(!decides(intervention, below, [0, 1]), "{intervention:?}");
        assert!(decides(intervention, above, [0, 6]), "{intervention:?}");
    }
    assert!(decides(OneCoreLess, 0.5, [6, 0]));
    // These are about the load generator.
    assert!(decides(TwiceClients, 1.5, [6, 6]) && !decides(TwiceClients, 1.0, [6, 6]));
    assert!(decides(NullTarget, 1.0, [6, 6]) && decides(NullTarget, 2.0, [6, 6]));
}

#[test]
fn reservations_of_runs_are_marks_of_the_verdict() {
    let reservation = Reservation { text: "client 1: paused".into(), runs: 2 };
    let trial = Trial {
        reservations: vec![reservation],
        ..of(Intervention::OneCoreLess, vec![(1e4, 5e3); 6])
    };
    let finding = judge(&trial).expect("figures");
    assert!(finding.sentence.ends_with("; 2 of 12 runs: client 1: paused"), "{finding:?}");
    let proof = Proof { findings: vec![finding], not_run: Vec::new() };
    let mut with_marks = verdict(Limiter::ServerCpu);
    apply(&mut with_marks, &proof);
    let mark = "intervention one core less for the server: 2 of 12 runs: client 1: paused";
    assert_eq!(with_marks.marks, [mark]);
}

#[test]
fn interventions_have_names() {
    let all: Selection = "all".parse().unwrap();
    assert_eq!(all.0, Intervention::ALL);
    let names: Vec<&str> = Intervention::ALL.into_iter().map(Intervention::name).collect();
    assert_eq!(names.join(",").parse(), Ok(all));
    let why = "cipher".parse::<Selection>().unwrap_err();
    assert!(why.contains("cipher-off") && why.starts_with("\"cipher\""), "{why}");
    assert_eq!(
        serde_json::to_value(Intervention::OneCoreLess).unwrap(),
        Intervention::OneCoreLess.name()
    );
}
