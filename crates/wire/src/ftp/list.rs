//! Lines of LIST, in the format of `ls -l`: for users, but programs parse them too, so the format
//! follows their expectations. There is no decoder: clients that need exact values request facts
//! ([`super::facts`]).

use base::units::civil;

/// A file as LIST shows it.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Type and permissions: `drwxr-xr-x`.
    pub mode: [u8; 10],
    /// Hard links.
    pub links: u32,
    /// Number of the owner.
    pub owner: u32,
    /// Number of the group.
    pub group: u32,
    /// Bytes.
    pub size: u64,
    /// When it was changed: seconds since the epoch.
    pub modify: i64,
    /// Its name.
    pub name: &'a [u8],
    /// The target of a symbolic link.
    pub target: Option<&'a [u8]>,
}

/// Half a year: what is older is shown with its year, as ls does.
const RECENT: i64 = 182 * 86_400;

impl Line<'_> {
    /// Puts it behind `out`, with the end of the line; `now` in seconds since the epoch.
    pub fn encode(&self, now: i64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.mode);
        let c = civil(self.modify);
        let (month, day) = (c.month_name(), c.day);
        // A little in the future is still recent: clocks differ.
        let recent = (now - RECENT..now + 86_400).contains(&self.modify);
        let time = if recent {
            format!("{:02}:{:02}", c.hour, c.minute)
        } else {
            format!("{:>5}", c.year)
        };
        let Self { links, owner, group, size, .. } = self;
        let line = format!(" {links:>3} {owner:<8} {group:<8} {size:>12} {month} {day:>2} {time} ");
        out.extend_from_slice(line.as_bytes());
        name(self.name, out);
        if let Some(target) = self.target {
            out.extend_from_slice(b" -> ");
            name(target, out);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Puts a name of a listing behind `out`: a line cannot end in it, or a file could pretend to be
/// several.
pub fn name(name: &[u8], out: &mut Vec<u8>) {
    out.extend(name.iter().map(|b| if matches!(b, b'\r' | b'\n' | 0) { b'?' } else { *b }));
}
