//! Settings of shares on pools: quota, reservation, compression, snapshots by schedule. A share on
//! a directory has none of them.

use base::node::{Default, Kind, Property};

/// Most bytes that the share uses.
pub const QUOTA: &str = "quota";
/// Bytes that are kept free for it.
pub const RESERVATION: &str = "reservation";
/// How new files are compressed.
pub const COMPRESSION: &str = "compression";
/// Minutes between frequent snapshots.
pub const MINUTES: &str = "snapshot_minutes";
/// Snapshots that are kept of each schedule: of minutes, hours, days, weeks and months.
pub const KEPT: [&str; 5] = [
    "snapshots_frequent",
    "snapshots_hourly",
    "snapshots_daily",
    "snapshots_weekly",
    "snapshots_monthly",
];
/// Minutes between frequent snapshots, if nothing else is set.
pub const MINUTES_DEFAULT: u32 = 15;

/// Least quota and reservation: below it a file system may refuse even small files, because it
/// takes some metadata for each change that is not written yet.
const SPACE_MIN: u64 = 16 << 20;
/// Snapshots of a schedule, at most.
const KEEP_MAX: i64 = 1_000;
const SPACE: Kind = Kind::Bytes { min: SPACE_MIN, max: i64::MAX as u64 };

pub(super) const PROPERTIES: [Property; 9] = [
    Property::setting(
        QUOTA,
        "Quota",
        SPACE,
        Default::None,
        "Limits the space that the share uses on its pool. Data that only snapshots keep counts \
         unless the pool accounts snapshots.",
    )
    .example("100G"),
    Property::setting(
        RESERVATION,
        "Reservation",
        SPACE,
        Default::None,
        "Keeps space of the pool free for the share. Refused by pools of btrfs, which cannot.",
    )
    .example("10G"),
    Property::setting(
        COMPRESSION,
        "Compression",
        Kind::Choice(&[
            ("off", "Files are not compressed."),
            ("lzo", "LZO: fast, compresses little."),
            ("zstd", "Zstandard: compresses well."),
            ("zlib", "Deflate: compresses well, slower."),
        ]),
        Default::Text("off"),
        "Compresses new files on a pool. Files and folders that exist keep their compression, and \
         new files take over that of their folder.",
    ),
    kept(0, "Frequent snapshots", "Frequent snapshots to keep; 0: none are created."),
    Property::setting(
        MINUTES,
        "Frequent snapshots every",
        Kind::Integer { min: 1, max: 60 },
        Default::Integer(MINUTES_DEFAULT as i64),
        "Minutes between two frequent snapshots.",
    )
    .unit("minutes")
    .example("10"),
    kept(1, "Hourly snapshots", "Hourly snapshots to keep; 0: none are created."),
    kept(2, "Daily snapshots", "Daily snapshots to keep, created after midnight UTC; 0: none."),
    kept(3, "Weekly snapshots", "Weekly snapshots to keep, created on Monday; 0: none."),
    kept(4, "Monthly snapshots", "Monthly snapshots to keep; 0: none are created."),
];

const fn kept(at: usize, title: &'static str, help: &'static str) -> Property {
    let kind = Kind::Integer { min: 0, max: KEEP_MAX };
    Property::setting(KEPT[at], title, kind, Default::Integer(0), help)
}
