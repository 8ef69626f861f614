//! The parsers against captured text, and against malformed text.

use host::counters::{self, CpuTime, Disk};
use host::inventory::Inventory;
use host::{Root, process};

const STAT: &str = "cpu  106211 343 24044 404758 1437 1 293 589 0 0
cpu0 47590 193 11254 209130 330 0 38 271 0 0
cpu1 58621 149 12790 195627 1107 1 254 318 0 0
intr 12345 0 0
ctxt 998877
btime 1768953600
";

#[test]
fn proc_stat() {
    let stat = counters::stat(STAT);
    let all = CpuTime { user: 106_554, kernel: 24_044, interrupt: 294, steal: 589, idle: 406_195 };
    assert_eq!(stat.all, all);
    assert_eq!(stat.cpus.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(stat.switches, 998_877);
    let spent = all.since(CpuTime { user: 106_000, idle: 406_000, ..all });
    assert_eq!((spent.busy(), spent.all()), (554, 749));
}

#[test]
fn proc_net_dev() {
    let text = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 301411483   49598    0    0    0     0          0         0 301411483   49598    0    0    0     0       0          0
  eth0:475701761   14175    1    2    0     0          0         0   789713    7872    3    4    0     0       0          0
";
    let devices = counters::devices(text);
    assert_eq!(devices.len(), 2);
    assert_eq!(devices[1].name, "eth0");
    assert_eq!(devices[1].bytes, [475_701_761, 789_713]);
    assert_eq!(devices[1].packets, [14_175, 7872]);
    assert_eq!(devices[1].drops, [3, 7]);
}

#[test]
fn proc_diskstats() {
    let text = "\
 254       0 vda 15306 2 1094146 5137 23119 1204 2213552 40322 3 21960 46150 100 0 78 12 500 689
 254       1 vda1 10 0 80 1 0 0 0 0 0 1 1
";
    let disks = counters::disks(text);
    let bytes = [1_094_146 * 512, 2_213_552 * 512];
    let vda =
        Disk { name: "vda".into(), ops: [15_306, 23_119], bytes, busy_ms: 21_960, in_flight: 3 };
    assert_eq!(disks[0], vda);
    assert_eq!(disks.len(), 2);
}

#[test]
fn proc_meminfo() {
    let text = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    800 kB
Buffers:          10 kB\nCached:          500 kB\nSReclaimable:     20 kB\nDirty:             4 kB
Writeback:         1 kB\nAnonPages:       200 kB\n";
    let memory = counters::memory(text);
    assert_eq!((memory.total, memory.free, memory.available), (1_024_000, 102_400, 819_200));
    assert_eq!((memory.cache, memory.dirty, memory.anonymous), (542_720, 5120, 204_800));
}

#[test]
fn protocol_counters_and_pressure() {
    let snmp = "Ip: Forwarding DefaultTTL\nIp: 1 64
Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs\nTcp: 1 -1 62861 56594 9\n";
    assert_eq!(counters::protocol_counter(snmp, "Tcp", "RetransSegs"), Some(9));
    assert_eq!(counters::protocol_counter(snmp, "Ip", "DefaultTTL"), Some(64));
    assert_eq!(counters::protocol_counter(snmp, "Tcp", "Nothing"), None);
    assert_eq!(counters::protocol_counter(snmp, "Udp", "InSegs"), None);
    let pressure = "some avg10=2.63 avg60=9.38 avg300=13.66 total=168739414
full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    assert_eq!(counters::pressure(pressure), Some(168_739_414));
    let cpu_stat = "usage_usec 5\nnr_periods 10\nnr_throttled 2\nthrottled_usec 12345\n";
    assert_eq!(counters::throttled(cpu_stat), Some(12_345));
    assert_eq!(counters::cgroup("0::/system.slice/x.service\n"), Some("system.slice/x.service"));
}

#[test]
fn proc_pid_stat_with_a_hostile_name() {
    let text = "11980 (a) R 1 (b) S 11654 11654 11876 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 5 0 \
                269824 3133440 418 \
                18446744073709551615 1 1";
    let process = process::stat(text, 4096).expect("a process");
    assert_eq!((process.user_ns, process.kernel_ns), (70_000_000, 30_000_000));
    assert_eq!((process.threads, process.started, process.resident), (5, 269_824, 418 * 4096));
    let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
    assert_eq!(process::switches(status), [12, 3]);
}

#[test]
fn nonsense_gives_nothing() {
    for text in ["", "\n\n", "cpu", "cpu x", ":", "a:", "(", ")", "some total=x", "Tcp:\nTcp:"] {
        assert_eq!(counters::stat(text).cpus, []);
        assert!(counters::devices(text).is_empty() && counters::disks(text).is_empty());
        assert_eq!(counters::memory(text), counters::Memory::default());
        assert_eq!(counters::pressure(text), None);
        assert_eq!(counters::protocol_counter(text, "Tcp", "x"), None);
        assert_eq!(process::stat(text, 4096), None);
    }
}

#[test]
fn a_root_without_files_gives_an_empty_inventory() {
    let folder = std::env::temp_dir().join(format!("host-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("proc")).expect("a folder");
    std::fs::write(folder.join("proc/stat"), STAT).expect("a file");
    std::fs::write(folder.join("proc/cpuinfo"), "processor : 0\nmodel name\t: Some CPU\n")
        .expect("a file");
    let inventory = Inventory::read(&Root::at(&folder));
    assert_eq!((inventory.cpu.as_str(), inventory.cpus, inventory.memory), ("Some CPU", 2, 0));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn this_machine_and_this_process() {
    let inventory = Inventory::read(&Root::default());
    assert!(inventory.cpus > 0 && inventory.memory > 0 && !inventory.kernel.is_empty());
    let before = process::cpu_ns(0).expect("a clock");
    let mut n = 0u64;
    while process::cpu_ns(0).expect("a clock") < before + 1_000_000 {
        n = std::hint::black_box(n + 1);
    }
    // Above the largest pid that the kernel can give.
    assert!(process::cpu_ns(4_194_305).is_err());
    assert!(process::descriptors(&Root::default(), "self").is_some_and(|n| n >= 3));
    assert!(process::read(&Root::default(), "self").expect("this process").resident > 0);
}
