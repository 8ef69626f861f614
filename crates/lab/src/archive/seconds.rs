//! Latencies by second as an interval log of HdrHistogram, one file for each step: `Tag=`, begin,
//! length and maximum of each interval, and its histogram (V2, compressed, base64), which the log
//! processors of HdrHistogram read. Values are ns; the maximum is in ms, as they expect.

use crate::hist::{self, Hist};
use crate::record::Step;
use base::base64;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// The log of a step.
pub fn log(step: &Step) -> String {
    let mut out = String::from("#[Histogram log format version 1.3]\n");
    out += &format!("#[{} clients x {} threads, latencies in ns]\n", step.clients, step.threads);
    out += &format!("#[StartTime: {:.3} (seconds since epoch)]\n", step.started);
    out += &format!("#[BaseTime: {:.3} (seconds since epoch)]\n", step.started);
    out += "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",";
    out += "\"Interval_Compressed_Histogram\"\n";
    for second in &step.seconds {
        let Ok(hist) = hist::from_text(&second.histogram) else { continue };
        let mut bytes = Vec::new();
        // Writing to memory cannot fail.
        let _ = V2DeflateSerializer::new().serialize(&hist, &mut bytes);
        out += &format!(
            "{:.3},{:.3},{:.3},{}\n",
            second.after_s,
            second.length_s,
            second.max_ns as f64 / 1e6,
            base64::encode(&bytes)
        );
    }
    out
}

/// The intervals of a log: begin and length in seconds, latencies; `None` if it is not one.
pub fn read(text: &str) -> Option<Vec<(f64, f64, Hist)>> {
    let interval = |line: &str| {
        let mut fields = line.split(',');
        let (begin, length) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let bytes = base64::decode(fields.nth(1)?.trim_end_matches('=').as_bytes())?;
        let hist = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
        Some((begin, length, hist))
    };
    let head = |line: &&str| line.starts_with(['#', '"']);
    text.starts_with("#[Histogram log").then_some(())?;
    text.lines().filter(|line| !head(line)).map(interval).collect()
}
