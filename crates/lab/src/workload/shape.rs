//! The kinds of load, and the size and shape of one.

use crate::limit::Direction;
use serde::{Deserialize, Serialize};

/// The kinds of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Every file from start to end, repeatedly; the slots share one position.
    SeqRead,
    /// Blocks at random.
    RandRead,
    /// Every file from start to end, unstable, with a COMMIT at the end of each.
    SeqWrite,
    /// Blocks at random, each stable before its slot writes the next.
    SyncWrite,
    /// Empty files created and removed in turn by each slot.
    Create,
    /// Attributes of the files in turn.
    Getattr,
    /// Names of the files in turn looked up.
    Lookup,
    /// Round trips without work.
    Null,
}

/// Name, sentence: the table of workloads, for help and documentation.
pub const KINDS: &[(&str, Kind, &str)] = &[
    ("seqread", Kind::SeqRead, "reads every file from start to end, repeatedly"),
    ("randread", Kind::RandRead, "reads blocks at random offsets"),
    ("seqwrite", Kind::SeqWrite, "writes every file from start to end, with COMMIT at the end"),
    ("syncwrite", Kind::SyncWrite, "writes blocks at random offsets, each stable before the next"),
    ("create", Kind::Create, "creates and removes empty files in turn"),
    ("getattr", Kind::Getattr, "reads attributes of the files in turn"),
    ("lookup", Kind::Lookup, "looks up the names of the files in turn"),
    ("null", Kind::Null, "NULL calls"),
];

impl Kind {
    /// The name in job files.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|k| k.1 == self).map_or("?", |k| k.0)
    }
    /// Whether bytes per second is the figure of interest, rather than operations.
    pub fn is_stream(self) -> bool {
        matches!(self, Self::SeqRead | Self::SeqWrite)
    }
    /// Which way its payload goes.
    pub fn payload(self) -> Option<Direction> {
        match self {
            Self::SeqRead | Self::RandRead => Some(Direction::Read),
            Self::SeqWrite | Self::SyncWrite => Some(Direction::Write),
            Self::Create | Self::Getattr | Self::Lookup | Self::Null => None,
        }
    }
    /// Whether each operation can be started whatever became of others.
    pub fn is_independent(self) -> bool {
        !matches!(self, Self::SeqWrite | Self::Create)
    }
    /// Whether files must hold their content before the first step.
    pub fn needs_files(self) -> bool {
        !matches!(self, Self::Create | Self::Null)
    }
}

/// Size and shape of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// What is done.
    pub kind: Kind,
    /// Bytes of each read or write.
    pub block: u32,
    /// Files of each client.
    pub files: u32,
    /// Size of each file, in bytes; at least one block.
    pub file_size: u64,
    /// Each thread goes through files of its own, at a position of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_files: bool,
}

impl Shape {
    /// Whether threads have positions of their own: of workloads that go from start to end.
    pub fn has_own_files(&self) -> bool {
        self.own_files && self.kind.is_stream()
    }
}
