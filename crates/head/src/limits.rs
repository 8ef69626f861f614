//! Limits of heads: leases, requests to etcd, and how long the phases of a takeover may take.

use std::time::Duration;

/// Lease of a head in etcd, and with it of all that it owns. etcd's shortest is 2 s with its
/// default election timeout; shorter than 3 s a busy machine loses it.
pub const HEAD_LEASE: Duration = Duration::from_secs(3);

/// Age of the last renewal at which a head ends its resources: two thirds of the lease. The third
/// that is left is for clocks of different speed and for the end of the processes.
pub const HEAD_FENCE_AFTER: Duration = Duration::from_secs(2);

/// How often a lease is renewed: three attempts can fail before [`HEAD_FENCE_AFTER`].
pub const HEAD_RENEW_EVERY: Duration = Duration::from_millis(500);

/// How often the keys are read: part of each takeover, and some hundred bytes for each resource.
pub const HEAD_READ_EVERY: Duration = Duration::from_millis(200);

/// The same while another head hands a resource over to this one: no client is served meanwhile.
pub const HEAD_READ_SOON: Duration = Duration::from_millis(20);

/// How long each head of lower preference waits for the one before it. Dead heads do not count, so
/// this is for one that lives and does not claim.
pub const HEAD_RANK_DELAY: Duration = Duration::from_secs(2);

/// How long a request to one member of etcd may take; another one must be tried within
/// [`HEAD_FENCE_AFTER`].
pub const HEAD_ETCD_TIMEOUT: Duration = Duration::from_millis(600);

/// Most members of an etcd cluster that are configured; etcd's authors advise at most seven.
pub const HEAD_ETCD_MEMBERS_MAX: usize = 9;

/// Most heads of a cluster and most resources of one: what is read every [`HEAD_READ_EVERY`] stays
/// below 64 KiB.
pub const HEADS_MAX: usize = 32;
/// See [`HEADS_MAX`].
pub const HEAD_RESOURCES_MAX: usize = 64;

/// How often the link of a resource and its probes are looked at.
pub const HEAD_REACH_EVERY: Duration = Duration::from_millis(250);

/// How long a probe may take: ten times what a busy host of the same network needs.
pub const HEAD_PROBE_TIMEOUT: Duration = Duration::from_millis(250);

/// How often in a row a link has no carrier or no probe answers until clients count as cut: one
/// lost packet is no reason to move a resource.
pub const HEAD_REACH_FAILURES: u32 = 4;

/// How often in a row it works until they do not: 3 s, for ports that come up and go down.
pub const HEAD_REACH_SUCCESSES: u32 = 12;

/// Most probes of a resource: with all of them silent a look takes a second.
pub const HEAD_PROBES_MAX: usize = 4;

/// How long a process that hands over waits until its address is removed, which takes its head a
/// few milliseconds: as long as it is there, its ports must not refuse clients.
pub const HEAD_ADDRESS_TIMEOUT: Duration = Duration::from_millis(200);
/// How often it looks at that.
pub const HEAD_ADDRESS_EVERY: Duration = Duration::from_millis(1);

/// How long the end of a process may take to be recorded in its state directory.
pub const HEAD_RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest name of a cluster, head or resource.
pub const HEAD_NAME_MAX: usize = 64;

/// How long fencing may take before this head releases the resource: a cluster file system answers
/// after its own recovery, tens of seconds.
pub const HEAD_FENCE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the start of a resource may take: a state directory on a slow file system is read.
pub const HEAD_START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a resource may drain before it is killed.
pub const HEAD_DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Failures of a resource in a row after which this head does not try again.
pub const HEAD_FAILURES_MAX: u32 = 3;

/// Wait after a failure.
pub const HEAD_RETRY_AFTER: Duration = Duration::from_secs(2);

/// A resource that ran for so long has not failed in a row.
pub const HEAD_STABLE_AFTER: Duration = Duration::from_secs(600);

/// When an address is announced again after it was added: a switch may drop the first.
pub const HEAD_ANNOUNCE_AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Connections of a resource that are recorded; those beyond are not reset by its next owner.
/// With this number the file has about half a MiB.
pub const HEAD_CONNECTIONS_MAX: usize = 16 << 10;

/// How often connections are recorded, if they have changed.
pub const HEAD_CONNECTIONS_EVERY: Duration = Duration::from_secs(1);

/// Longest request and response on the local socket of a head.
pub const HEAD_MESSAGE_MAX: u64 = 256 << 10;

/// Longest configuration file of a head.
pub const HEAD_CONFIG_MAX: u64 = 256 << 10;

/// Longest content of the file `owner`.
pub const HEAD_OWNER_FILE_MAX: u64 = 4 << 10;
