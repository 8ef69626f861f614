//! Whether the files that a program has open at once fit into the limit of this process.

use super::PARENTS_MAX;
use crate::client::ClientError;
use lab_program::program::Plan;

/// Descriptors of this process in addition to the files of threads: logs, connections, devices.
const OTHERS: u64 = 128;

/// Raises the limit on open files as far as this process may, and refuses a plan that needs more:
/// its opens would fail in the middle of the run.
///
/// # Errors
/// [`ClientError::OpenFiles`].
pub fn permit(plan: &Plan) -> Result<(), ClientError> {
    permitted(plan, lab_net::socket::raise_descriptor_limit())
}

fn permitted(plan: &Plan, limit: u64) -> Result<(), ClientError> {
    let directories = plan.instances().count() as u64 * PARENTS_MAX as u64;
    let needed = plan.open_files_max() + directories + OTHERS;
    match needed > limit {
        true => Err(ClientError::OpenFiles { needed, limit }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
