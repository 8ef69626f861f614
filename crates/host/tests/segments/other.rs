//! What bpftrace counts on the server's interface: by the number of the soft interrupt plus 1.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use host::segments::Context;

use super::bed::{AGAIN, DEADLINE, DEVICE, ends, sh};

/// How long it may take to print its maps after a signal, before another one is sent.
const END: Duration = Duration::from_secs(30);

/// Segments and bytes by context.
pub type Counts = [(u64, u64); Context::ALL.len()];

/// bpftrace as it runs. Its output goes into a file, so that it never waits for a reader.
pub struct Other {
    child: Child,
    output: PathBuf,
}

impl Other {
    /// Starts it and waits until its probes are attached.
    pub fn start() -> Self {
        sh("mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing");
        // 66 bytes of headers: Ethernet, IPv4, TCP with timestamps.
        let script = format!(
            "BEGIN {{ printf(\"attached\\n\"); }}
             tracepoint:irq:softirq_entry {{ @v[cpu] = args->vec + 1; }}
             tracepoint:irq:softirq_exit {{ @v[cpu] = 0; }}
             tracepoint:net:net_dev_start_xmit
             /str(args->name) == \"{DEVICE}\" && args->len > 66/ {{
                 @n[@v[cpu]] = count(); @b[@v[cpu]] = sum(args->len - 66);
             }}"
        );
        let output = std::env::temp_dir().join(format!("plsegs-{}", std::process::id()));
        let file = std::fs::File::create(&output).expect("a file");
        // Its own option for a file keeps lines back until the end.
        let mut child = Command::new("bpftrace")
            .args(["-B", "line", "-e", &script])
            .stdin(Stdio::null())
            .stdout(file)
            .spawn()
            .expect("bpftrace");
        let end = Instant::now() + DEADLINE;
        while !std::fs::read_to_string(&output).is_ok_and(|text| text.contains("attached")) {
            assert!(child.try_wait().expect("a state").is_none(), "bpftrace has ended");
            assert!(Instant::now() < end, "bpftrace does not attach");
            std::thread::sleep(AGAIN);
        }
        Self { child, output }
    }

    /// Ends it: it prints its maps.
    pub fn stop(mut self) -> Counts {
        let pid = self.child.id();
        let ended = ["INT", "TERM"].into_iter().any(|signal| {
            sh(&format!("kill -{signal} {pid}"));
            ends(&mut self.child, END)
        });
        assert!(ended, "bpftrace does not end");
        let text = std::fs::read_to_string(&self.output).expect("its maps");
        let mut all = Counts::default();
        for row in text.lines() {
            let Some((map, rest)) = row.strip_prefix('@').and_then(|r| r.split_once('[')) else {
                continue;
            };
            let Some((vector, value)) = rest.split_once("]: ") else { continue };
            let value: u64 = value.trim().parse().expect("a number");
            let at = context(vector);
            match map {
                "n" => all[at].0 += value,
                "b" => all[at].1 += value,
                _ => {}
            }
        }
        all
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        let _left = std::fs::remove_file(&self.output);
    }
}

/// As [`Context`] has it, by the numbers of linux/interrupt.h, written again here.
fn context(vector: &str) -> usize {
    match vector {
        "0" => 0,
        "4" => 1,
        "1" | "7" => 2,
        "9" => 3,
        "2" => 4,
        "3" => 5,
        _ => 6,
    }
}
