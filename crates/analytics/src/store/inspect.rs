//! Any segment as text, without a server: `plimsoll inspect FILE`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use base::buckets;
use base::text::visible;

use super::codec::everything;
use super::segment::{self, SegmentError};
use crate::model::{Frame, Key};

/// Writes the segment at `path` to `out` as text, a line for the header, each frame, table and row.
///
/// # Errors
/// When the file is no segment or `out` refuses.
pub fn inspect(path: &Path, out: &mut dyn io::Write) -> Result<(), SegmentError> {
    let mut failed = None;
    let mut visit = |frame: Frame| {
        if failed.is_none()
            && let Err(error) = out.write_all(text(&frame).as_bytes())
        {
            failed = Some(error);
        }
    };
    let header = segment::read(path, (0, u64::MAX), &everything, &mut visit)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let state = if header.sealed { "sealed" } else { "live" };
    writeln!(out, "segment {state} span {} start {}", header.span, header.start)?;
    Ok(())
}

fn text(frame: &Frame) -> String {
    let Frame { time, span, covered, dropped, tables } = frame;
    let mut out = format!("frame {time} span {span} covered {covered} dropped {dropped}\n");
    for table in tables {
        let ([a, b], [x, y], [e, f]) = (&table.dimensions, table.total, table.error);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {} [{a}][{b}] total {x} {y} error {e} {f}", table.stat);
        for (a, b, [x, y]) in &table.rows {
            let _ = writeln!(out, "    {} | {} | {x} {y}", key(a), key(b));
        }
    }
    out
}

fn key(key: &Key) -> String {
    match key {
        Key::Other => "other".into(),
        Key::Bucket(n) => {
            let n = usize::from(*n);
            format!("{}-{}", buckets::low(n), buckets::high(n))
        }
        Key::Name(name) if name.key == name.label => visible(&name.key).into_owned(),
        Key::Name(name) => format!("{} ({})", visible(&name.key), visible(&name.label)),
    }
}
