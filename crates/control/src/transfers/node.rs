//! The log of transfers as a node of the tree.

use base::limits::{
    TRANSFER_LOG_BYTES, TRANSFER_LOG_BYTES_MAX, TRANSFER_LOG_FILE_BYTES, TRANSFER_LOG_SHOWN,
    USER_NAME_MAX,
};
use base::node::{Action, Context, Default, Kind, Property, Shape};
use base::protocol::Scheme;
use vfs::transfers::{Direction, Outcome};

const SCOPE: &str = "maintenance";
const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
static LINE: Kind = Kind::Text { max: 16_384, shape: Shape::Line };
const WORD: Kind = Kind::Text { max: USER_NAME_MAX, shape: Shape::Line };

const PROTOCOLS: Kind = Kind::Choice(&Scheme::LOGGED_CHOICES);
const DIRECTIONS: Kind = Kind::Choice(&[
    (Direction::Download.name(), "to the client"),
    (Direction::Upload.name(), "from the client"),
]);
const OUTCOMES: Kind = Kind::Choice(&[
    (Outcome::Complete.name(), "all that was asked for was moved"),
    (Outcome::Partial.name(), "the client has read a part and closed the file"),
    (Outcome::Cut.name(), "the connection ended, or the client gave up"),
    (Outcome::Failed.name(), "it had begun, and the server or its disk could not go on"),
    (Outcome::Refused.name(), "it did not begin"),
]);

/// What is written down of each transfer is in `docs/formats/transfers.md`.
pub static TRANSFERS: Context = Context::new(
    "transfers",
    "Transfers",
    "Who took or put which file over FTP, SFTP, HTTP and WebDAV, when, how much of it, and how it \
     ended: a line for each transfer, when it has ended, in transfers.log of the state directory.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "record",
        "Record",
        Kind::Bool,
        Default::Bool(true),
        "Whether transfers are written down, from now on.",
    ),
    Property::setting(
        "size_max",
        "Size at most",
        Kind::Bytes { min: TRANSFER_LOG_FILE_BYTES, max: TRANSFER_LOG_BYTES_MAX },
        Default::Integer(TRANSFER_LOG_BYTES as i64),
        "How much of the log is kept, in files of 8 MiB; the oldest goes first. A transfer takes \
         some 300 bytes.",
    )
    .example("256M"),
    Property::state("written", "Written", COUNT, "Transfers written down since the start."),
    Property::state(
        "dropped",
        "Dropped",
        COUNT,
        "Transfers that were not, because they came faster than they could be written, or there \
         was no space.",
    ),
    Property::state("problem", "Problem", LINE, "Why nothing can be written down now."),
    Property::state(
        "recent",
        "Recent",
        Kind::List { of: &LINE, max: TRANSFER_LOG_SHOWN },
        "The newest transfers since the start, the newest first.",
    ),
])
.actions(&[Action::new(
    "find",
    "Find",
    "Shows transfers that have ended, the newest first; all conditions that are given hold.",
    "The transfers.",
)
.reading()
.parameters(&[
    Property::setting("protocol", "Protocol", PROTOCOLS, Default::None, "Over this protocol."),
    Property::setting("direction", "Direction", DIRECTIONS, Default::None, "This way."),
    Property::setting("outcome", "Outcome", OUTCOMES, Default::None, "That ended so."),
    Property::setting("user", "User", WORD, Default::None, "By this user.").example("anna"),
    Property::setting("client", "Client", WORD, Default::None, "From this address.")
        .example("192.0.2.7"),
    Property::setting("share", "Share", WORD, Default::None, "On this share."),
    Property::setting("since", "Since", Kind::Time, Default::None, "Ended at this time or later."),
    Property::setting("until", "Until", Kind::Time, Default::None, "Ended before this time."),
    Property::setting(
        "limit",
        "Limit",
        Kind::Integer { min: 1, max: base::limits::TRANSFER_LOG_ROWS_MAX as i64 },
        Default::Integer(TRANSFER_LOG_SHOWN as i64),
        "At most so many.",
    ),
])]);
