//! Limits of iSCSI and SCSI: PDUs, text of negotiations, lists of parameters. Part of [`super`],
//! where all others are.

use std::time::Duration;

// --- wire: what a peer may send ---------------------------------------------------------------

/// Most bytes of additional header segments of one PDU: a CDB of 260 bytes, the longest that SPC
/// has, and the length of a bidirectional read.
pub const ISCSI_AHS_MAX: usize = 256;
/// Largest data segment we take, in bytes, and what we declare as MaxRecvDataSegmentLength: the
/// cost of a PDU no longer counts, and eight of them fit the cache.
pub const ISCSI_DATA_MAX: usize = 256 << 10;
/// Largest data segment during login, in bytes (RFC 7143 §13.12: the default holds until an
/// operational negotiation has ended).
pub const ISCSI_LOGIN_DATA_MAX: usize = 8 << 10;
/// Most bytes of text of one negotiation, all its PDUs together: SendTargets of a thousand targets
/// fits; all keys that exist, with the longest values, take a tenth.
pub const ISCSI_TEXT_MAX: usize = 256 << 10;
/// The same before a peer has signed in: CHAP with the longest values, and every operational key.
pub const ISCSI_LOGIN_TEXT_MAX: usize = 16 << 10;
/// Most pairs of key and value of one negotiation: two for each target of a long SendTargets.
pub const ISCSI_PAIRS_MAX: usize = 4_096;
/// Longest key (RFC 7143 §6.1: key-name).
pub const ISCSI_KEY_MAX: usize = 63;
/// Longest value that is not a large binary (RFC 7143 §6.1).
pub const ISCSI_VALUE_MAX: usize = 255;
/// Longest value, encoded: a large binary value of 1024 bytes in hexadecimal, and its prefix.
pub const ISCSI_LARGE_VALUE_MAX: usize = 2 + 2 * ISCSI_BINARY_MAX;
/// Most bytes of a large binary value, decoded (RFC 7143 §12.1.3: CHAP_C, CHAP_R).
pub const ISCSI_BINARY_MAX: usize = 1024;
/// Longest name of a node (RFC 7143 §4.2.7.1).
pub const ISCSI_NAME_MAX: usize = 223;
/// Most values of one list in a negotiation; lists of digests and of methods have three.
pub const ISCSI_LIST_MAX: usize = 32;
/// Longest CDB, in bytes (SPC-5 §4.2.1.1: 7Fh and 7Eh announce up to 252 more than eight).
pub const SCSI_CDB_MAX: usize = 260;
/// Most sense data, in bytes (SPC-5 §4.4.1).
pub const SCSI_SENSE_MAX: usize = 252;
/// Most descriptors of one UNMAP; what we report as MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT.
pub const SCSI_UNMAP_DESCRIPTORS_MAX: usize = 256;
/// Most CSCD descriptors of one EXTENDED COPY: source and destination, and room for a few more.
pub const SCSI_COPY_TARGETS_MAX: usize = 16;
/// Most segment descriptors of one EXTENDED COPY; `ddpt` and ESXi send one to a few.
pub const SCSI_COPY_SEGMENTS_MAX: usize = 64;
/// Most bytes of one EXTENDED COPY, all segments together: what one segment may copy, some 100 ms.
/// With 64 of those a command of 2 KiB copied 16 GiB.
pub const SCSI_COPY_BYTES_MAX: u64 = 0xffff * 4096;
/// Most TransportIDs in one PERSISTENT RESERVE OUT with SPEC_I_PT.
pub const SCSI_TRANSPORT_IDS_MAX: usize = 64;
/// Most logical units, registrations, ports or descriptors in a list that an initiator takes from
/// a target.
pub const SCSI_LIST_MAX: usize = 16_384;
/// Most mode pages in one MODE SELECT or MODE SENSE; SPC has 64 page codes.
pub const SCSI_MODE_PAGES_MAX: usize = 64;
/// Most requests of one login. CHAP both ways and all keys, text cut small, take fewer than ten.
pub const ISCSI_LOGIN_REQUESTS_MAX: u32 = 64;

// --- vfs: logical units -------------------------------------------------------------------------

/// Most logical units of a server: one for each virtual machine of a large site, as many as shares.
/// Numbers above 255 are sent in the flat space addressing format (SAM-5 §4.7.7.5).
pub const LUNS_MAX: usize = 1_024;
/// Longest name of a logical unit, in bytes; it is part of the name of a file.
pub const LUN_NAME_MAX: usize = 64;
/// Largest logical unit, in bytes: beyond what file systems take for one file.
pub const LUN_SIZE_MAX: u64 = 1 << 60;
/// Smallest, in bytes: no file system fits on less.
pub const LUN_SIZE_MIN: u64 = 1 << 20;
/// Longest record of the table of units, in bytes: a path, a name and what it had been before.
pub const LUN_RECORD_MAX: usize = 8 << 10;
/// How long the storage of a unit may take to answer an administrative request; after that it is
/// reported as stuck, and no other request waits for it.
pub const LUN_ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a copy of a unit waits for the commands that change it to end, while those that come
/// later wait behind it: half of the 30 s after which initiators abort a command.
pub const LUN_PAUSE_TIME_MAX: Duration = Duration::from_secs(15);
/// [`super::STORAGE_LOOK_TIME_MAX`] is for all units together: while it was used up less than this
/// ago, a unit is not waited for.
pub const LUN_LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a unit is waited for then: storage that responds does so within a fraction of it.
pub const LUN_LOOK_TIME_MIN: Duration = Duration::from_millis(2);
/// Bytes that a command which works through a range holds at once, in addition to its data:
/// EXTENDED COPY, VERIFY and WRITE SAME. From here on larger pieces are no faster; each is part of
/// the budget.
pub const LUN_BUFFER: usize = 1 << 20;
/// Most targets of a server in addition to its default one: a handful for separate networks is
/// usual.
pub const ISCSI_TARGETS_MAX: usize = 64;
/// Most initiators that are configured: the machines of a large site.
pub const ISCSI_INITIATORS_MAX: usize = 1_024;
/// Most groups of targets, or of initiators: one for each unit, and as many again.
pub const ISCSI_GROUPS_MAX: usize = 2 * LUNS_MAX;
/// Most members of a group.
pub const ISCSI_GROUP_MAX: usize = ISCSI_INITIATORS_MAX;
/// Most registrations of persistent reservations of one unit: the nodes of a large cluster with two
/// paths each.
pub const LUN_REGISTRATIONS_MAX: usize = 256;
/// The same of one address, or of a /64 of IPv6: a quarter is left to others.
pub const LUN_REGISTRATIONS_ADDRESS_MAX: usize = LUN_REGISTRATIONS_MAX / 4 * 3;
/// The same of one initiator name at one address: more paths than multipath software manages.
pub const LUN_REGISTRATIONS_INITIATOR_MAX: usize = 64;
/// Longest record of the journal of reservations: all registrations with the longest names.
pub const LUN_RESERVATIONS_RECORD_MAX: usize = 64 << 10;
/// Longest journal of reservations: the records of all units, and as much again that is old.
pub const LUN_RESERVATIONS_FILE_MAX: u64 = 2 * (LUNS_MAX * LUN_RESERVATIONS_RECORD_MAX) as u64;
const _: () = assert!(LUN_REGISTRATIONS_MAX * (8 + 6 + 1 + ISCSI_NAME_MAX + 16) < 64 << 10);

// --- serve: sessions and commands ---------------------------------------------------------------

/// Commands of a session at once (MaxCmdSN - ExpCmdSN + 1): what Linux queues to a device by
/// default, twice, for its two devices behind one session.
pub const ISCSI_COMMANDS_MAX: u32 = 64;
/// Immediate commands of a session at once, in addition to those: task management of an initiator
/// that aborts everything it has, and its pings.
pub const ISCSI_IMMEDIATE_MAX: usize = 72;
/// Most bytes of one READ or WRITE, and what we report as MAXIMUM TRANSFER LENGTH: ESXi and Windows
/// send up to 4 MiB, Linux 1 to 4.
pub const ISCSI_TRANSFER_MAX: usize = 8 << 20;
/// Most bytes of one WRITE SAME: with data it is written by us, at the speed of the disk. From
/// 65,536 blocks on libiscsi's suite expects READ and WRITE to take as many.
pub const ISCSI_WRITE_SAME_MAX: u64 = 16 << 20;
/// Most bytes of one UNMAP, all descriptors together: a hole of this size is made in milliseconds.
/// libiscsi's suite takes more than 2^20 blocks for a mistake.
pub const ISCSI_UNMAP_MAX: u64 = 512 << 20;
/// Most blocks of COMPARE AND WRITE: its field has eight bits.
pub const ISCSI_COMPARE_BLOCKS_MAX: u8 = 255;
/// Most descriptors in the reply to one GET LBA STATUS; initiators request further ones separately.
pub const ISCSI_LBA_STATUS_MAX: usize = 256;
/// Copies of a unit with an outcome that is retained for RECEIVE COPY RESULTS.
pub const ISCSI_COPIES_KEPT: usize = 64;
/// Unit attention conditions of a nexus that wait to be reported; more become one reset.
pub const ISCSI_ATTENTIONS_MAX: usize = 8;
/// Sessions at once, of all initiators: each costs a connection as well.
pub const ISCSI_SESSIONS_MAX: usize = 4096;
/// The same of one address: a quarter is left to others.
pub const ISCSI_SESSIONS_CLIENT_MAX: usize = ISCSI_SESSIONS_MAX / 4 * 3;
/// Threads of a unit for commands that block: a disk reorders this many well, and a unit with a
/// stuck disk holds no more.
pub const LUN_THREADS: usize = 8;
/// Commands of a unit that may wait for its threads: those of sixty-four sessions.
pub const LUN_QUEUE_MAX: usize = 4096;
/// The same of one address: forty-eight sessions. While initiators share a unit, one address leaves
/// threads to others as well ([`super::POOL_CLIENT_LEAVES`]); one alone has all of them.
pub const LUN_QUEUE_CLIENT_MAX: usize = LUN_QUEUE_MAX / 4 * 3;
/// Initiator ports of a unit without a session, with writes that no flush of their own has covered:
/// as many as may be registered. Beyond that the oldest of the initiator with most of them is
/// removed.
pub const LUN_UNSETTLED_MAX: usize = LUN_REGISTRATIONS_MAX;
/// Flushes of a unit at once that no command waits for (IMMED): one is in progress, one follows it
/// with all writes that have arrived meanwhile, and initiators that share the unit have theirs.
/// Further ones are waited for, so that the window of commands bounds them.
pub const LUN_FLUSHES_BEHIND_MAX: usize = 8;
/// The same of one session.
pub const LUN_FLUSHES_BEHIND_CLIENT_MAX: usize = LUN_FLUSHES_BEHIND_MAX / 4 * 3;
/// A login must have ended by then (RFC 7143 §6.3: a matter of seconds).
pub const ISCSI_LOGIN_TIME_MAX: Duration = Duration::from_secs(15);
/// How long a login waits for the session that it replaces to end.
pub const ISCSI_REPLACE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long task management waits for commands that a disk has; then it is refused, and the
/// initiator escalates. Linux gives each step 15 s.
pub const ISCSI_ABORT_TIME_MAX: Duration = Duration::from_secs(5);
/// An initiator that has sent nothing for this time gets a NOP-In.
pub const ISCSI_NOP_AFTER: Duration = Duration::from_secs(30);
/// It replies within this time, or is gone: Linux waits as long.
pub const ISCSI_NOP_TIME_MAX: Duration = Duration::from_secs(15);
/// How long an initiator may take to log out when it is asked to; below the time in which services
/// end.
pub const ISCSI_LOGOUT_TIME_MAX: Duration = Duration::from_secs(5);
/// Data of at least this many bytes is sent from its buffer, not copied next to its header: from
/// this size on a system call costs less.
pub const ISCSI_SEPARATE_DATA: usize = 16 << 10;
