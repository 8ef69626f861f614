//! Each limit of the table in docs/security.md: what takes it, or which test shows it where it
//! cannot be used up, because it bounds one message or a time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Service::{Administration, Ftp, Http, Iscsi, Nfs3, Nfs4, Sftp, Smb};
use super::{Service, Take, admin, ftp, http, iscsi, nfs, nfs4, sftp, smb};

/// The document.
const DOCUMENT: &str = include_str!("../../docs/security.md");
/// Columns of its table, and the one with the limits.
const COLUMNS: usize = 7;
const LIMIT: usize = 4;

/// What a test does about a limit.
pub(crate) enum Taker {
    /// Takes it.
    Takes(&'static [(Service, Take)]),
    /// It bounds one message, or a time, and is free again when that ends: the test of it.
    PerRequest(&'static str),
    /// It is taken by another test like this one, where another transport or program is needed.
    Elsewhere(&'static str),
}

use Taker::{Elsewhere, PerRequest, Takes};

const CONNECTIONS: Taker = Takes(&[
    (Smb, smb::connections),
    (Nfs3, nfs::connections),
    (Nfs4, nfs::connections),
    (Iscsi, iscsi::connections),
    (Http, http::connections),
    (Sftp, sftp::connections),
    (Ftp, ftp::connections),
    (Administration, admin::connections),
]);
const BYTES: Taker = Takes(&[
    (Smb, smb::bytes),
    (Nfs3, nfs::bytes),
    (Nfs4, nfs::bytes),
    (Nfs4, nfs4::bytes),
    (Iscsi, iscsi::commands),
    (Http, http::bytes),
    (Http, http::streams),
    (Sftp, sftp::channels),
    (Ftp, ftp::transfers),
    (Administration, admin::halves),
]);
const POOL: Taker = Takes(&[
    (Smb, smb::pool),
    (Nfs3, nfs::pool),
    (Nfs4, nfs4::pool),
    (Http, http::pool),
    (Sftp, sftp::pool),
    (Ftp, ftp::pool),
]);
const HELD: Taker = Takes(&[
    (Smb, smb::listings),
    (Smb, smb::pipes),
    (Http, http::bytes),
    (Sftp, sftp::handles),
    (Ftp, ftp::transfers),
]);
const GUESSES: Taker = Takes(&[
    (Smb, smb::guesses),
    (Iscsi, iscsi::guesses),
    (Http, http::guesses),
    (Sftp, sftp::guesses),
    (Ftp, ftp::guesses),
    (Administration, admin::sign_ins),
]);
const LOCKS: Taker = Takes(&[
    (Smb, smb::locks),
    (Nfs3, nfs::locks),
    (Nfs4, nfs4::locks),
    (Nfs4, nfs4::ranges),
    (Http, http::locks),
]);
const OPENS: Taker = Takes(&[(Smb, smb::opens), (Nfs4, nfs4::opens), (Sftp, sftp::handles)]);
const WAITERS: Taker = Takes(&[(Smb, smb::waiters), (Nfs3, nfs::locks)]);
const SMB_BYTES: Taker = Takes(&[(Smb, smb::bytes)]);
const NFS_POOL: Taker = Takes(&[(Nfs3, nfs::pool), (Nfs4, nfs::pool)]);
const NFS_BYTES: Taker = Takes(&[(Nfs3, nfs::bytes), (Nfs4, nfs::bytes)]);
const REPLIES: Taker = Takes(&[(Nfs3, nfs::replies)]);
const V4_CLIENTS: Taker = Takes(&[(Nfs4, nfs4::clients)]);
const V4_SESSIONS: Taker = Takes(&[(Nfs4, nfs4::sessions)]);
const V4_STATES: Taker = Takes(&[(Nfs4, nfs4::opens), (Nfs4, nfs4::locks)]);
const DELEGATIONS: Taker = Takes(&[(Nfs4, nfs4::delegations)]);
const DIALS: Taker = Takes(&[(Nfs4, nfs4::callbacks)]);
const NLM_LOCKS: Taker = Takes(&[(Nfs3, nfs::locks)]);
const NLM_MESSAGES: Taker = Takes(&[(Nfs3, nfs::messages)]);
const STREAMS: Taker = Takes(&[(Nfs3, nfs::listings)]);
const CHANNELS: Taker = Takes(&[(Sftp, sftp::channels)]);
const H2_STREAMS: Taker = Takes(&[(Http, http::streams)]);
const HTTP_BYTES: Taker = Takes(&[(Http, http::bytes)]);
const UPLOADS: Taker = Takes(&[(Http, http::uploads)]);
const DAV_LOCKS: Taker = Takes(&[(Http, http::locks)]);
const FTP_TRANSFERS: Taker = Takes(&[(Ftp, ftp::transfers)]);
const COMMANDS: Taker = Takes(&[(Iscsi, iscsi::commands)]);
const QUEUE: Taker = Takes(&[(Iscsi, iscsi::queue)]);
const SESSIONS: Taker = Takes(&[(Smb, smb::sessions)]);
const SMB_OPENS: Taker = Takes(&[(Smb, smb::opens)]);
const HALVES: Taker = Takes(&[(Administration, admin::halves)]);
const ADMIN_CONNECTIONS: Taker = Takes(&[(Administration, admin::connections)]);
const ADMIN_SESSIONS: Taker = Takes(&[(Administration, admin::sessions)]);
const QUERIES: Taker = Takes(&[(Administration, admin::queries)]);

const COSTS: Taker = PerRequest("crates/serve/tests/costs");
const SMB_COSTS: Taker = PerRequest("crates/serve/tests/smb/bounds.rs");
const LOG: Taker = PerRequest("crates/base/src/log/limited/tests.rs");
const PACE: Taker = PerRequest("crates/serve/engine/src/transport/pace/tests.rs");
const RDMA: Taker = Elsewhere("crates/serve/tests/callbacks_rdma/limits.rs");
const SIGN_INS: Taker = Takes(&[(Ftp, ftp::sign_ins)]);
const REGISTRATIONS: Taker = Takes(&[(Iscsi, iscsi::registrations)]);
const AGENT: Taker = Elsewhere("crates/lab/src/agent/listen/tests.rs");
// Root and the user of the service only: no client of a service has a connection to it.
const HELPER: Taker = Elsewhere("crates/host/helper/tests/messages.rs");
const HELPER_REQUESTS: Taker = Elsewhere("crates/host/helper/src/request/tests.rs");
const HARDWARE: Taker = Elsewhere("crates/host/hardware/tests/machines.rs");
const LOBBY: Taker = Elsewhere("crates/lab/net/src/engine/lobby/tests.rs");

/// All limits of the table.
pub(crate) const LIMITS: &[(&str, Taker)] = &[
    ("CONNECTIONS_MAX", CONNECTIONS),
    ("CONNECTIONS_CLIENT_LEAVES", CONNECTIONS),
    ("CONNECTIONS_SURE_PART", CONNECTIONS),
    ("CONNECTIONS_CLOSING_PART", CONNECTIONS),
    ("BUFFERED_BYTES_MAX", BYTES),
    ("BUFFERED_CLIENT_LEAVES", BYTES),
    ("OVERDRAFTS_MAX", BYTES),
    ("SMALL_RECORDS_PART", BYTES),
    ("POOL_QUEUE_MAX", POOL),
    ("POOL_CLIENT_PART", POOL),
    ("POOL_THREADS_MAX", POOL),
    ("POOL_CLIENT_LEAVES", POOL),
    ("HELD_CLIENT_PART", HELD),
    ("HELD_CLIENT_MIN", HELD),
    ("HELD_PART", HELD),
    ("TRANSFER_LIST_LOOKED_MAX", COSTS),
    ("TRANSFER_LIST_SCANNED_MAX", COSTS),
    ("TRANSFER_LISTED_STEPS_MAX", COSTS),
    ("DIR_STREAMS_MAX", STREAMS),
    ("DIR_STREAMS_PER_NODE", STREAMS),
    ("LOG_CLIENT_INTERVAL", LOG),
    ("LOG_CLIENTS_MAX", LOG),
    ("LOG_NAME_MAX", LOG),
    ("LOG_LINE_MAX", LOG),
    ("PEER_PATIENCE", PACE),
    ("PEER_RATE_MIN", PACE),
    ("SIGN_IN_FREE_FAILURES", GUESSES),
    ("SIGN_IN_WAIT_MAX", GUESSES),
    ("SIGN_IN_PEERS_MAX", GUESSES),
    ("SIGN_IN_THREADS", SIGN_INS),
    ("SIGN_IN_QUEUE_MAX", SIGN_INS),
    ("SIGN_IN_QUEUE_CLIENT_MAX", SIGN_INS),
    ("CONNECTION_REQUESTS_MAX", NFS_POOL),
    ("REQUESTS_MAX", NFS_POOL),
    ("RPC_RECORD_MAX", NFS_BYTES),
    ("RECORD_TIME_MAX", NFS_BYTES),
    ("REPLAY_ENTRIES_MAX", REPLIES),
    ("REPLAY_BYTES_MAX", REPLIES),
    ("MOUNTS_MAX", PerRequest("crates/serve/nfs/src/nfs3/mounts/tests.rs")),
    ("DIRTY_NODES_MAX", PerRequest("crates/vfs/tests/host/upkeep.rs")),
    ("RETAINED_PART", PerRequest("crates/vfs/tests/host/retain.rs")),
    ("NFS4_CLIENTS_MAX", V4_CLIENTS),
    ("NFS4_CLIENTS_PER_ADDRESS_MAX", V4_CLIENTS),
    ("NFS4_SESSIONS_PER_CLIENT_MAX", V4_SESSIONS),
    ("NFS4_SLOTS_MAX", V4_SESSIONS),
    ("NFS4_CACHED_REPLY_MAX", V4_SESSIONS),
    ("NFS4_STATE_BYTES_PER_ADDRESS_MAX", V4_STATES),
    ("NFS4_STATE_BYTES_MAX", V4_STATES),
    ("DIALS_PER_ADDRESS_MAX", DIALS),
    ("DIALS_MAX", DIALS),
    ("OPENS_MAX", OPENS),
    ("LOCKS_MAX", LOCKS),
    ("LOCK_WAITERS_MAX", WAITERS),
    ("LOCK_PART_LEFT", OPENS),
    ("OPENS_PER_FILE_MAX", OPENS),
    ("LOCKS_PER_FILE_MAX", LOCKS),
    ("LOCK_WAITERS_PER_FILE_MAX", WAITERS),
    ("GRACE_WAIT_MAX", PerRequest("tests/lock_protocols.rs")),
    ("NFS4_STATES_PER_CLIENT_MAX", V4_STATES),
    ("NFS4_OWNERS_PER_CLIENT_MAX", V4_STATES),
    ("NFS4_DELEGATIONS_PER_CLIENT_MAX", DELEGATIONS),
    ("NFS4_DELEGATIONS_PER_ADDRESS_MAX", DELEGATIONS),
    ("NFS4_DELEGATIONS_MAX", DELEGATIONS),
    ("LEASES_PER_FILE_MAX", DELEGATIONS),
    ("LEASES_MAX", DELEGATIONS),
    ("LEASE_BREAK_TIME", PerRequest("crates/vfs/src/locks/leases/tests.rs")),
    ("NFS4_OPS_MAX", PerRequest("crates/serve/tests/nfs3/compounds.rs")),
    ("NFS4_REPLY_MAX", PerRequest("crates/serve/tests/nfs3/compounds.rs")),
    ("NLM_HOSTS_PER_ADDRESS_MAX", NLM_LOCKS),
    ("NLM_HOSTS_MAX", NLM_LOCKS),
    ("NLM_BLOCKED_PER_HOST_MAX", NLM_LOCKS),
    ("NLM_BLOCKED_PER_ADDRESS_MAX", NLM_LOCKS),
    ("NLM_BLOCKED_MAX", NLM_LOCKS),
    ("NLM_CALLS_PER_HOST_MAX", NLM_MESSAGES),
    ("NLM_CALLS_MAX", NLM_MESSAGES),
    ("NLM_MESSAGES_PER_HOST_MAX", NLM_MESSAGES),
    ("NLM_MESSAGES_MAX", NLM_MESSAGES),
    ("RDMA_CONNECTIONS_CLIENT_MAX", RDMA),
    ("RDMA_CONNECTIONS_MAX", RDMA),
    ("RDMA_ADDRESS_BYTES_MAX", RDMA),
    ("RDMA_CONNECTION_BYTES_MAX", RDMA),
    ("RDMA_REGISTERED_MAX", RDMA),
    ("RDMA_IDLE_MIN", PerRequest("crates/serve/nfs/src/rpc/rdma/permits/tests.rs")),
    ("RDMA_CLOSING_MAX", PerRequest("crates/serve/nfs/src/rpc/rdma/permits/tests.rs")),
    ("SEND_TIME_MAX", RDMA),
    ("FTP_PER_ADDRESS_MAX", Takes(&[(Ftp, ftp::connections)])),
    ("FTP_CONNECTIONS_MAX", Takes(&[(Ftp, ftp::connections)])),
    ("FTP_PIECE", FTP_TRANSFERS),
    ("FTP_LISTING_PIECE", FTP_TRANSFERS),
    ("TRANSFER_LIST_BATCH", HELD),
    ("SSH_UNSIGNED_PEER_MAX", Takes(&[(Sftp, sftp::connections)])),
    ("SSH_UNSIGNED_MAX", Takes(&[(Sftp, sftp::connections)])),
    ("SSH_WINDOW_BEGIN", CHANNELS),
    ("SSH_WINDOW", CHANNELS),
    ("SSH_WINDOWS_MAX", CHANNELS),
    ("SSH_CHANNELS_MAX", CHANNELS),
    ("SSH_RECEIVE_BUFFER", CHANNELS),
    ("SSH_BACKLOG_MAX", CHANNELS),
    ("SFTP_REQUESTS_MAX", Takes(&[(Sftp, sftp::pool)])),
    ("SFTP_FLIGHT_BYTES", Takes(&[(Sftp, sftp::pool)])),
    ("SFTP_HANDLES_MAX", Takes(&[(Sftp, sftp::handles)])),
    ("ISCSI_COMMANDS_MAX", COMMANDS),
    ("ISCSI_SESSIONS_CLIENT_MAX", Takes(&[(Iscsi, iscsi::registrations)])),
    ("ISCSI_SESSIONS_MAX", Takes(&[(Iscsi, iscsi::registrations)])),
    ("ISCSI_TRANSFER_MAX", COMMANDS),
    ("LUN_BUFFER", COMMANDS),
    ("LUN_THREADS", QUEUE),
    ("LUN_QUEUE_MAX", QUEUE),
    ("LUN_QUEUE_CLIENT_MAX", QUEUE),
    ("ISCSI_TEXT_MAX", PerRequest("crates/serve/iscsi/src/tests/login.rs")),
    ("LUN_FLUSHES_BEHIND_MAX", QUEUE),
    ("LUN_FLUSHES_BEHIND_CLIENT_MAX", QUEUE),
    ("LUN_UNSETTLED_MAX", REGISTRATIONS),
    ("LUN_REGISTRATIONS_MAX", REGISTRATIONS),
    ("LUN_REGISTRATIONS_ADDRESS_MAX", REGISTRATIONS),
    ("LUN_REGISTRATIONS_INITIATOR_MAX", REGISTRATIONS),
    ("DSYNC_SHARE_RUNS", Takes(&[(Sftp, sftp::runs)])),
    ("DSYNC_SHARE_RUNS_CLIENT_MAX", Takes(&[(Sftp, sftp::runs)])),
    ("DSYNC_RUN_BYTES", PerRequest("crates/sync/tests/dsync_hostile.rs")),
    ("DSYNC_SHARE_RUN_BYTES", Takes(&[(Sftp, sftp::runs)])),
    ("DSYNC_SHARE_BYTES_CLIENT_MAX", Takes(&[(Sftp, sftp::runs)])),
    ("DSYNC_SHARE_BYTES", Takes(&[(Sftp, sftp::runs)])),
    ("HTTP_HEAD_MAX", HTTP_BYTES),
    ("HTTP_PIECE", HTTP_BYTES),
    ("HTTP2_STREAMS_MAX", H2_STREAMS),
    ("HTTP2_STREAM_ROOM", H2_STREAMS),
    ("HTTP2_RESETS_MAX", PerRequest("crates/serve/tests/http/http2.rs")),
    ("HTTP2_SEND_BUFFER", H2_STREAMS),
    ("HTTP2_WINDOW", H2_STREAMS),
    ("HTTP_ARCHIVE_TABLE_MAX", HTTP_BYTES),
    ("HTTP_ARCHIVE_ENTRIES_MAX", HTTP_BYTES),
    ("HTTP_ARCHIVE_DEPTH_MAX", HTTP_BYTES),
    ("HTTP_UPLOADS_PER_USER", UPLOADS),
    ("HTTP_UPLOADS_PER_ADDRESS", UPLOADS),
    ("HTTP_UPLOADS_MAX", UPLOADS),
    ("HTTP_UPLOAD_IDLE", UPLOADS),
    ("HTTP_SESSIONS_MAX", PerRequest("crates/serve/web/src/state/tests.rs")),
    ("DAV_LOCKS_PER_USER_MAX", DAV_LOCKS),
    ("DAV_LOCKS_PER_ADDRESS_MAX", DAV_LOCKS),
    ("DAV_LOCKS_MAX", DAV_LOCKS),
    ("DAV_LOCK_ABOVE_MAX", DAV_LOCKS),
    ("HTTP_LISTING_SORTED_MAX", PerRequest("crates/serve/tests/http/listings.rs")),
    ("HTTP_LISTING_PAGE", PerRequest("crates/serve/tests/http/listings.rs")),
    ("SFTP_IDS_LOOKED_MAX", PerRequest("crates/serve/tests/sftp/requests.rs")),
    ("SCSI_COPY_BYTES_MAX", PerRequest("crates/serve/iscsi/src/tests/costs.rs")),
    ("COPY_TURN_MAX", PerRequest("crates/serve/tests/costs/nfs.rs")),
    ("DAV_BODY_MAX", PerRequest("crates/serve/tests/dav/properties.rs")),
    ("DAV_XML_NODES_MAX", PerRequest("crates/serve/tests/dav/properties.rs")),
    ("SMB_MESSAGE_MAX", SMB_BYTES),
    ("SMB_FRAME_TIME_MAX", SMB_BYTES),
    ("SMB_UNSIGNED_MESSAGE_MAX", PerRequest("tests/hostile/smb.rs")),
    ("SMB_REQUESTS_MAX", Takes(&[(Smb, smb::waiters)])),
    ("SMB_FLIGHT_BYTES", SMB_BYTES),
    ("SMB_WAITING_MAX", Takes(&[(Smb, smb::waiters)])),
    ("SMB_WAITING_BYTES", Takes(&[(Smb, smb::waiters)])),
    ("SMB_COMPOUND_MAX", PerRequest("tests/hostile/smb.rs")),
    ("SMB_COMPOUND_REPLY_MAX", PerRequest("tests/hostile/smb.rs")),
    ("SMB_SETUPS_MAX", Takes(&[(Smb, smb::sign_ins)])),
    ("SMB_SETUP_ROUNDS_MAX", Takes(&[(Smb, smb::sign_ins)])),
    ("SMB_SIGN_IN_TIME_MAX", Takes(&[(Smb, smb::sign_ins)])),
    ("SMB_IDLE", Takes(&[(Smb, smb::connections)])),
    ("SMB_SESSIONS_PER_CONNECTION", SESSIONS),
    ("SMB_TREES_MAX", SESSIONS),
    ("SMB_OPENS_MAX", SMB_OPENS),
    ("SMB_OPEN_UNITS_PER_CLIENT", SMB_OPENS),
    ("SMB_OPEN_UNITS_MAX", SMB_OPENS),
    ("SNAPSHOTS_OPEN_MAX", Elsewhere("crates/vfs/tests/host/snapshots.rs")),
    ("SNAPSHOTS_MAX", Elsewhere("crates/vfs/tests/host/snapshots.rs")),
    ("SMB_PARKED_MAX", Elsewhere("tests/hostile/reconnects.rs")),
    ("SMB_HANDLES_MAX", Elsewhere("crates/serve/smb/src/handles/tests.rs")),
    ("SMB_HANDLE_RECORD_MAX", PerRequest("crates/serve/smb/src/handles/tests.rs")),
    ("SMB_HANDLE_RECORDS_MAX", Elsewhere("crates/serve/smb/src/handles/tests.rs")),
    ("SMB_HANDLES_FILE_MAX", Elsewhere("crates/serve/smb/src/handles/tests.rs")),
    ("SMB_HANDLES_GROUP", Elsewhere("crates/serve/smb/src/handles/tests.rs")),
    ("SMB_DURABLE_V2_MAX", PerRequest("crates/serve/tests/smb/durable.rs")),
    ("SMB_DURABLE_V1", PerRequest("crates/serve/tests/smb/durable.rs")),
    ("SMB_WORK_MAX", SMB_COSTS),
    ("SMB_FOLD_ENTRIES_MAX", SMB_COSTS),
    ("SMB_SCAN_ENOUGH", SMB_COSTS),
    ("SMB_WORK_UNITS", SMB_COSTS),
    ("SMB_WORK_ENTRY", SMB_COSTS),
    ("SMB_PATTERN_MAX", SMB_COSTS),
    ("SMB_FOLD_INDEX_BYTES", PerRequest("crates/vfs/src/fold/index/tests.rs")),
    ("SMB_PIPE_BYTES_MAX", Takes(&[(Smb, smb::pipes)])),
    ("SMB_RANGES_MAX", Takes(&[(Smb, smb::locks)])),
    ("SMB_LISTINGS_MAX", Takes(&[(Smb, smb::listings)])),
    ("LAB_AGENT_STRANGERS_MAX", AGENT),
    ("LAB_AGENT_HELLO_TIME_MAX", AGENT),
    ("LAB_AGENT_HELLO_MAX", AGENT),
    ("LAB_AGENT_GONE_AFTER", AGENT),
    ("LAB_AGENT_BUSY_MAX", AGENT),
    ("LAB_CONTROLLER_STRANGERS_MAX", Elsewhere("crates/lab/src/agent/gate/tests.rs")),
    ("LAB_CODES_RETAINED", Elsewhere("crates/lab/src/agent/code/tests.rs")),
    ("LAB_AGENTS_MAX", Elsewhere("crates/lab/src/conduct/roster/tests.rs")),
    ("LAB_AGENT_UNSENT_MAX", Elsewhere("crates/lab/src/conduct/exchange/tests.rs")),
    ("HELLO_MAX", LOBBY),
    ("STRANGERS_MAX", LOBBY),
    ("THREADS_MAX", Elsewhere("crates/lab/net/src/read/tests.rs")),
    ("HELPER_CONNECTIONS_MAX", HELPER),
    ("REQUEST_MAX", HELPER),
    ("REPLY_MAX", HELPER),
    ("ITEMS_MAX", HELPER_REQUESTS),
    ("LIST_MAX", HELPER_REQUESTS),
    ("ATTRIBUTE_MAX", HARDWARE),
    ("TABLE_MAX", HARDWARE),
    ("OUTPUT_MAX", HARDWARE),
    ("TIME_MAX", HARDWARE),
    ("ENTRIES_MAX", HARDWARE),
    ("DISKS_MAX", HARDWARE),
    ("ADMIN_CONNECTIONS_CLIENT_MAX", ADMIN_CONNECTIONS),
    ("ADMIN_CONNECTIONS_MAX", ADMIN_CONNECTIONS),
    // Root and the serving user only: this process would take its own.
    ("ADMIN_LOCAL_CONNECTIONS_MAX", PerRequest("crates/control/src/listen/tests.rs")),
    ("API_HEAD_MAX", HALVES),
    ("API_BODY_MAX", HALVES),
    ("ADMIN_HANDSHAKE_TIMEOUT", HALVES),
    ("API_BODY_TIMEOUT", HALVES),
    ("SIGN_IN_WAITING_MAX", Takes(&[(Administration, admin::sign_ins)])),
    ("SIGN_IN_WAITING_CLIENT_MAX", Takes(&[(Administration, admin::sign_ins)])),
    ("SESSIONS_MAX", ADMIN_SESSIONS),
    ("SESSION_IDLE", ADMIN_SESSIONS),
    ("SESSION_AGE", ADMIN_SESSIONS),
    ("API_QUERIES_MAX", QUERIES),
    ("API_QUERIES_WAITING_MAX", QUERIES),
    ("API_QUERIES_CLIENT_MAX", QUERIES),
    ("API_QUERIES_WAITING_CLIENT_MAX", QUERIES),
    ("API_STREAMS_MAX", Takes(&[(Administration, admin::streams)])),
    ("API_STREAMS_CLIENT_MAX", Takes(&[(Administration, admin::streams)])),
];

/// The limits of the document, in the order of its rows.
pub(super) fn documented() -> Vec<&'static str> {
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let rows = rows.map(|row| row.split('|').collect::<Vec<_>>());
    let cells = rows.filter(|row| row.len() == COLUMNS).map(|row| row[LIMIT]);
    // Every second piece is in backticks.
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.collect()
}

pub(super) fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the repository").to_owned()
}

#[test]
fn each_limit_of_the_document_has_an_entry() {
    let documented: BTreeSet<_> = documented().into_iter().collect();
    assert!(documented.len() > 150, "{documented:?}");
    let entries: BTreeSet<_> = LIMITS.iter().map(|(limit, _)| *limit).collect();
    assert_eq!(entries.len(), LIMITS.len(), "an entry is there twice");
    let without: Vec<_> = documented.difference(&entries).collect();
    assert!(without.is_empty(), "limits of docs/security.md without an entry: {without:?}");
    let unknown: Vec<_> = entries.difference(&documented).collect();
    assert!(unknown.is_empty(), "entries of limits that docs/security.md has not: {unknown:?}");
}

#[test]
fn each_test_that_an_entry_names_exists() {
    for (limit, taker) in LIMITS {
        if let PerRequest(path) | Elsewhere(path) = taker {
            assert!(repository().join(path).exists(), "{limit}: {path}");
        }
    }
}
