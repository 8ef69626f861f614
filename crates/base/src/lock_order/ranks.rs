//! The order: every rank of the program, outer locks first. `docs/howto/locks-and-threads.md`
//! documents what each is held across; a test keeps the two consistent.

use super::Rank;

/// The sequence of an open-owner of NFSv4.0: held while one of its operations is done.
pub const NFS4_OPEN_OWNER: Rank = Rank::new(8, "NFSv4.0 open-owner's sequence");
/// The sequence of a lock-owner of NFSv4.0: the same; its first LOCK is also one of an open-owner.
pub const NFS4_LOCK_OWNER: Rank = Rank::new(10, "NFSv4.0 lock-owner's sequence");
/// NFSv4 clients by name: held where clients and sessions come and go.
pub const NFS4_CLIENTS: Rank = Rank::new(12, "NFSv4 clients by name");
/// Whether an NFSv4 client is on record: held while that is written to disk.
pub const NFS4_RECORDED: Rank = Rank::new(14, "NFSv4 client's record");
/// What an NFSv4 client holds.
pub const NFS4_HELD: Rank = Rank::new(16, "NFSv4 client's stateids");
/// Records of NLM hosts: held while they change on disk.
pub const NLM_RECORDS: Rank = Rank::new(20, "NLM records");
/// One NLM host: held while something is done for it.
pub const NLM_HOST: Rank = Rank::new(22, "NLM host");
/// The NLM hosts by address.
pub const NLM_HOSTS: Rank = Rank::new(24, "NLM hosts");
/// How an NLM host is called.
pub const NLM_CALLBACK: Rank = Rank::new(26, "NLM host's callback");
/// NLM locks that are waited for.
pub const NLM_BLOCKS: Rank = Rank::new(28, "NLM blocked locks");
/// A part of the table of opens, locks and leases.
pub const LOCK_TABLE: Rank = Rank::new(40, "lock table");
/// Which owner waits for a lock of which other.
pub const LOCK_WAITS: Rank = Rank::new(42, "lock waits");
/// What the clients of an address hold in the lock table.
pub const LOCK_PARTS: Rank = Rank::new(44, "lock parts");
/// Names by which files are open.
pub const LOCK_LINKS: Rank = Rank::new(46, "open names");
/// Clients that wait for changes of directories.
pub const DIRECTORY_NOTICES: Rank = Rank::new(48, "directory notices");
/// A part of the duplicate-request cache.
pub const REPLAY_CACHE: Rank = Rank::new(60, "replay cache");
/// Calls to a peer that wait for their replies.
pub const BACK_CALLS: Rank = Rank::new(62, "calls to a peer");
/// Permits for connections, over all services.
pub const CONNECTION_PERMITS: Rank = Rank::new(64, "connection permits");
/// The queue of the pool.
pub const POOL: Rank = Rank::new(70, "pool");
/// The queue of the flush group.
pub const FLUSH_GROUP: Rank = Rank::new(72, "flush group");
/// The completions of a connection.
pub const COMPLETIONS: Rank = Rank::new(74, "completion queue");

/// All of them.
pub const ALL: [Rank; 21] = [
    NFS4_OPEN_OWNER,
    NFS4_LOCK_OWNER,
    NFS4_CLIENTS,
    NFS4_RECORDED,
    NFS4_HELD,
    NLM_RECORDS,
    NLM_HOST,
    NLM_HOSTS,
    NLM_CALLBACK,
    NLM_BLOCKS,
    LOCK_TABLE,
    LOCK_WAITS,
    LOCK_PARTS,
    LOCK_LINKS,
    DIRECTORY_NOTICES,
    REPLAY_CACHE,
    BACK_CALLS,
    CONNECTION_PERMITS,
    POOL,
    FLUSH_GROUP,
    COMPLETIONS,
];
