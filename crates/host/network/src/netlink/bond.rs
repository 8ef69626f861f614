//! Aggregations: what the kernel calls a bond.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use netlink_packet_route::link::{
    BondArpValidate, BondLacpRate, BondMode, BondPrimaryReselect, BondXmitHashPolicy, InfoBond,
    InfoBondPort, InfoPortData, MiiStatus,
};

use crate::state::{Mode, Policy, Timer};

/// How often an aggregation checks the carrier of its ports, in ms.
const CARRIER_MS: u32 = 100;
/// How often hosts are probed by ARP, in ms. A port that no host answers on is left after two of
/// these, and one that takes over is up within another two: the gap stays below 2 s.
const PROBE_MS: u32 = 500;

/// A bond as the kernel describes it.
#[derive(Debug, Default)]
pub(super) struct Bond {
    mode: BondMode,
    primary: Option<u32>,
    policy: BondXmitHashPolicy,
    fast: bool,
    probe_ms: u32,
    probes: BTreeSet<Ipv4Addr>,
}

impl Bond {
    pub(super) fn take(&mut self, attribute: InfoBond) {
        match attribute {
            InfoBond::Mode(mode) => self.mode = mode,
            InfoBond::Primary(index) => self.primary = Some(index),
            InfoBond::XmitHashPolicy(policy) => self.policy = policy,
            InfoBond::AdLacpRate(rate) => self.fast = rate == BondLacpRate::Fast,
            InfoBond::ArpInterval(ms) => self.probe_ms = ms,
            InfoBond::ArpIpTarget(hosts) => self.probes = hosts.into_iter().collect(),
            _ => {}
        }
    }

    pub(super) fn mode(&self, name: impl Fn(u32) -> Option<String>) -> Option<Mode> {
        let policy = match self.policy {
            BondXmitHashPolicy::Layer2 => Policy::Layer2,
            BondXmitHashPolicy::Layer23 => Policy::Layer23,
            BondXmitHashPolicy::Layer34 => Policy::Layer34,
            _ => return None,
        };
        let timer = if self.fast { Timer::Fast } else { Timer::Slow };
        match self.mode {
            BondMode::ActiveBackup => {
                let mut probes = self.probes.clone();
                probes.retain(|_| self.probe_ms != 0);
                Some(Mode::ActiveBackup { primary: self.primary.and_then(name), probes })
            }
            BondMode::Ieee8023Ad => Some(Mode::Lacp { policy, timer }),
            _ => None,
        }
    }
}

/// Whether a port is not used: without a carrier, or because no host answers on it.
pub(super) fn is_down(port: &InfoPortData) -> bool {
    let InfoPortData::BondPort(list) = port else { return false };
    list.iter()
        .any(|one| matches!(one, InfoBondPort::MiiStatus(status) if *status == MiiStatus::Down))
}

/// The attributes of a bond that is made; its primary must be a port first.
pub(super) fn new_bond(mode: &Mode) -> Vec<InfoBond> {
    match mode {
        Mode::ActiveBackup { probes, .. } => {
            let mut data = vec![InfoBond::Mode(BondMode::ActiveBackup)];
            data.extend(monitor(probes));
            data
        }
        Mode::Lacp { policy, timer } => {
            let rate = match timer {
                Timer::Slow => BondLacpRate::Slow,
                Timer::Fast => BondLacpRate::Fast,
            };
            vec![
                InfoBond::Mode(BondMode::Ieee8023Ad),
                InfoBond::MiiMon(CARRIER_MS),
                InfoBond::XmitHashPolicy(hash_policy(*policy)),
                InfoBond::AdLacpRate(rate),
            ]
        }
    }
}

/// The attributes that can be set while it has ports; `primary` is the index of that port, or 0.
pub(super) fn change(mode: &Mode, primary: u32) -> Vec<InfoBond> {
    match mode {
        Mode::ActiveBackup { probes, .. } => {
            let mut data = monitor(probes);
            data.push(InfoBond::Primary(primary));
            data
        }
        Mode::Lacp { policy, .. } => vec![InfoBond::XmitHashPolicy(hash_policy(*policy))],
    }
}

/// How ports are found to work: by their carrier, or by probes, which the kernel does not combine.
/// With probes the primary is not taken again before another port fails: one that hears hosts, but
/// is not heard, would be taken and left in turns.
fn monitor(probes: &BTreeSet<Ipv4Addr>) -> Vec<InfoBond> {
    let hosts = InfoBond::ArpIpTarget(probes.iter().copied().collect());
    if probes.is_empty() {
        let reselect = InfoBond::PrimaryReselect(BondPrimaryReselect::Always);
        return vec![InfoBond::MiiMon(CARRIER_MS), hosts, reselect];
    }
    vec![
        InfoBond::ArpInterval(PROBE_MS),
        hosts,
        InfoBond::ArpValidate(BondArpValidate::All),
        InfoBond::PrimaryReselect(BondPrimaryReselect::Failure),
    ]
}

fn hash_policy(policy: Policy) -> BondXmitHashPolicy {
    match policy {
        Policy::Layer2 => BondXmitHashPolicy::Layer2,
        Policy::Layer23 => BondXmitHashPolicy::Layer23,
        Policy::Layer34 => BondXmitHashPolicy::Layer34,
    }
}
