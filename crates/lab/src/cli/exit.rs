//! Exit statuses of the commands of the laboratory.

use crate::agent::AgentError;
use crate::agent::code::CodeError;
use crate::agent::join::{JoinError, Refusal};
use crate::conduct::RunError;
use crate::conduct::agents::AgentsError;
use crate::conduct::roster::RosterError;
use crate::limits::LimitsError;
use crate::net::run::NetError;
use crate::programs::run::ProgramError;
use std::error::Error;
use std::process::ExitCode;

/// Done, but an agent was lost, a clock is off, operations failed, or a step was not steady.
pub const EXIT_DEGRADED: u8 = 3;
/// The other side refuses: the join code, another controller.
pub const EXIT_REFUSED: u8 = 4;
/// The other side is of another version.
pub const EXIT_VERSION: u8 = 5;
/// The other side is not reached or does not reply.
pub const EXIT_SILENT: u8 = 6;

/// The table for `--help` of commands that use agents.
pub(super) const HELP: &str = "\
Exit codes: 0 success; 1 failure; 2 usage error; 3 completed but degraded: an agent was killed or
paused, its clock is off, operations failed, or a step was not steady; 4 refused: the join code is
wrong, used or expired, or the agent serves another controller; 5 an agent has another version; 6 an
agent cannot be reached or does not reply.";

/// The same for suites.
pub(super) const SUITE_HELP: &str = "\
A suite that was ended is continued by the same command: rows that are done are kept.
Exit codes: 0 success; 1 nothing was measured; 2 usage error; 3 a row was not measured, disturbed,
not steady, not proved uncached, operations failed, or a client or a subnet was lost; 4 refused: the
join code is wrong, used or expired, or the agent serves another controller; 5 an agent has another
version; 6 an agent cannot be reached or does not reply.";

/// The same for an agent.
pub(super) const AGENT_HELP: &str = "\
Exit codes: 0 success; 1 failure; 2 usage error; with --join also 4 refused: the join code is wrong,
used or expired; 5 the controller has another version; 6 it cannot be reached or does not reply.";

/// The exit code for a command that failed.
pub(super) fn of(error: &(dyn Error + 'static)) -> ExitCode {
    let agents = |error: &RunError| {
        let RunError::Agents(error) = error;
        of_agents(error)
    };
    let run = error.downcast_ref::<RunError>().map(agents);
    let limits = error.downcast_ref::<LimitsError>().and_then(|error| match error {
        LimitsError::Run(error) => Some(agents(error)),
        LimitsError::Record(_) => None,
    });
    let program = error.downcast_ref::<ProgramError>().and_then(|error| match error {
        ProgramError::Agents(error) => Some(of_agents(error)),
        _ => None,
    });
    let net = error.downcast_ref::<NetError>().map(|error| match error {
        NetError::Agents(error) => of_agents(error),
        NetError::Version(..) => EXIT_VERSION,
        NetError::Number { .. } => 2,
        _ => 1,
    });
    let roster = error.downcast_ref::<RosterError>().map(of_roster);
    let agent = error.downcast_ref::<AgentError>().map(|error| match error {
        AgentError::Join(error) => of_join(error),
        AgentError::Code(CodeError::None) => 2,
        _ => 1,
    });
    let code = error.downcast_ref::<CodeError>().map(of_code);
    let known = run.or(limits).or(program).or(net).or(roster).or(agent).or(code);
    ExitCode::from(known.unwrap_or(1))
}

fn of_agents(error: &AgentsError) -> u8 {
    match error {
        AgentsError::Roster(error) => of_roster(error),
        AgentsError::Mute(..) | AgentsError::Silent(..) | AgentsError::Gone(_) => EXIT_SILENT,
        _ => 1,
    }
}

fn of_roster(error: &RosterError) -> u8 {
    match error {
        RosterError::Join(_, error) => of_join(error),
        RosterError::Missing { .. } => EXIT_SILENT,
        RosterError::Code(error) => of_code(error),
        RosterError::Number => 2,
        RosterError::Tls(_) | RosterError::Listen(..) => 1,
    }
}

fn of_code(error: &CodeError) -> u8 {
    match error {
        CodeError::None | CodeError::Missing(..) | CodeError::Form(..) => 2,
        CodeError::Read(..) | CodeError::Write(..) => 1,
    }
}

fn of_join(error: &JoinError) -> u8 {
    match error {
        JoinError::Refused { why: Refusal::Version, .. } | JoinError::Foreign(..) => EXIT_VERSION,
        JoinError::Refused { .. } | JoinError::Impostor(_) | JoinError::Changed(_) => EXIT_REFUSED,
        JoinError::Connect(..) | JoinError::Silent(..) | JoinError::Closed(_) => EXIT_SILENT,
        JoinError::Proto(..) => 1,
    }
}
