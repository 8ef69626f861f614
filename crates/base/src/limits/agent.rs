//! Limits of load agents (`plimsoll lab agent`). Part of [`super`], where all others are.

use std::time::Duration;

// --- lab: peers of an agent that have not proved themselves ------------------------------------

/// How long a peer of a load agent may take for its complete first message, however it cuts it into
/// pieces. A controller sends it with its connection; a slow network takes some round trips.
pub const LAB_AGENT_HELLO_TIME_MAX: Duration = Duration::from_secs(5);
/// Largest first message: versions and a token. A peer without a token gets the agent to hold no
/// more.
pub const LAB_AGENT_HELLO_MAX: usize = 4 << 10;
/// Connections of a load agent without a complete first message. Each is a thread; the oldest gives
/// way to a newer one, so that silent peers never keep a controller out.
pub const LAB_AGENT_STRANGERS_MAX: usize = 32;
/// How long a controller with the token waits for the end of another one's run: the threads of that
/// one end within a heartbeat and one operation. Below the 10 s that a controller waits for an
/// agent.
pub const LAB_AGENT_BUSY_MAX: Duration = Duration::from_secs(5);
/// How long data to a controller may be unacknowledged: if its host has vanished, the agent is free
/// for others after this time. Longer than the pauses of a busy host that a run survives.
pub const LAB_AGENT_GONE_AFTER: Duration = Duration::from_secs(30);
/// How long an agent pauses if it has no descriptor for a connection.
pub const LAB_AGENT_ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Random bytes of a token that an agent makes.
pub const LAB_AGENT_TOKEN_BYTES: usize = 32;
/// Directories and devices that the owner of an agent may list: each is an open descriptor.
pub const LAB_AGENT_ALLOWED_MAX: usize = 64;
