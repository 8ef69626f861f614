//! The messages, in the order in which they occur.

use base::limits::{
    DSYNC_ADDRESS_MAX, DSYNC_ENTRIES_MAX, DSYNC_OWNER_MAX, DSYNC_PATTERN_MAX, DSYNC_PLACE_MAX,
    DSYNC_RULES_MAX, DSYNC_SUMS_MAX, DSYNC_TEXT_MAX, NAME_MAX, PATH_MAX,
};

use super::{Bytes, Entry, Meta};
use crate::xdr::Seq;

/// A message for users.
pub type Text = Bytes<DSYNC_TEXT_MAX>;
/// The way to a file from the top of the tree, its names joined by `/`; empty for the top.
pub type Path = Bytes<PATH_MAX>;

xdr_enum! {
    /// Which part a side has.
    pub enum Role {
        /// It reads.
        SOURCE = 1 "source",
        /// It makes its tree the same.
        DESTINATION = 2 "destination",
    }
}

xdr_enum! {
    /// What is to be done with a requested file.
    pub enum SendMode {
        /// Send it.
        SEND = 0 "send",
        /// Send it, if its hash is another.
        SEND_IF_OTHER = 1 "send if other",
        /// Report whether its hash is another.
        COMPARE = 2 "compare",
    }
}

xdr_enum! {
    /// The result of a file.
    pub enum Outcome {
        /// It was sent whole, and did not change meanwhile.
        WHOLE = 0 "whole",
        /// It has the hash of the request.
        SAME = 1 "same",
        /// It has another hash; nothing was sent.
        OTHER = 2 "other",
        /// It could not be read, is no file any more, or changes faster than it can be read.
        FAILED = 3 "failed",
    }
}

xdr_enum! {
    /// What a note is about.
    pub enum About {
        /// A file, directory, link or node is made.
        CREATE = 1 "create",
        /// Its content is replaced.
        UPDATE = 2 "update",
        /// Its mode, owner, times or attributes are set.
        METADATA = 3 "metadata",
        /// It becomes another name of a file.
        LINK = 4 "link",
        /// It is deleted.
        DELETE = 5 "delete",
        /// Something failed with it.
        FAILURE = 6 "failure",
        /// Something to know; nothing failed.
        NOTICE = 7 "notice",
    }
}

xdr_struct! {
    /// The first message of both sides.
    pub struct Hello {
        /// [`super::MAGIC`].
        pub magic: [u8; 8],
        /// [`super::VERSION`].
        pub version: u32,
    }
}

xdr_struct! {
    /// A rule of what is carried: the first that fits decides.
    pub struct Rule {
        /// Whether what fits is carried.
        pub include: bool,
        /// The pattern.
        pub pattern: Bytes<DSYNC_PATTERN_MAX>,
    }
}

xdr_struct! {
    /// Options of a run, sent by the side that started it.
    pub struct Options {
        /// Entries that the source does not have are deleted.
        pub delete: bool,
        /// Files are compared by their content, not by size and time.
        pub checksum: bool,
        /// Nothing is changed.
        pub dry_run: bool,
        /// Owner and group are preserved, where the destination has the right.
        pub owners: bool,
        /// They are preserved by their names, where the destination has these.
        pub names: bool,
        /// Extended attributes are preserved.
        pub xattrs: bool,
        /// Device nodes are made.
        pub devices: bool,
        /// Files retain what lets them run as another user, or with privileges: set-user-id,
        /// set-group-id and capabilities.
        pub set_id: bool,
        /// Pieces may be compressed.
        pub pack: bool,
        /// Changed files are written in place, not to temporary files.
        pub in_place: bool,
        /// Most bytes per second; 0 for as many as there can be.
        pub bandwidth: u64,
        /// What is copied, and what is excluded.
        pub rules: Seq<Rule, DSYNC_RULES_MAX>,
    }
}

xdr_struct! {
    /// What the answering side is to do.
    pub struct Start {
        /// Its part.
        pub role: Role,
        /// Its directory.
        pub place: Bytes<DSYNC_PLACE_MAX>,
        /// What is wanted.
        pub options: Options,
        /// Data streams that it is to offer, if any.
        pub streams: Option<StreamRequest>,
    }
}

xdr_struct! {
    /// Streams for data that the starting side would like to connect.
    pub struct StreamRequest {
        /// Most of them.
        pub most: u32,
        /// The lowest port that may be used; 0 for any.
        pub low: u32,
        /// The highest.
        pub high: u32,
    }
}

xdr_struct! {
    /// Where streams for data are waited for: TLS 1.3, and the token as the first bytes.
    pub struct Offer {
        /// The address by which this machine was reached, if that is known.
        pub address: Option<Bytes<DSYNC_ADDRESS_MAX>>,
        /// The port.
        pub port: u32,
        /// BLAKE3 of the certificate that is shown there.
        pub fingerprint: [u8; 32],
        /// What each stream begins with.
        pub token: [u8; 32],
        /// Most streams that are taken.
        pub most: u32,
    }
}

xdr_struct! {
    /// The answering side begins.
    pub struct Ready {
        /// Data streams, if they were requested and are available.
        pub offer: Option<Offer>,
        /// Why they are unavailable.
        pub why: Text,
    }
}

xdr_struct! {
    /// A message for the other side: why it ends here.
    pub struct Refused {
        /// Why.
        pub why: Text,
    }
}

xdr_struct! {
    /// The source continues with this directory: the top, and then always the next in preorder.
    pub struct Directory {
        /// Its name; empty for the top.
        pub name: Bytes<NAME_MAX>,
        /// What it is; the destination knows that of all but the top from its entry.
        pub meta: Option<Meta>,
    }
}

xdr_struct! {
    /// Entries of the directory, by their names' bytes.
    pub struct Entries {
        /// The next of them.
        pub entries: Seq<Entry, DSYNC_ENTRIES_MAX>,
    }
}

xdr_struct! {
    /// All entries of the directory were sent.
    pub struct DirectoryEnd {
        /// Why the list is incomplete; missing entries then do not count as removed.
        pub failed: Option<Text>,
    }
}

xdr_struct! {
    /// There is room for this many more bytes of entries.
    pub struct Credit {
        /// Bytes of messages, without their frames.
        pub bytes: u64,
    }
}

xdr_struct! {
    /// The division of a file into blocks; their sums follow.
    pub struct Basis {
        /// Bytes of a block.
        pub block: u32,
        /// How many sums follow: of whole blocks only.
        pub count: u32,
    }
}

xdr_struct! {
    /// The destination requests a file.
    pub struct Need {
        /// Identifies the replies; each is used once.
        pub id: u64,
        /// The way to it.
        pub path: Path,
        /// What is to be done with it.
        pub wish: SendMode,
        /// BLAKE3 of what the destination has, for all values of `wish` but the first.
        pub hash: Option<[u8; 32]>,
        /// What the destination has, if only differences are to be sent.
        pub basis: Option<Basis>,
        /// What it has of this very file, each block at its place, from a run that broke off. Its
        /// sums follow those of the basis.
        pub kept: Option<Basis>,
    }
}

xdr_struct! {
    /// The sums of a block.
    pub struct Sum {
        /// Quick to move on by a byte.
        pub weak: u32,
        /// The first half of its BLAKE3.
        pub strong: [u8; 16],
    }
}

xdr_struct! {
    /// Sums of the blocks of a requested file, in their order.
    pub struct Sums {
        /// Of which file.
        pub id: u64,
        /// The next of them.
        pub sums: Seq<Sum, DSYNC_SUMS_MAX>,
    }
}

xdr_struct! {
    /// A file begins, or restarts if it had begun already.
    pub struct Begin {
        /// Which.
        pub id: u64,
        /// As it is now.
        pub meta: Meta,
    }
}

xdr_struct! {
    /// A piece of a file. Pieces come in any order and do not overlap.
    pub struct Data<'a> {
        /// Of which file.
        pub id: u64,
        /// How often the file had restarted: pieces with an older number are ignored.
        pub turn: u32,
        /// Bytes of the hole before it, which is a part of what it covers.
        pub hole: u64,
        /// Where it begins.
        pub offset: u64,
        /// How many bytes it is when it is unpacked, if it is a frame of zstd (RFC 8878); else 0.
        pub unpacked: u32,
        /// The bytes.
        pub bytes: &'a [u8],
    }
}

xdr_struct! {
    /// A small file at once, which has not begun: it begins, comes and ends with this. None of its
    /// bytes lie in a hole.
    pub struct Whole<'a> {
        /// Which.
        pub id: u64,
        /// As it is.
        pub meta: Meta,
        /// As in [`End`]: its bytes are one piece, and none if there are none.
        pub hash: [u8; 32],
        /// As in [`Data`].
        pub unpacked: u32,
        /// All of its bytes.
        pub bytes: &'a [u8],
    }
}

xdr_struct! {
    /// A piece that the destination has.
    pub struct Copy {
        /// Of which file.
        pub id: u64,
        /// As in [`Data`].
        pub turn: u32,
        /// As in [`Data`].
        pub hole: u64,
        /// Where it begins.
        pub offset: u64,
        /// Where it begins in what the destination has.
        pub from: u64,
        /// Bytes.
        pub length: u32,
    }
}

xdr_struct! {
    /// A piece that is at its place already, from an interrupted run.
    pub struct Kept {
        /// Of which file.
        pub id: u64,
        /// As in [`Data`].
        pub hole: u64,
        /// Where it begins.
        pub offset: u64,
        /// Bytes.
        pub length: u32,
    }
}

xdr_struct! {
    /// A file ends.
    pub struct End {
        /// Which.
        pub id: u64,
        /// How it went.
        pub outcome: Outcome,
        /// The sum, modulo 2^256, of BLAKE3 of each piece since it began last: of its offset and
        /// its bytes.
        pub hash: [u8; 32],
        /// How many pieces were sent of it, including those before restarts: it ends when all have
        /// come.
        pub pieces: u64,
        /// As it is now, if nothing was sent of it.
        pub meta: Option<Meta>,
        /// Why it failed.
        pub why: Text,
    }
}

xdr_struct! {
    /// What the destination does or finds, to be reported at the source.
    pub struct Note {
        /// What it is about.
        pub about: About,
        /// The way to it.
        pub path: Path,
        /// Details, as text.
        pub text: Text,
    }
}

xdr_struct! {
    /// What was counted; all since the beginning.
    pub struct Counts {
        /// Entries of the source that were looked at.
        pub entries: u64,
        /// Entries that are created, changed, linked or deleted.
        pub changes: u64,
        /// Files with requested content.
        pub files: u64,
        /// Their bytes.
        pub bytes: u64,
        /// Files of those that are complete.
        pub files_done: u64,
        /// Bytes that were written, holes apart.
        pub bytes_done: u64,
        /// Bytes that came from the source.
        pub bytes_received: u64,
        /// Bytes that share their place on the disk with another file.
        pub bytes_cloned: u64,
        /// Bytes that the kernel has copied from another file.
        pub bytes_copied: u64,
        /// Device nodes that were passed over, because they are not wanted.
        pub devices_skipped: u64,
        /// Files that were carried without their set-user-id, set-group-id or capabilities, because
        /// those are not wanted.
        pub set_id_dropped: u64,
        /// What failed.
        pub failures: u64,
        /// Whether all entries were looked at.
        pub scanned: bool,
    }
}

xdr_struct! {
    /// What the destination has taken from a data stream.
    pub struct Taken {
        /// The number with which the stream has begun.
        pub stream: u32,
        /// Bytes of whole frames, heads included, since its begin.
        pub bytes: u64,
        /// Whether it has ended there: what is beyond these bytes goes another way.
        pub ended: bool,
    }
}

xdr_struct! {
    /// The source abandons a data stream, and waits for the number of bytes that were taken from
    /// it.
    pub struct Broken {
        /// The number with which it has begun.
        pub stream: u32,
    }
}

xdr_struct! {
    /// What a side has used and waited for, all since the beginning: nanoseconds, summed over
    /// threads and streams.
    pub struct Load {
        /// How long it is at work.
        pub at_ns: u64,
        /// Its disk was waited for.
        pub disk_ns: u64,
        /// Room for what was read was waited for.
        pub room_ns: u64,
        /// It paused, because it shall not send more.
        pub paused_ns: u64,
        /// Its processors worked for this process.
        pub cpu_ns: u64,
        /// How many processors it has.
        pub cpus: u32,
        /// Streams that are up.
        pub streams: u32,
        /// TCP of the streams had data in flight.
        pub busy_ns: u64,
        /// Of that, the receiver's window was full.
        pub rwnd_ns: u64,
        /// Of that, the sender's buffer was.
        pub sndbuf_ns: u64,
    }
}

xdr_struct! {
    /// A piece of a file that the source lends to a destination of its own process: its bytes come
    /// from there, and no hash is made of them.
    pub struct Lent {
        /// Of which file.
        pub id: u64,
        /// As in [`Data`].
        pub hole: u64,
        /// Where it begins, here and there.
        pub offset: u64,
        /// Bytes.
        pub length: u64,
    }
}

xdr_struct! {
    /// What became of a piece that was lent.
    pub struct Borrowed {
        /// Of which file.
        pub id: u64,
        /// Whether it is taken; if not, it is to be sent.
        pub taken: bool,
    }
}

xdr_struct! {
    /// What an owner or a group is called, before the first entry that has it.
    pub struct Owner {
        /// Whether it is a group.
        pub group: bool,
        /// Its number at the source.
        pub number: u32,
        /// Its name there.
        pub name: Bytes<DSYNC_OWNER_MAX>,
    }
}

xdr_union! {
    /// One message: of both sides, of the source, of the destination; each has its members in the
    /// structure of its name.
    #[allow(missing_docs)]
    Message<'a> "message" {
        1 Hello(Hello),
        2 Start(Start),
        3 Ready(Ready),
        4 Refused(Refused),
        10 Directory(Directory),
        11 Entries(Entries),
        12 DirectoryEnd(DirectoryEnd),
        13 ScanEnd(()),
        14 Begin(Begin),
        15 Data(Data<'a>),
        16 Copy(Copy),
        17 End(End),
        18 Kept(Kept),
        19 Whole(Whole<'a>),
        20 Credit(Credit),
        21 Need(Need),
        22 Sums(Sums),
        23 Note(Note),
        24 Progress(Counts),
        25 Done(Counts),
        26 Alone(()),
        27 Taken(Taken),
        28 Broken(Broken),
        29 Load(Load),
        30 Lent(Lent),
        31 Borrowed(Borrowed),
        32 Owner(Owner),
    }
}
