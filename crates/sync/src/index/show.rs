//! An index as text, for people.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use base::limits::DSYNC_PIECE;

use super::record::{MAGIC, Part, Record, Unfit, VERSION, scan};

/// Whether a file has the magic number of an index.
pub fn is_index(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == MAGIC
}

/// Writes what an index holds, a line for each entry. It is read twice: nothing is written of one
/// that is damaged.
///
/// # Errors
/// It is none, or could not be written ([`Unfit::Read`]).
pub fn inspect(path: &Path, out: &mut impl Write) -> Result<(), Unfit> {
    let open = || Ok::<_, io::Error>(BufReader::with_capacity(DSYNC_PIECE, File::open(path)?));
    let places = scan(open()?, |_| {})?;
    writeln!(out, "index of dsync, version {VERSION}")?;
    writeln!(out, "  source       {}", places.source.escape_ascii())?;
    writeln!(out, "  destination  {}", places.destination.escape_ascii())?;
    let mut written = Ok(());
    scan(open()?, |part| {
        if let Part::Record(role, _, record) = part
            && written.is_ok()
        {
            written = line(out, &role.to_string(), &record);
        }
    })?;
    Ok(written?)
}

fn line(out: &mut impl Write, side: &str, record: &Record) -> io::Result<()> {
    let Record { path, state, sum } = record;
    let (kind, size, inode) = (state.kind, state.size, state.file.inode);
    let changed = base::units::utc(state.mtime.seconds);
    write!(out, "  {side}: {} {kind} {size} B, {changed}, inode {inode}", path.escape_ascii())?;
    if let Some(sum) = sum {
        let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        write!(out, ", BLAKE3 {sum}")?;
    }
    writeln!(out)
}
