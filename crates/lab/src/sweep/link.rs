//! The link of a point. It is made new for each sample, so that its verdict is about that one
//! alone.

use super::plan::{At, Plan};
use super::transport::{SweepError, tried};
use crate::bridge::scene::Scene;
use base::limits::SWEEP_LINK_MAX;

/// Whether a window that was let lie begins small again. Here it lies while a block is waited for.
const AFTER_IDLE: &str = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";

/// Makes the networks of a point and joins them; packets pass when it returns.
///
/// # Errors
/// Why there is none.
pub fn start(plan: &Plan, at: &At) -> Result<Scene, SweepError> {
    let program = std::env::current_exe().map_err(tried("find this program"))?;
    let scene = Scene::start(&program, "sweep", &options(plan, at))?;
    scene.first.within(|| {
        // Where settings are read-only, blocks after a pause are slower; the figures say so.
        let _as_it_was = std::fs::write(AFTER_IDLE, "0");
        Ok(())
    })?;
    Ok(scene)
}

/// What the link of a point does.
fn options(plan: &Plan, at: &At) -> Vec<String> {
    let mut options: Vec<String> = [
        ("--rtt", format!("{}ms", at.rtt_ms)),
        ("--rate", format!("{}bit", plan.rate)),
        ("--queue", plan.queue(at).to_string()),
        ("--seed", plan.seed.to_string()),
        ("--for", format!("{}s", SWEEP_LINK_MAX.as_secs())),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_owned(), value])
    .collect();
    options.extend(at.encrypt.then(|| "--encrypt".to_owned()));
    options
}
