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
    (Direction::Download.name(), "server to client"),
    (Direction::Upload.name(), "client to server"),
]);
const OUTCOMES: Kind = Kind::Choice(&[
    (Outcome::Complete.name(), "all requested data was transferred"),
    (Outcome::Partial.name(), "the client read a part and closed the file"),
    (Outcome::Cut.name(), "the connection was closed, or the client aborted"),
    (Outcome::Failed.name(), "an error of the server or its storage"),
    (Outcome::Refused.name(), "refused before the start"),
]);

/// The fields of each transfer are in `docs/formats/transfers.md`.
pub static TRANSFERS: Context = Context::new(
    "transfers",
    "Transfers",
    "Log of finished transfers over FTP, SFTP, HTTP and WebDAV: user, client, file, bytes, \
     duration and outcome, one line each in transfers.log of the state directory.",
    SCOPE,
)
.properties(&[
    Property::setting(
        "record",
        "Record",
        Kind::Bool,
        Default::Bool(true),
        "Whether to log transfers.",
    ),
    Property::setting(
        "size_max",
        "Maximum size",
        Kind::Bytes { min: TRANSFER_LOG_FILE_BYTES, max: TRANSFER_LOG_BYTES_MAX },
        Default::Integer(TRANSFER_LOG_BYTES as i64),
        "Maximum size of the log, in files of 8 MiB; the oldest is deleted first. A transfer \
         takes about 300 bytes.",
    )
    .example("256M"),
    Property::state("written", "Written", COUNT, "Transfers logged since the start."),
    Property::state(
        "dropped",
        "Dropped",
        COUNT,
        "Transfers not logged since the start, because of overload or a full file system.",
    ),
    Property::state("problem", "Problem", LINE, "Why the log cannot be written."),
    Property::state(
        "recent",
        "Recent",
        Kind::List { of: &LINE, max: TRANSFER_LOG_SHOWN },
        "Recent transfers since the start, newest first.",
    ),
])
.actions(&[Action::new(
    "find",
    "Find",
    "Shows finished transfers that match all given conditions, newest first.",
    "The transfers.",
)
.reading()
.parameters(&[
    Property::setting("protocol", "Protocol", PROTOCOLS, Default::None, "Protocol."),
    Property::setting("direction", "Direction", DIRECTIONS, Default::None, "Direction."),
    Property::setting("outcome", "Outcome", OUTCOMES, Default::None, "Outcome."),
    Property::setting("user", "User", WORD, Default::None, "User.").example("anna"),
    Property::setting("client", "Client", WORD, Default::None, "Client address.")
        .example("192.0.2.7"),
    Property::setting("share", "Share", WORD, Default::None, "Share."),
    Property::setting(
        "since",
        "Since",
        Kind::Time,
        Default::None,
        "End of the transfer at or after this time.",
    ),
    Property::setting(
        "until",
        "Until",
        Kind::Time,
        Default::None,
        "End of the transfer before this time.",
    ),
    Property::setting(
        "limit",
        "Limit",
        Kind::Integer { min: 1, max: base::limits::TRANSFER_LOG_ROWS_MAX as i64 },
        Default::Integer(TRANSFER_LOG_SHOWN as i64),
        "Maximum number of entries.",
    ),
])]);
