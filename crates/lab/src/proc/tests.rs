//! The parsers, on text as the kernel writes it.

use super::*;

#[test]
fn process_lines() {
    let line = "42 (a (b) c) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 3 0 100 0 0";
    let (name, seconds) = parse_stat(line).unwrap();
    assert_eq!(name, "a (b) c");
    assert!((seconds - 2.0).abs() < 1e-9);
    assert_eq!(parse_schedstat("123 456 7\n"), Some((123, 456)));
    assert_eq!(parse_stat("nonsense"), None);
}

#[test]
fn control_groups_of_both_versions() {
    let v2 = "usage_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500000\n";
    assert!((parse_throttled(v2) - 2.5).abs() < 1e-9);
    let v1 = "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000\n";
    assert!((parse_throttled(v1) - 2.5).abs() < 1e-9);
    assert_eq!(parse_cpu_max("50000 100000\n"), Some(0.5));
    assert_eq!(parse_cpu_max("max 100000\n"), None);
    assert_eq!(parse_cpu_max("-1 100000"), None);
}

#[test]
fn machine_counters() {
    let stat = "cpu  9 9 9 9\ncpu0 10 0 5 80 5 0 0 0 0 0\ncpu1 50 0 50 0 0 0 0 0 0 0\nintr 1\n";
    assert_eq!(parse_cores(stat), [(15, 100), (100, 100)]);
    let dev = "Inter-| Receive\n face |bytes\n  lo: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n";
    assert_eq!(parse_nics(dev), [("lo".to_owned(), 100, 200)]);
    let disk = " 254 0 vda 1 2 3 4 10 6 7 80 0 500 90 0 0 0 0 3 20\n\
        \x20  7 0 loop0 1 2 3 4 5 6 7 8 9 10 11\n";
    assert_eq!(parse_disks(disk), [("vda".to_owned(), 500, 13, 100)]);
    let snmp = "Tcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 1000 7\n";
    assert_eq!(parse_tcp(snmp), (1000, 7));
}

#[test]
fn sockets() {
    let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
                retrnsmt   uid  timeout inode\n";
    let listens = "   0: 0100007F:5E24 00000000:0000 0A 00000000:00000000 \
                   00:00000000 00000000     0        0 777 1 x\n";
    let open = "   1: 0100007F:5E24 0B00007F:9C40 01 00010000:00000020 \
                00:00000000 00000000     0        0 778 1 x\n";
    let text = format!("{head}{listens}{open}");
    assert_eq!(parse_queues(&text, 24_100), [(65_536, 32)]);
    assert_eq!(parse_queues(&text, 24_101), []);
}

#[test]
fn this_process_can_be_seen() {
    let own = process_cpu(std::process::id()).unwrap();
    assert!(!own.threads.is_empty());
    assert!(!counters().cores.is_empty());
}
