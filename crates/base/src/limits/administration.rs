//! Limits of the administration: its listener and shell, the tree, certificates, alerts, runs of
//! the lab. Part of [`super`], where all others are.

use std::time::Duration;

// --- control: the admin listener and the local socket -------------------------------------------

/// Connections of the HTTPS listener of the administration at once: a browser opens six, scripts a
/// few.
pub const ADMIN_CONNECTIONS_MAX: usize = 256;
/// How many of them one client address (for IPv6 its /64) may have: half, so that one address
/// never takes the places of all others, and dozens of browsers behind one proxy still fit.
pub const ADMIN_CONNECTIONS_CLIENT_MAX: usize = 128;
/// Connections of the local socket at once. They are limited apart from those of the network, so
/// that clients of the network can never lock out an administrator on this host.
pub const ADMIN_LOCAL_CONNECTIONS_MAX: usize = 64;
/// Time a client has for the TLS handshake, and then for each request head.
pub const ADMIN_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time given to admin connections when the server ends.
pub const ADMIN_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Largest request body of the API, in bytes: every body so far is a few fields.
pub const API_BODY_MAX: usize = 64 << 10;
/// Time for the body of a request to arrive: the largest configuration at 70 KB/s.
pub const API_BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest request head of the API, in bytes: a worksheet's stream names many statistics.
pub const API_HEAD_MAX: usize = 64 << 10;
/// Live streams at once; each has a thread that waits for the next second.
pub const API_STREAMS_MAX: usize = 64;
/// The same of one address: half, which is more pages than one screen shows.
pub const API_STREAMS_CLIENT_MAX: usize = API_STREAMS_MAX / 2;
/// Statistics in one live stream: more panels than a screen holds.
pub const API_STREAM_STATS_MAX: usize = 64;
/// Seconds a live stream may lag behind before it loses some.
pub const API_STREAM_BUFFER: usize = 16;
/// Between two signs of life on a stream without data, below the idle limit of proxies.
pub const API_STREAM_KEEPALIVE: Duration = Duration::from_secs(15);
/// Queries of stored statistics that run at once; they read files.
pub const API_QUERIES_MAX: usize = 3;
/// The same of one address: two leave cores for service, and one query to other addresses.
pub const API_QUERIES_CLIENT_MAX: usize = 2;
/// Queries that run or wait; more get 503.
pub const API_QUERIES_WAITING_MAX: usize = 64;
/// The same of one address.
pub const API_QUERIES_WAITING_CLIENT_MAX: usize = API_QUERIES_WAITING_MAX / 2;
/// Points of one answer per row: several screens wide, and an answer stays in the megabytes.
pub const API_POINTS_MAX: i64 = 20_000;
/// Points aimed at when the caller names no step: two hours of seconds.
pub const API_POINTS_DEFAULT: i64 = 7_200;
/// Rows of one answer when the caller does not say.
pub const API_TOP_DEFAULT: usize = 20;
/// Rows of one answer at most.
pub const API_TOP_MAX: usize = 1_000;
/// Sessions at once. For one more, that of the user with most of them ends that is unused for
/// longest at the address with most of these.
pub const SESSIONS_MAX: usize = 1_000;
/// A session ends after this time without a request.
pub const SESSION_IDLE: Duration = Duration::from_secs(12 * 3600);
/// Maximum lifetime of a session.
pub const SESSION_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The one-time sign-in URL is good for this time: started in the evening, opened next morning.
pub const LOGIN_ONCE_AGE: Duration = Duration::from_secs(24 * 3600);
/// Unused one-time sign-in URLs kept.
pub const LOGIN_ONCE_MAX: usize = 16;
/// Wrong passwords that a peer may send before it must wait.
pub const SIGN_IN_FREE_FAILURES: u32 = 5;
/// The longest wait after wrong passwords; it starts at a second and doubles.
pub const SIGN_IN_WAIT_MAX: Duration = Duration::from_secs(60);
/// Wrong passwords are forgotten after this time.
pub const SIGN_IN_MEMORY: Duration = Duration::from_secs(15 * 60);
/// Peers with wrong passwords that are remembered; the oldest is evicted.
pub const SIGN_IN_PEERS_MAX: usize = 1_024;
/// Sign-ins at the password hash or waiting for it (one at a time: it costs 19 MiB and some 20 ms).
pub const SIGN_IN_WAITING_MAX: usize = 64;
/// The same of one address, so that eight addresses must flood before others get 503.
pub const SIGN_IN_WAITING_CLIENT_MAX: usize = SIGN_IN_WAITING_MAX / 8;

/// How long a signed-in user is not looked up again in the account files of this host: passwd(5)
/// and group(5) change rarely, and each piece of a transfer checks. The configuration is checked
/// each time.
pub const ACCOUNT_FILES_INTERVAL: Duration = Duration::from_secs(1);
/// Longest user name, in bytes.
pub const USER_NAME_MAX: usize = 64;
/// Longest password, in bytes.
pub const PASSWORD_MAX: usize = 1_024;
/// Largest answer that the command line takes from a server, in bytes.
pub const CLIENT_ANSWER_MAX: usize = 64 << 20;
/// Time the command line waits for an answer.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a command waits for a local server that has its state directory and does not answer
/// yet: on a busy machine, one with many shares starts within it.
pub const CLIENT_START_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two attempts to connect to it.
pub const CLIENT_START_LOOK: Duration = Duration::from_millis(20);
/// How long a command waits for one address of a server to accept the connection: a lost network is
/// reported before the command seems to hang.
pub const CLIENT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

// --- the context shell ---------------------------------------------------------------------------

/// Longest script, and longest file that a line reads a value from, in bytes: the largest
/// configuration with room to spare.
pub const CLI_SCRIPT_MAX: usize = 4 << 20;
/// Lines that the shell remembers over its runs.
pub const CLI_HISTORY_LINES: usize = 1_000;

// --- the one tree of administration --------------------------------------------------------------

/// Names in the path of a node: the deepest branch planned has seven.
pub const NODE_DEPTH_MAX: usize = 12;
/// Bytes of one name in such a path: what a file's name may have.
pub const NODE_NAME_MAX: usize = 255;
/// Revisions of the configuration that are kept: some years of changes at one each working day, a
/// few megabytes.
pub const CONFIGURATION_REVISIONS_MAX: usize = 1_000;
/// Bytes of a configuration as text: ten thousand shares with their rules.
pub const CONFIGURATION_BYTES_MAX: usize = 4 << 20;
/// Changes in one transaction: an import of a large configuration comes as a whole instead.
pub const CONFIGURATION_CHANGES_MAX: usize = 1_000;
/// Bytes of one file of the audit log; it is rotated then.
pub const AUDIT_FILE_BYTES_MAX: u64 = 8 << 20;
/// Files of the audit log that are kept, the one being written included.
pub const AUDIT_FILES_MAX: usize = 10;
/// Records of the audit log in one answer of the API.
pub const AUDIT_ROWS_MAX: usize = 10_000;
/// Characters of a value that the audit log shows: rules are whole, certificates are not.
pub const AUDIT_VALUE_MAX: usize = 1_000;
/// Bytes of one file of the log of transfers; it is rotated then. As the audit log's: a file that
/// any editor opens.
pub const TRANSFER_LOG_FILE_BYTES: u64 = 8 << 20;
/// Bytes of the log of transfers that are kept unless it is set otherwise: some 200,000 transfers.
pub const TRANSFER_LOG_BYTES: u64 = 64 << 20;
/// Most that can be set: sites that need years of it have a log collector.
pub const TRANSFER_LOG_BYTES_MAX: u64 = 1 << 30;
/// Ended transfers that wait to be written, some 300 bytes each: those of half a second at the
/// fastest that small files go. More are dropped and counted.
pub const TRANSFER_LOG_QUEUE_MAX: usize = 16_384;
/// How long the writer gathers what ends before it writes: one wake-up and one write for many, and
/// a quarter of the time in which the queue fills.
pub const TRANSFER_LOG_GATHER: Duration = Duration::from_millis(100);
/// Transfers in one write: well below a file, so that rotation finds its place.
pub const TRANSFER_LOG_BATCH: usize = 1_024;
/// Transfers that its node shows: a screen full.
pub const TRANSFER_LOG_SHOWN: usize = 50;
/// Transfers in one answer of the API.
pub const TRANSFER_LOG_ROWS_MAX: usize = 10_000;
/// Lines of the log that are kept for the log page: some hundred kilobytes; what is older is in the
/// journal of the machine.
pub const LOG_LINES_MAX: usize = 4_096;
/// Characters of one such line: an error with all its sources.
pub const LOG_LINE_MAX: usize = 2_000;
/// Characters of a name of a client's choice in such a line.
pub const LOG_NAME_MAX: usize = 64;
/// Time between two lines that one client causes by what it sends; those between are counted.
pub const LOG_CLIENT_INTERVAL: Duration = Duration::from_secs(10);
/// Clients for which that is remembered apart; further ones are counted together.
pub const LOG_CLIENTS_MAX: usize = 1_024;
/// Characters of the comment of a change.
pub const COMMENT_MAX: usize = 500;

// --- shares that come and go ---------------------------------------------------------------------

/// How long a change of shares waits for the calls on one that goes: a slow disk answers within it.
/// What is left then is closed when it ends.
pub const SHARE_DRAIN_MAX: Duration = Duration::from_secs(5);
/// How often it looks.
pub const SHARE_DRAIN_STEP: Duration = Duration::from_millis(1);
/// How often the directories of shares are checked: a share that serves another one than configured
/// does so no longer than about that.
pub const SHARE_LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the check of all of them may take before another thread continues after the share that
/// takes so long: its file system does not respond.
pub const SHARE_LOOK_TIME_MAX: Duration = Duration::from_millis(500);
/// Threads that check, at most: this many shares may be on file systems that do not respond before
/// the others are not checked either.
pub const SHARE_LOOK_THREADS_MAX: usize = 64;
/// Projects: users distinguish them by name.
pub const PROJECTS_MAX: usize = 256;

/// Wrong passwords for one name, from all addresses together, before addresses that have not
/// signed in to it must wait: well above what one person mistypes.
pub const SIGN_IN_NAME_FREE_FAILURES: u32 = 20;
/// The longest wait for a name: short, because any client that knows a name can cause it.
pub const SIGN_IN_NAME_WAIT_MAX: Duration = Duration::from_secs(30);
/// Names with wrong passwords that are remembered, existing or not; the oldest is evicted.
pub const SIGN_IN_NAMES_MAX: usize = 1_024;
/// Pairs of name and address that have signed in and so do not wait for the name's sake.
pub const SIGN_IN_KNOWN_MAX: usize = 4_096;
/// How long such a pair is remembered: people come back to the same desk within a month.
pub const SIGN_IN_KNOWN_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Bounds of the time without a request after which a session ends, as an administrator may set it:
/// less than a minute is too short to read a page.
pub const SESSION_IDLE_RANGE_S: (u64, u64) = (60, 30 * 24 * 3600);
/// Bounds of the age at which a session ends: a day's work to a year.
pub const SESSION_AGE_RANGE_S: (u64, u64) = (300, 365 * 24 * 3600);
/// Local users at once: what a file of some megabytes holds; larger sites have a directory.
pub const USERS_MAX: usize = 10_000;
/// Roles at once: more than an administrator can distinguish.
pub const ROLES_MAX: usize = 200;
/// Permissions of one role: each scope twice, with room.
pub const ROLE_PERMISSIONS_MAX: usize = 64;
/// Roles of one user.
pub const USER_ROLES_MAX: usize = 32;
/// Groups of one user at the file system: sites with directories have people in hundreds, and each
/// change of identity hands all of them to the kernel.
pub const USER_GROUPS_MAX: usize = 1_024;
/// Longest home directory of a user within the shares, in bytes.
pub const USER_HOME_MAX: usize = 4_096;
/// CA keys that are trusted for certificates of SFTP users: one for each site, and their
/// successors.
pub const SFTP_AUTHORITIES_MAX: usize = 32;
/// SSH public keys of one user.
pub const USER_SSH_KEYS_MAX: usize = 32;
/// API tokens at once; each request with one costs a look at a table.
pub const TOKENS_MAX: usize = 1_000;
/// Longest full name of a user, in bytes.
pub const FULL_NAME_MAX: usize = 256;
/// Longest SSH public key of a user, in bytes: RSA with 16384 bits takes some 2.8 KB.
pub const SSH_KEY_MAX: usize = 8_192;
/// Shortest password that a user may be given, in characters: NIST SP 800-63B §3.1.1.2 has 8 for
/// one of several factors, and sign-ins are slowed down as well.
pub const PASSWORD_MIN: usize = 8;
/// Passwords that are checked at once, in 19 MiB each, which stay: a check keeps a core busy for
/// some 20 ms, and password guessing is to leave cores to other requests.
pub const PASSWORD_CHECKS_MAX: usize = 2;
/// Shortest secret of an API token that may be supplied, in characters: it is stored as a plain
/// digest, which is safe only for secrets that cannot be guessed.
pub const TOKEN_MIN: usize = 32;
/// Bytes of the name of a share or project: a name of a file, so that a share can be a directory's.
pub const SHARE_NAME_MAX: usize = 255;

// --- control: certificates
// ------------------------------------------------------------------------

/// Certificates that can be configured at once: one for each name that a host may have.
pub const CERTIFICATES_MAX: usize = 64;
/// Bytes of a certificate chain in the configuration: four certificates of RSA with 4096 bits and
/// many names take 12 KB, and a request body has room for it.
pub const CERTIFICATE_CHAIN_MAX: usize = 32 << 10;
/// Bytes of a private key: RSA with 16384 bits takes 13 KB.
pub const CERTIFICATE_KEY_MAX: usize = 16 << 10;
/// Certificates in a chain: the host's, two between, and a root; with room.
pub const CERTIFICATE_CHAIN_LENGTH_MAX: usize = 8;
/// Names in one certificate: what public authorities sign at most.
pub const CERTIFICATE_NAMES_MAX: usize = 100;
/// Contacts of an ACME account.
pub const ACME_CONTACTS_MAX: usize = 8;
/// Life of a certificate that the appliance makes for itself: as long as a public authority may
/// give since 2026-03-15 (CA/Browser Forum, ballot SC-081), so that no client thinks it too long.
pub const OWN_CERTIFICATE_LIFE: Duration = Duration::from_secs(200 * 24 * 3600);
/// Life of the appliance's own authority, which people trust by hand: once in ten years.
pub const OWN_AUTHORITY_LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// How long before now a certificate of our own begins: clients' clocks go wrong by some hours.
pub const OWN_CERTIFICATE_BACKDATE: Duration = Duration::from_secs(24 * 3600);
/// Longest pause between two looks at what is to be renewed: clocks are set, machines sleep.
pub const CERTIFICATE_LOOK_EVERY: Duration = Duration::from_secs(600);
/// Time for a whole order by ACME: authorities look from several places, one after the other.
pub const ACME_ORDER_TIMEOUT: Duration = Duration::from_secs(300);
/// Time for one request to an ACME server.
pub const ACME_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest answer of an ACME server, in bytes: a chain, or a directory.
pub const ACME_ANSWER_MAX: usize = 256 << 10;
/// Pause after the first order that fails, and the longest one; each is four times that before.
/// Public authorities allow five failures an hour.
pub const ACME_RETRY: (Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(6 * 3600));
/// Connections at once to the listener that proves a name over HTTP, and bytes of a request to it.
pub const ACME_HTTP_CONNECTIONS_MAX: usize = 16;
/// Bytes of such a request: a path and some headers.
pub const ACME_HTTP_HEAD_MAX: usize = 8 << 10;

// --- alerts and worksheets -----------------------------------------------------------------------

/// Alerts at once: each is evaluated every second, in microseconds, or in milliseconds when only
/// the flight recorder can answer it.
pub const ALERTS_MAX: usize = 200;
/// Seconds without data after which what an alert saw before them no longer counts.
pub const ALERT_GAP_MAX_S: u64 = 10;
/// Longest time that a condition must last, that it must be gone, or between two messages, in
/// seconds: a week.
pub const ALERT_TIME_MAX_S: u64 = 7 * 24 * 3600;
/// Happenings that are kept in memory to be shown; older ones are in the log.
pub const ALERT_RECENT_MAX: usize = 200;
/// Addresses that one alert mails to.
pub const ALERT_MAIL_MAX: usize = 16;
/// Messages waiting for one kind of delivery; the oldest is dropped, which its alert reports.
pub const ALERT_QUEUE_MAX: usize = 256;
/// How often a message is tried before it is dropped.
pub const ALERT_ATTEMPTS_MAX: u32 = 5;
/// The wait before the second attempt; each further one is four times as long (5, 20, 80, 320 s).
pub const ALERT_RETRY: Duration = Duration::from_secs(5);
/// How long a mail server or a web server may take for a step.
pub const ALERT_STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that a mail server or a web server may answer: more is no answer to what we ask.
pub const ALERT_ANSWER_MAX: usize = 64 << 10;
/// Longest name of an alert or worksheet, in bytes.
pub const ALERT_NAME_MAX: usize = 64;
/// Longest URL, address or statistic of an alert or worksheet, in bytes.
pub const ALERT_TEXT_MAX: usize = 2_048;
/// Bytes of a syslog message: what every receiver should take (RFC 5424 §6.1).
pub const SYSLOG_MESSAGE_MAX: usize = 2_048;
/// Free bytes on the file system of the state directory below which it is nearly full: minutes of
/// statistics on a busy server, and space for what must be recorded.
pub const STATE_SPACE_LOW: u64 = 256 << 20;
/// Days before its end at which an alert fires for a certificate, by default: enough to have
/// another one made by hand.
pub const ALERT_CERTIFICATE_DAYS: i64 = 14;
/// Datasets in addition to the standard statistics, ended ones included: each costs a pass through
/// the flight recorder every second, milliseconds at full load.
pub const KEPT_DATASETS_MAX: usize = 8;
/// Longest retention of such a dataset at one-second resolution, in seconds: a week.
pub const KEPT_FOR_MAX_S: u64 = 7 * 86_400;
/// Its default: a day, so that the morning shows the night.
pub const KEPT_FOR_DEFAULT_S: u64 = 86_400;
/// Largest file that lists them, in bytes; a longer one is not Plimsoll's.
pub const KEPT_FILE_MAX: u64 = 1 << 20;
/// Saved worksheets at once.
pub const WORKSHEETS_MAX: usize = 1_000;
/// Panels of one worksheet: what a browser keeps smooth.
pub const WORKSHEET_PANELS_MAX: usize = 24;
// --- lab: runs that the server makes ----------------------------------------------------------

/// Runs of the lab that may wait for their turn: an evening's work; one runs at a time, or they
/// would measure each other.
pub const LAB_QUEUE_MAX: usize = 16;
/// Runs of the lab that are kept; the oldest go first.
pub const LAB_RUNS_KEPT: usize = 100;
/// Bytes that results of the lab may take in the state directory: a hundred large ones.
pub const LAB_BYTES_KEPT: u64 = 256 << 20;
/// Jobs that users may add: more than a user can distinguish.
pub const LAB_JOBS_MAX: usize = 200;
/// Bytes of a job as text: the longest built-in one has 1 KB.
pub const LAB_JOB_BYTES_MAX: usize = 16 << 10;
/// Steps of a job that runs through the server: at four seconds each some four minutes.
pub const LAB_STEPS_MAX: usize = 64;
/// Bytes of a result that is sent to be shown: a run of 64 steps without its windows has less than
/// one megabyte, a summary of a hundred cells less than two.
pub const LAB_SHOWN_BYTES_MAX: usize = 4 << 20;
/// Client processes of a run that the server starts: each takes some 10 MB of its machine.
pub const LAB_RUN_CLIENTS_MAX: u32 = 64;
/// How long a run may take to end after a request to stop, before its process is killed.
pub const LAB_STOP_MAX: Duration = Duration::from_secs(5);
/// How long removing what a run has left may take: files of some clients, one by one.
pub const LAB_CLEAN_MAX: Duration = Duration::from_secs(60);
/// Bytes of the output of a run's process that are kept to report why it failed.
pub const LAB_WORDS_MAX: usize = 4 << 10;

// --- replication: runs of dsync by a schedule ----------------------------------------------------

/// Replication actions: a share each for a large appliance, and as many rows as a page shows.
pub const REPLICATION_ACTIONS_MAX: usize = 100;
/// Runs at once: each has streams and threads of its own, and two fill most links. More wait.
pub const REPLICATION_RUNS_MAX: usize = 4;
/// Results that are kept of each action: three months of nights; some 300 bytes each.
pub const REPLICATION_HISTORY_MAX: usize = 100;
/// Results that its node shows: a screen full.
pub const REPLICATION_SHOWN: usize = 20;
/// Shortest time from one run to the next: starting ssh alone takes a part of a second, and shorter
/// times need another kind of replication.
pub const REPLICATION_EVERY_MIN: u64 = 10;
/// Longest: four weeks.
pub const REPLICATION_EVERY_MAX: u64 = 28 * 86_400;
/// The schedule is looked at so often at least: so long a clock that was set goes unnoticed.
pub const REPLICATION_LOOK: Duration = Duration::from_secs(30);
/// How far ahead of the clock what a schedule has seen to may be: a clock that is corrected by
/// seconds starts no run again. More is of a clock that was ahead, and would stop the schedule.
pub const REPLICATION_AHEAD_MAX: Duration = Duration::from_secs(60);
/// Bytes of a source or a destination: the longest path that Linux takes.
pub const REPLICATION_PLACE_MAX: usize = 4_096;
/// Bytes of a private key: an RSA key of 16384 bits has 13 KB.
pub const REPLICATION_KEY_MAX: usize = 16 << 10;
/// Patterns of what is not carried.
pub const REPLICATION_EXCLUDES_MAX: usize = 100;
/// Bytes of one event of a run; the longest is that of a file with the longest path, in Base64 in
/// addition to the text. Longer ones are skipped.
pub const REPLICATION_EVENT_MAX: usize = 64 << 10;
/// Bytes that are kept of a run's error output, the last: some lines of ssh.
pub const REPLICATION_SAID_MAX: usize = 4 << 10;
/// Entries that could not be copied which a result names; it counts all.
pub const REPLICATION_FAILED_SHOWN: usize = 10;
/// Characters of a reason.
pub const REPLICATION_REASON_MAX: usize = 1_000;
