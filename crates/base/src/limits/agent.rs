//! Limits of load agents (`plimsoll lab agent`) and of their controllers. Part of [`super`], where
//! all others are.

use std::time::Duration;

// --- lab: peers of an agent that have not proved themselves ------------------------------------

/// How long a peer of a load agent may take for the TLS handshake and its complete first message,
/// however it cuts them into pieces. A controller sends both at once; a slow network takes some
/// round trips.
pub const LAB_AGENT_HELLO_TIME_MAX: Duration = Duration::from_secs(5);
/// Most bytes of a TLS handshake and a first message: two certificates of an elliptic curve and a
/// proof are below 4 KiB. A peer without the join code gets the agent to hold no more.
pub const LAB_AGENT_HELLO_MAX: usize = 16 << 10;
/// Connections of a load agent without a complete first message. Each is a thread; the oldest one
/// that has sent nothing is disconnected for a newer one, so that silent peers delay no controller.
pub const LAB_AGENT_STRANGERS_MAX: usize = 4;
/// The same of a controller that agents call: hundreds start in the same moment.
pub const LAB_CONTROLLER_STRANGERS_MAX: usize = 64;
/// How long a controller with the join code waits for the end of another one's run: the threads of
/// that one end within a heartbeat and one operation. Below [`LAB_AGENT_REPLY_MAX`].
pub const LAB_AGENT_BUSY_MAX: Duration = Duration::from_secs(5);
/// How long a controller waits for the replies of an agent before a run: to the handshake, to the
/// greeting, to a ping. Longer than the agent lets it wait for the end of another run.
pub const LAB_AGENT_REPLY_MAX: Duration = Duration::from_secs(10);
/// How long data to a controller may be unacknowledged: if its host has vanished, the agent is free
/// for others after this time. Longer than the pauses of a busy host that a run survives.
pub const LAB_AGENT_GONE_AFTER: Duration = Duration::from_secs(30);
/// How long an agent pauses if it has no descriptor for a connection.
pub const LAB_AGENT_ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Directories and devices that the owner of an agent may list: each is an open descriptor.
pub const LAB_AGENT_ALLOWED_MAX: usize = 64;

// --- lab: join codes ---------------------------------------------------------------------------

/// Letters of a join code, of 5 random bits each: 100 bits, of which no part can be guessed from
/// the proofs of a connection (docs/decisions/join-code.md).
pub const LAB_CODE_LETTERS: usize = 20;
/// How long a join code is valid unless the owner gives another time. Long enough to start a run
/// by hand or to wait in a queue, short enough that a code in a terminal's history is of no use.
pub const LAB_CODE_LIFE: Duration = Duration::from_secs(3600);
/// Earlier join codes that a listener recognises, to name them as used or expired, and peers that
/// it recognises by certificate. Those of a controller that agents call are as many as its agents.
pub const LAB_CODES_RETAINED: usize = 16;
/// Largest file with join codes: one line for each of thousands of agents.
pub const LAB_CODE_FILE_MAX: u64 = 1 << 20;

// --- lab: agents that call their controller ----------------------------------------------------

/// How long an agent tries to reach the controller that it calls: both may be started by one
/// script, and a queue starts them some time apart.
pub const LAB_AGENT_CALL_MAX: Duration = Duration::from_secs(120);
/// How long a controller waits for all agents to call, at the first run.
pub const LAB_AGENT_JOIN_MAX: Duration = Duration::from_secs(600);
/// How long it waits for them to call again, for the next run, and how long they try.
pub const LAB_AGENT_RETURN_MAX: Duration = Duration::from_secs(30);
/// Pause between attempts to reach the other side.
pub const LAB_AGENT_RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Most agents of one controller: each is a descriptor, a TLS connection and its windows.
pub const LAB_AGENTS_MAX: u32 = 4096;
/// Agents that a controller calls at the same time: handshakes take round trips, not processors.
pub const LAB_AGENT_CALLS_MAX: usize = 16;
/// Bytes that a controller holds for one agent that reads nothing. All messages of a run together
/// are less; an agent that has read nothing of them is lost anyway.
pub const LAB_AGENT_UNSENT_MAX: usize = 1 << 20;
