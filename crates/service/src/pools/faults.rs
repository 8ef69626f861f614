//! What is wrong with pools, as problems of the machine.

use host_pools::keeper::LISTED_MAX;
use host_pools::request::{FileSystem, MemberStatus, PoolStatus};
use host_pools::state::State;
use host_pools::zfs::Role;

use crate::problems::{Fault, Severity};

/// All that is wrong with a pool.
pub(super) fn faults(pool: &PoolStatus) -> Vec<Fault> {
    let mut faults: Vec<Fault> = pool.members.iter().filter_map(|one| errors(pool, one)).collect();
    faults.extend(state(pool));
    faults.extend(not_listed(pool));
    faults
}

/// Snapshots beyond the number that is listed.
fn not_listed(pool: &PoolStatus) -> Option<Fault> {
    let name = &pool.name;
    (pool.snapshots.len() >= LISTED_MAX).then(|| Fault {
        id: format!("pool-{name}-snapshots"),
        severity: Severity::Minor,
        what: format!("The pool {name} has {LISTED_MAX} snapshots or more."),
        impact: format!("Only {LISTED_MAX} are listed."),
        remedy: format!("Destroy snapshots that are not needed: storage pools {name} snapshots."),
    })
}

fn state(pool: &PoolStatus) -> Option<Fault> {
    let name = &pool.name;
    let reason = pool.reason.clone().unwrap_or_default();
    // A present disk of ZFS may be faulted or offline; caches and spares have no data.
    let is_lost = |one: &&MemberStatus| {
        let is_bad = one.health.is_some_and(|health| !health.is_good());
        one.role == Role::Data && (one.member.missing || is_bad)
    };
    let missing = pool.members.iter().filter(is_lost).count();
    let tolerance = pool.profile.map_or(0, host_pools::profile::Profile::tolerance);
    let (severity, impact) = match pool.state {
        State::Healthy => return None,
        State::Failed => (Severity::Critical, "Shares on the pool are not available."),
        _ if missing < tolerance => {
            (Severity::Minor, "A further disk may fail without loss of data.")
        }
        _ => (Severity::Major, "If a further disk fails, data is lost."),
    };
    let remedy = match (&pool.task, pool.state, missing) {
        (Some(_), ..) => "Wait for the task of the pool.".to_owned(),
        (_, State::Failed, _) => {
            format!(
                "Connect the missing disks, or mount the pool without them: storage pools {name} \
                 mount."
            )
        }
        (.., 0) if pool.file_system == FileSystem::Zfs => {
            format!("See the disks of the pool: storage pools {name} disks show.")
        }
        (.., 0) => "The repair begins automatically.".to_owned(),
        _ => format!("Replace the disk: storage pools {name} replace."),
    };
    Some(Fault {
        id: format!("pool-{name}"),
        severity,
        what: format!("The pool {name} is {}: {reason}.", pool.state.name()),
        impact: impact.to_owned(),
        remedy,
    })
}

/// Errors of a disk, which the counters of the file system keep until the disk is replaced.
fn errors(pool: &PoolStatus, of: &MemberStatus) -> Option<Fault> {
    let errors = of.member.errors;
    let (name, title) = (&pool.name, of.identity.title());
    let failed = errors.write.saturating_add(errors.read).saturating_add(errors.flush);
    if of.member.missing || failed == 0 {
        // Blocks that were corrected are in the history of scrubs.
        return None;
    }
    Some(Fault {
        id: format!("pool-{name}-errors-{}", of.member.devid),
        severity: Severity::Minor,
        what: format!("{failed} commands to the disk {title} of the pool {name} failed."),
        impact: "The disk may fail.".to_owned(),
        remedy: format!("Check its cable, and replace the disk: storage pools {name} replace."),
    })
}

#[cfg(test)]
pub(super) mod tests;
