//! The link emulator against independent tools: delay and loss by ping, rate by iperf3, what two
//! hosts send each other by a capture. A run that the bridge reports as spoiled is not judged but
//! repeated; one test starves the bridge and checks that it reports so.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use e2e::api::{Api, now, wait_for};
use e2e::bridge::{
    Bridge, Ended, FIRST, Iperf, Networks, SECOND, measured, measured_if, ping, quantile,
};
use e2e::link::Link;
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{process, server, skip};
use serde_json::Value;

/// By how much a round trip may be off, in milliseconds.
const TOLERANCE_MS: f64 = 1.0;
/// What the clocks of ping and of the bridge may disagree by, in milliseconds.
const CLOCKS_MS: f64 = 0.02;
/// TCP payload and IP packet of a full segment with timestamps, at 1500 bytes.
const PAYLOAD: f64 = 1448.0 / 1500.0;

/// One at a time: each of them is about time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

/// Round trips must be what was set, for 99 of 100, and never shorter.
fn check_delay(times: &[f64], rtt_ms: f64, when: &str) {
    let (least, p50, p99) = (times[0], quantile(times, 0.5), quantile(times, 0.99));
    println!("{when}: RTT {rtt_ms} ms: least {least}, median {p50}, p99 {p99}, of {}", times.len());
    assert!(least >= rtt_ms - CLOCKS_MS, "{when}: {least} ms is less than {rtt_ms}");
    assert!(p99 <= rtt_ms + TOLERANCE_MS, "{when}: p99 {p99} ms, set {rtt_ms}");
}

#[test]
#[ignore = "measures: needs a machine that has nothing else to do"]
fn delay_is_what_is_set_and_changes_while_it_runs() {
    const PINGS: u32 = 200;
    let _alone = alone();
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("bridge-delay", "{why}"),
    };
    for rtt_ms in [0.0, 2.0, 20.0, 100.0, 200.0] {
        let measure = |bridge: &Bridge| {
            // Changed while it runs, and while packets cross it.
            assert!(!ping(&networks, 2, "0.004").is_empty());
            let status = bridge.ask("set", &[&format!("rtt={rtt_ms}ms")]);
            assert_eq!(number(&status, "/set/back/delay_ns"), rtt_ms / 2.0 * 1e6);
            ping(&networks, PINGS, "0.004")
        };
        let (times, ended) = measured_if(&networks, &[], measure, |ended| both_ways(ended, PINGS));
        assert_eq!(times.len(), PINGS as usize, "some were lost: {}", ended.status);
        check_delay(&times, rtt_ms, "idle");
        assert_eq!(ended.status["verdict"], "good");
    }
}

/// Whether 99 of 100 round trips can be right. A run in which each way has its one late packet in
/// 100 is good, but two of 100 round trips are late then.
fn both_ways(ended: &Ended, pings: u32) -> bool {
    let late = ["/forth", "/back"].map(|way| {
        let of = |what: &str| number(&ended.status, &format!("{way}/{what}"));
        of("lateness/too_late") + of("pauses/count")
    });
    late.iter().sum::<f64>() <= f64::from(pings) / 100.0
}

/// The same where pings are a few of many packets: of both ways together 1 of 100 may be late.
fn both_ways_loaded(ended: &Ended) -> bool {
    let late = ["/forth", "/back"].map(|way| {
        let of = |what: &str| number(&ended.status, &format!("{way}/lateness/{what}"));
        of("too_late") / of("packets")
    });
    late.iter().sum::<f64>() <= 0.01
}

#[test]
#[ignore = "measures: needs a machine that has nothing else to do"]
fn delay_is_what_is_set_under_load() {
    const PINGS: u32 = 400;
    let _alone = alone();
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("bridge-loaded", "{why}"),
    };
    let load_and_ping = |_: &Bridge| {
        let _iperf = Iperf::start(&networks);
        // Half of 1 Gbit/s, and no queue that would add to the delay.
        let mut load = Iperf::client(&networks, &["-t", "3", "-b", "500M"]);
        std::thread::scope(|scope| {
            let load = scope.spawn(|| process::succeed(&mut load));
            let times = ping(&networks, PINGS, "0.005");
            let said: Value = serde_json::from_slice(&load.join().expect("iperf3")).expect("JSON");
            (times, number(&said, "/end/sum_received/bits_per_second"))
        })
    };
    let ((times, carried), _) =
        measured_if(&networks, &["--rtt", "20ms"], load_and_ping, both_ways_loaded);
    assert!(carried > 400e6, "the load was only {carried} bit/s");
    check_delay(&times, 20.0, "loaded");
}

#[test]
#[ignore = "measures: needs a machine that has nothing else to do"]
fn rate_is_what_is_set() {
    let _alone = alone();
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("bridge-rate", "{why}"),
    };
    for (rate, bits) in [("50Mbit", 50e6), ("1Gbit", 1e9)] {
        let (carried, _) = measured(&networks, &["--rtt", "10ms", "--rate", rate], |_| {
            let said = Iperf::run(&networks, &["-t", "3", "-O", "2"]);
            number(&said, "/end/sum_received/bits_per_second")
        });
        let expected = bits * PAYLOAD;
        println!("{rate}: {carried} bit/s of payload, expected {expected}");
        assert!((carried / expected - 1.0).abs() < 0.02, "{rate}: {carried}, not {expected}");
    }
}

#[test]
#[ignore = "measures: needs a machine that has nothing else to do"]
fn loss_is_what_is_set() {
    const LOSS: f64 = 0.02;
    const PINGS: u32 = 4_000;
    let _alone = alone();
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("bridge-loss", "{why}"),
    };
    // By ping: iperf3 waits half a minute if the packet is lost by which it begins.
    let options = ["--rtt", "10ms", "--set", "forth.loss=2%"];
    let (came, ended) = measured(&networks, &options, |_| ping(&networks, PINGS, "0.001").len());
    let (sent, lost) = (f64::from(PINGS), f64::from(PINGS) - came as f64);
    let sigma = (sent * LOSS * (1.0 - LOSS)).sqrt();
    println!("{lost} of {sent} lost, expected {} ± {sigma}", sent * LOSS);
    assert!((lost - sent * LOSS).abs() < 4.0 * sigma, "{lost} of {sent}");
    // The bridge has counted the same; a few packets more crossed it, the kernel's own.
    let counted = number(&ended.status, "/forth/dropped/lost");
    assert!(counted >= lost && counted <= lost + 5.0, "{counted} counted, {lost} missed");
}

#[test]
#[ignore = "measures: needs a machine that has nothing else to do"]
fn what_is_sealed_is_carried_as_well() {
    let _alone = alone();
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("bridge-sealed", "{why}"),
    };
    let options = ["--rtt", "10ms", "--rate", "200Mbit", "--encrypt"];
    let measure = |_: &Bridge| {
        let times = ping(&networks, 200, "0.004");
        let said = Iperf::run(&networks, &["-t", "3", "-O", "2"]);
        (times, number(&said, "/end/sum_received/bits_per_second"))
    };
    let ((times, carried), ended) = measured_if(&networks, &options, measure, both_ways_loaded);
    check_delay(&times, 10.0, "sealed");
    let expected = 200e6 * PAYLOAD;
    assert!((carried / expected - 1.0).abs() < 0.02, "{carried}, not {expected}");
    assert_eq!(ended.status["encrypted"], true);
    assert_eq!(number(&ended.status, "/forth/dropped/refused"), 0.0, "{}", ended.status);
}

/// Everything that the cable's end in a namespace receives and sends, until it is asked for.
struct Capture {
    socket: File,
}

impl Capture {
    fn start(namespace: &Namespace) -> Self {
        let own = File::open(format!("/proc/{}/ns/net", namespace.pid())).expect("a namespace");
        let open = move || {
            let protocol = i32::from((libc::ETH_P_ALL as u16).to_be());
            // SAFETY: an open descriptor; only this thread, which ends, is moved.
            let code = unsafe { libc::setns(own.as_raw_fd(), libc::CLONE_NEWNET) };
            assert_eq!(code, 0, "{}", io::Error::last_os_error());
            let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            // SAFETY: plain numbers; nothing else owns the descriptor.
            let fd = unsafe { libc::socket(libc::AF_PACKET, kind, protocol) };
            assert!(fd >= 0, "{}", io::Error::last_os_error());
            // SAFETY: as above.
            let socket = unsafe { File::from_raw_fd(fd) };
            // SAFETY: plain old data for which all zeros are valid.
            let mut at: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            at.sll_family = libc::AF_PACKET as u16;
            at.sll_protocol = protocol as u16;
            // SAFETY: the name ends in zero.
            at.sll_ifindex = unsafe { libc::if_nametoindex(c"wire0".as_ptr()) } as i32;
            let size = size_of::<libc::sockaddr_ll>() as u32;
            // SAFETY: the address lives as long as the call.
            let code = unsafe { libc::bind(fd, (&raw const at).cast(), size) };
            assert_eq!(code, 0, "{}", io::Error::last_os_error());
            socket
        };
        Self { socket: std::thread::spawn(open).join().expect("a socket") }
    }

    /// The packets, and whether one of them has these bytes in it.
    fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        let (mut packets, mut found, mut room) = (0, false, vec![0; 65_536]);
        while let Ok(length) = self.socket.read(&mut room) {
            packets += 1;
            found |= room[..length].windows(bytes.len()).any(|part| part == bytes);
        }
        (packets, found)
    }
}

/// Pings with a pattern in them; how many came back.
fn marked_pings(from: &Namespace, to: &str) -> usize {
    let mut command = Command::new("ping");
    command.args(["-n", "-i", "0.01", "-c", "20", "-W", "3", "-p", "506c696d736f6c6c", to]);
    from.enter(&mut command);
    let out = process::run(&mut command, process::DEADLINE);
    String::from_utf8_lossy(&out.stdout).lines().filter(|line| line.contains("time=")).count()
}

#[test]
fn two_hosts_are_joined_and_nothing_between_them_can_be_read() {
    const MARK: &[u8] = b"PlimsollPlimsoll";
    let _alone = alone();
    if let Err(why) = Networks::new() {
        skip!("bridge-pair", "{why}");
    }
    // Two hosts with a cable: the answerer is 10.0.3.1, the caller 10.0.3.2.
    let cable = Link::new(None).expect("a cable");
    let place = Scratch::new("pair");
    let key = place.path().join("key");
    let made = process::succeed(Command::new(server::binary()).args(["bridge", "key"]));
    std::fs::write(&key, made).expect("a key");
    let half = |host: &Namespace, address: &str, with: [&str; 2]| {
        Bridge::begin(|command| {
            command.arg("--end").arg(format!("here@{address}/24")).arg("--key").arg(&key);
            command.args(["--delay", "10ms"]).args(with);
            host.enter(command);
        })
    };
    let mut answerer = half(&cable.server, FIRST, ["--listen", "0.0.0.0:2160"]);
    let mut caller = half(&cable.clients, SECOND, ["--peer", "10.0.3.1:2160"]);
    caller.wait_ready();
    answerer.wait_ready();

    let mut capture = Capture::start(&cable.server);
    assert_eq!(marked_pings(&cable.server, "10.0.3.2"), 20);
    let (packets, found) = capture.take(MARK);
    assert!(packets >= 20 && found, "what is not sealed is not found in {packets} packets");
    assert_eq!(marked_pings(&cable.server, SECOND), 20);
    let (packets, found) = capture.take(MARK);
    assert!(packets >= 40 && !found, "what crosses the bridge can be read on the cable");
    for half in [answerer, caller] {
        let ended = half.end();
        assert!([0, 3].contains(&ended.code), "{}", ended.said);
        assert!(number(&ended.status, "/forth/packets_out") >= 20.0, "{}", ended.status);
        assert!(number(&ended.status, "/back/packets_out") >= 20.0, "{}", ended.status);
    }
}

#[test]
fn a_run_that_is_starved_is_condemned() {
    /// Longer than any pause that is let pass.
    const PAUSE: Duration = Duration::from_millis(300);
    let _alone = alone();
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("bridge-starved", "{why}"),
    };
    let bridge = Bridge::start(&networks, &["--rtt", "100ms"]);
    std::thread::scope(|scope| {
        let pings = scope.spawn(|| ping(&networks, 200, "0.005"));
        // Packets are in flight when it is stopped.
        wait_for("packets", Duration::from_secs(10), || {
            let status = bridge.ask("show", &[]);
            (number(&status, "/forth/packets_out") >= 20.0).then_some(())
        });
        process::signal(bridge.pid(), libc::SIGSTOP);
        std::thread::sleep(PAUSE);
        process::signal(bridge.pid(), libc::SIGCONT);
        pings.join().expect("ping");
    });
    let ended = bridge.end();
    assert_eq!(ended.code, 3, "{}", ended.status);
    assert_eq!(ended.status["verdict"], "spoiled");
    assert!(ended.said.contains("starved"), "{}", ended.said);
    assert!(ended.said.contains("were late by more than"), "{}", ended.said);
    let longest = number(&ended.status, "/forth/pauses/max_ns");
    assert!(longest >= PAUSE.as_nanos() as f64 * 0.9, "{longest}");
}

#[test]
fn a_server_shows_the_bridges_of_its_machine_while_they_run() {
    const PINGS: u32 = 40;
    const WAIT: Duration = Duration::from_secs(20);
    let _alone = alone();
    let networks = match Networks::new() {
        Ok(networks) => networks,
        Err(why) => skip!("bridge-statistics", "{why}"),
    };
    let place = Scratch::new("bridge-statistics");
    let (dir, state) = (place.path().join("data"), place.path().join("state"));
    std::fs::create_dir(&dir).expect("a directory");
    let _server = Server::start(&Options::new(&dir, &state));
    let (api, started, name) = (Api::new(&state), now(), format!("e2e{}", std::process::id()));
    let count = |stat: &str| {
        let stat = stat.replace("{}", &format!("[bridge={name}]"));
        api.count(&format!("bridge.{stat}"), (started, now() + 1))
    };
    let bridge = Bridge::start_seen(&networks, &name, &["--rtt", "2ms", "--set", "back.loss=50%"]);
    // Before that there is nothing that its packets could be more than.
    wait_for("the bridge", WAIT, || (count("running{}") > 0).then_some(()));
    assert!(!ping(&networks, PINGS, "0.02").is_empty());
    let lost = number(&bridge.ask("show", &[]), "/back/dropped/lost");
    // Rates over what is never quite a second.
    let about = |told: u64, real: f64| told as f64 > real * 0.7 && (told as f64) < real * 1.5;
    wait_for("packets each way", WAIT, || {
        let (forth, back) = (count("packets{}[way=forth]"), count("packets{}[way=back]"));
        let gone = count("packets{}[outcome=lost]");
        let both = f64::from(PINGS);
        (about(forth, both) && about(back, both) && about(gone, lost)).then_some(())
    });
    assert!(count("bytes{}[way=forth]") > count("bytes{}[way=back]"));
    let late = api.data(&format!("bridge.lateness[bridge={name}][lateness]"), (started, now()), "");
    assert!(late["buckets"].as_array().is_some_and(|buckets| !buckets.is_empty()), "{late}");
    let ended = bridge.end();
    assert!([0, 3].contains(&ended.code), "{}", ended.said);
    let after = now() + 1;
    api.wait_for_second(after);
    let then = api.data("bridge.running[bridge]", (after, after + 1), "");
    assert!(!then["rows"].to_string().contains(&name), "{then}");
}

#[test]
fn a_bridge_runs_in_a_user_namespace() {
    let _alone = alone();
    let dir = Scratch::new("user");
    let script = "set -e
        mount -t tmpfs tmpfs /run
        \"$0\" bridge run --make-namespaces --between ns:a@10.9.0.1/24 --and ns:b@10.9.0.2/24 \\
            --rtt 20ms --name own --for 30s --socket \"$1/own.sock\" >\"$1/out\" 2>\"$1/err\" &
        until grep -q 'is up' \"$1/out\"; do kill -0 $!; sleep 0.1; done
        ip netns exec a ping -n -c 3 -i 0.1 10.9.0.2
        \"$0\" bridge stop --socket \"$1/own.sock\"
        wait $! || [ $? = 3 ]
        cat \"$1/out\"
        test ! -e /run/netns/a";
    let mut command = Command::new("unshare");
    command.args(["-Urnm", "sh", "-c", script]).arg(server::binary()).arg(dir.path());
    // The rights of root in such a namespace do not depend on its creator, except for the device
    // file.
    let mut probe = Command::new("unshare");
    probe.args(["-Urnm", "sh", "-c", "mount -t tmpfs tmpfs /run && : <>/dev/net/tun"]);
    if !e2e::has("ping") || !process::run(&mut probe, process::DEADLINE).status.success() {
        skip!("bridge-user", "no ping, no namespaces for users, or no right to /dev/net/tun");
    }
    let said = String::from_utf8_lossy(&process::succeed(&mut command)).into_owned();
    assert!(said.contains(" 0% packet loss"), "{said}");
    assert!(said.contains("own is up: ns:a (device own, 10.9.0.1) to ns:b"), "{said}");
    assert!(said.contains("delay 10 ms"), "{said}");
}
