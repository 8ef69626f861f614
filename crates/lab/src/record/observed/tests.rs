//! Between two samples; both forms of a client; both ends' counts.

use super::*;
use host::observe::family::FamilySample;
use host::observe::{Interface, Tcp};

fn sample(n: u64) -> ServerSample {
    let interface = |name: &str, rx, tx, packets| Interface {
        name: name.into(),
        bytes: [rx, tx],
        packets: [packets, packets],
        speed: None,
    };
    let device = DeviceIo {
        name: "loop3".into(),
        ops: [100 * n, 10 * n],
        bytes: [1_000_000 * n, 50_000 * n],
        ms: [200 * n, 30 * n],
        flushes: [5 * n, 20 * n],
        busy_ms: 300 * n,
    };
    let observed = Sample {
        family: Some(FamilySample {
            processes: vec![7, 8],
            cpu_ns: 500_000_000 * n,
            group_ns: None,
            resident: 4096,
        }),
        interfaces: vec![
            interface("lo", 10 * n, 10 * n, n),
            interface("eth0", 1000 * n, 1_070_000 * n, 1000 * n),
        ],
        tcp: Tcp { retransmitted: 3 * n, out_of_order: n, ..Default::default() },
        devices: vec![device],
        ..Default::default()
    };
    let machine = crate::proc::MachineCounters {
        cores: vec![(30 * n, 100 * n), (100 * n, 100 * n)],
        ..Default::default()
    };
    let at_ns = 2_000_000_000 * n;
    ServerSample { at_ns, machine, observed: Some(observed), ..Default::default() }
}

#[test]
fn between_two_samples() {
    let payload = Payload { bytes_s: 500_000.0, inward: false };
    let found = Observed::between(&sample(1), &sample(2), payload, 9.0).unwrap();
    assert_eq!((found.started, found.seconds), (9.0, 2.0));
    assert_eq!((found.cpu, found.cpu_by.as_deref()), (Some(0.5), Some("processes")));
    assert_eq!((found.processes, found.cores.as_slice()), (Some(2), [0.3, 1.0].as_slice()));
    assert_eq!((found.disk_read, found.disk_write), (Some(1_000_000), Some(50_000)));
    assert_eq!(found.read_latency, Some(2e6));
    let device = &found.devices[0];
    assert_eq!((device.latency[1], device.flushes, device.busy), (Some(3e6), 5, 0.15));
    assert!((device.write_or_flush_ms - 50.0 / 15.0).abs() < 1e-9);
    assert_eq!((found.retransmitted, found.out_of_order), (3, 1));
    // The payload is on the interface that sent most.
    assert_eq!((found.interfaces[0].payload, found.interfaces[1].payload), (None, Some(1_000_000)));
    assert_eq!(found.interfaces[1].headers_expected, Some(66_000));
    let sentence = found.sentence();
    for part in ["0.25 cores in 2 processes", "loop3 488 KiB/s read", "eth0 500 B/s received"] {
        assert!(sentence.contains(part), "{part} in {sentence}");
    }
}

#[test]
fn nothing_between_one_sample() {
    let payload = Payload::default();
    assert_eq!(Observed::between(&sample(1), &sample(1), payload, 0.0), None);
    assert_eq!(Observed::between(&ServerSample::default(), &sample(1), payload, 0.0), None);
}

#[test]
fn a_control_group_counts_if_it_does_at_both_ends() {
    let with = |n: u64, group: Option<u64>| {
        let mut sample = sample(n);
        let family = sample.observed.as_mut().and_then(|o| o.family.as_mut()).unwrap();
        family.group_ns = group;
        sample
    };
    let cpu = |a: &ServerSample, b: &ServerSample| {
        let found = Observed::between(a, b, Payload::default(), 0.0).unwrap();
        (found.cpu.unwrap(), found.cpu_by.unwrap())
    };
    let both = cpu(&with(1, Some(0)), &with(2, Some(700_000_000)));
    assert_eq!(both, (0.7, "control-group".into()));
    assert_eq!(cpu(&with(1, None), &with(2, Some(7))), (0.5, "processes".into()));
}

#[test]
fn clients_of_both_formats() {
    let text = r#"[[3, 400], {"client": 4, "ops": 5, "bytes": 6, "errors": 7,
        "source": "192.0.2.1", "interface": "eth0"}]"#;
    let found: Vec<ClientStep> = serde_json::from_str(text).unwrap();
    assert_eq!(found[0], ClientStep { client: 3, ops: 400, ..Default::default() });
    assert_eq!((found[1].bytes, found[1].interface.as_deref()), (6, Some("eth0")));
    let again: Vec<ClientStep> =
        serde_json::from_value(serde_json::to_value(&found).unwrap()).unwrap();
    assert_eq!(again, found);
}

#[test]
fn counts_agree_within_what_is_in_flight() {
    assert!(Comparison::new("operations", 10, 10, 0).agrees);
    assert!(!Comparison::new("operations", 11, 10, 0).agrees);
    assert!(Comparison::new("bytes", 108, 100, 8).agrees);
    assert!(!Comparison::new("bytes", 100, 109, 8).agrees);
    let sentence = Comparison::new("operations", 11, 10, 0).sentence();
    assert!(sentence.contains("do not agree: 11 and 10 operations"), "{sentence}");
}

/// Two subnets: each of the server's ports carries its part.
#[test]
fn a_payload_over_two_interfaces() {
    assert_eq!(spread(1000, &[10, 1070, 0]), [(1, 1000)]);
    assert_eq!(spread(3000, &[10, 1070, 2140]), [(2, 2000), (1, 1000)]);
    // Of what passed elsewhere nothing is known.
    assert_eq!(spread(3000, &[10, 500, 20]), [(1, 3000)]);
    assert_eq!((spread(0, &[5, 7]), spread(5, &[])), (vec![(1, 0)], vec![]));
}
