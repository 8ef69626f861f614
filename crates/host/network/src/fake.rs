//! A kernel in memory: what Linux does to links, addresses and routes, what it removes without a
//! request included. For tests of what uses a [`Backend`].
//!
//! It refuses what Linux refuses: a second link of a name, a VLAN above the MTU of its device, a
//! port that is up, a gateway that is not reached.

use std::collections::BTreeMap;

use crate::backend::{Backend, Failure};
use crate::plan::IPV6_MTU_MIN;
use crate::state::{Address, Kind, Link, Mode, Owner, Route, State};
use crate::step::Step;

/// The kernel.
#[derive(Debug, Clone)]
pub struct Kernel {
    state: State,
    /// MTU of ports before they were attached.
    original_mtu: BTreeMap<String, u32>,
}

/// The kernel's reason for refusing a step.
type Refusal = &'static str;

impl Kernel {
    /// One in this state.
    pub fn new(mut state: State) -> Self {
        state.normalise();
        Self { state, original_mtu: BTreeMap::new() }
    }

    /// The state, to be changed as by another program.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn link(&mut self, name: &str) -> Result<&mut Link, Refusal> {
        self.state.links.get_mut(name).ok_or("no such device")
    }

    fn create(&mut self, name: &str, kind: &Kind, mtu: u32) -> Result<(), Refusal> {
        if self.state.links.contains_key(name) {
            return Err("file exists");
        }
        if let Some(on) = kind.on() {
            let below = self.state.links.get(on).ok_or("no such device")?;
            if below.mtu < mtu {
                return Err("numerical result out of range");
            }
            if self.state.links.values().any(|link| link.kind == *kind) {
                return Err("file exists");
            }
        }
        let kind = match kind {
            Kind::Aggregation(Mode::ActiveBackup { probes, .. }) => {
                Kind::Aggregation(Mode::ActiveBackup { primary: None, probes: probes.clone() })
            }
            other => other.clone(),
        };
        let link = Link {
            kind,
            mtu,
            mtu_range: (0, 0),
            up: false,
            controller: None,
            owner: Owner::Plimsoll,
            advertisements: mtu >= IPV6_MTU_MIN,
            dhcp: false,
        };
        self.state.links.insert(name.to_owned(), link);
        Ok(())
    }

    fn delete(&mut self, name: &str) -> Result<(), Refusal> {
        self.link(name)?;
        let above: Vec<String> = self.state.made_on(name).map(str::to_owned).collect();
        for link in above {
            self.delete(&link)?;
        }
        let ports: Vec<String> = self.state.ports(name).map(str::to_owned).collect();
        for port in ports {
            self.detach(&port)?;
        }
        self.state.links.remove(name);
        self.state.addresses.remove(name);
        self.state.routes.retain(|route| route.link != name);
        self.original_mtu.remove(name);
        Ok(())
    }

    fn attach(&mut self, port: &str, to: &str) -> Result<(), Refusal> {
        let aggregation = self.link(to)?.clone();
        if !matches!(aggregation.kind, Kind::Aggregation(_)) {
            return Err("operation not supported");
        }
        let mut above = aggregation.controller.clone();
        while let Some(name) = above {
            if name == port {
                return Err("too many levels of symbolic links");
            }
            above = self.state.links.get(&name).and_then(|link| link.controller.clone());
        }
        let link = self.link(port)?;
        if link.up {
            return Err("device can not be enslaved while up");
        }
        if link.controller.is_some() {
            return Err("device or resource busy");
        }
        let mtu = link.mtu;
        link.controller = Some(to.to_owned());
        self.original_mtu.insert(port.to_owned(), mtu);
        self.set_mtu(port, aggregation.mtu)?;
        self.set_up(port)
    }

    fn detach(&mut self, port: &str) -> Result<(), Refusal> {
        if self.link(port)?.controller.take().is_none() {
            return Err("invalid argument");
        }
        self.set_down(port)?;
        match self.original_mtu.remove(port) {
            Some(mtu) => self.set_mtu(port, mtu),
            None => Ok(()),
        }
    }

    fn set_mode(&mut self, name: &str, mode: &Mode) -> Result<(), Refusal> {
        if let Mode::ActiveBackup { primary: Some(port), .. } = mode
            && self.link(port)?.controller.as_deref() != Some(name)
        {
            return Err("the primary is not a port");
        }
        let link = self.link(name)?;
        let next = Kind::Aggregation(mode.clone());
        if !link.kind.can_become(&next) {
            return Err("operation not permitted");
        }
        link.kind = next;
        Ok(())
    }

    fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), Refusal> {
        let on = self.link(name)?.kind.on().map(str::to_owned);
        let below = on.map(|on| self.link(&on).map(|link| link.mtu)).transpose()?;
        let link = self.link(name)?;
        let (min, max) = link.mtu_range;
        if mtu < min || (max > 0 && mtu > max) || below.is_some_and(|below| mtu > below) {
            return Err("numerical result out of range");
        }
        let before = std::mem::replace(&mut link.mtu, mtu);
        if mtu < IPV6_MTU_MIN {
            link.advertisements = false;
            self.flush_ipv6(name);
        } else if before < IPV6_MTU_MIN {
            // The default of the kernel.
            link.advertisements = true;
        }
        let ports: Vec<String> = self.state.ports(name).map(str::to_owned).collect();
        for port in ports {
            self.set_mtu(&port, mtu)?;
        }
        let above: Vec<String> = self.state.made_on(name).map(str::to_owned).collect();
        for link in above {
            if self.link(&link)?.mtu > mtu {
                self.set_mtu(&link, mtu)?;
            }
        }
        Ok(())
    }

    fn set_up(&mut self, name: &str) -> Result<(), Refusal> {
        let on = self.link(name)?.kind.on().map(str::to_owned);
        if let Some(on) = on
            && !self.link(&on)?.up
        {
            return Err("network is down");
        }
        if std::mem::replace(&mut self.link(name)?.up, true) {
            return Ok(());
        }
        let above: Vec<String> = self.state.made_on(name).map(str::to_owned).collect();
        above.iter().try_for_each(|link| self.set_up(link))
    }

    fn set_down(&mut self, name: &str) -> Result<(), Refusal> {
        if !std::mem::replace(&mut self.link(name)?.up, false) {
            return Ok(());
        }
        self.flush_ipv6(name);
        self.state.routes.retain(|route| route.link != name);
        let above: Vec<String> = self.state.made_on(name).map(str::to_owned).collect();
        above.iter().try_for_each(|link| self.set_down(link))
    }

    fn flush_ipv6(&mut self, name: &str) {
        if let Some(list) = self.state.addresses.get_mut(name) {
            list.retain(|address| address.cidr.is_ipv4());
        }
        self.state.routes.retain(|r| r.link != name || r.destination.is_ipv4());
    }

    fn set_address(&mut self, link: &str, address: Address) -> Result<(), Refusal> {
        let mtu = self.link(link)?.mtu;
        if !address.cidr.is_ipv4() && mtu < IPV6_MTU_MIN {
            return Err("invalid argument");
        }
        let list = self.state.addresses.entry(link.to_owned()).or_default();
        match list.iter_mut().find(|old| old.cidr == address.cidr) {
            Some(old) => *old = address,
            None => list.push(address),
        }
        Ok(())
    }

    fn remove_address(&mut self, link: &str, address: Address) -> Result<(), Refusal> {
        let list = self.state.addresses.get_mut(link).ok_or("cannot assign requested address")?;
        let of_group = |a: &&Address| a.group() == address.group();
        let primary = list.iter().find(of_group).copied();
        if !list.iter().any(|a| a.cidr == address.cidr) {
            return Err("cannot assign requested address");
        }
        let removed = |a: &Address| match primary {
            // The secondary addresses go with their primary.
            Some(primary) if primary.cidr == address.cidr => a.group() == address.group(),
            _ => a.cidr == address.cidr,
        };
        let gone: Vec<_> = list.iter().filter(|a| removed(a)).map(|a| a.cidr.address).collect();
        list.retain(|a| !removed(a));
        let last = !list.iter().any(|a| a.cidr.is_ipv4());
        self.state.routes.retain(|route| {
            let without_source = route.source.is_none_or(|source| !gone.contains(&source));
            let without_ip = last && route.destination.is_ipv4() && route.link == link;
            without_source && !without_ip
        });
        Ok(())
    }

    fn set_route(&mut self, route: &Route) -> Result<(), Refusal> {
        if !self.link(&route.link)?.up {
            return Err("network is down");
        }
        let addresses = self.state.addresses(&route.link);
        let reached = |gateway| addresses.iter().any(|a| a.cidr.contains(gateway));
        if route.gateway.is_some_and(|gateway| !reached(gateway)) {
            return Err("nexthop has invalid gateway");
        }
        self.state.routes.retain(|old| !old.same_key(route));
        self.state.routes.push(route.clone());
        Ok(())
    }

    fn remove_route(&mut self, route: &Route) -> Result<(), Refusal> {
        let before = self.state.routes.len();
        self.state.routes.retain(|old| old != route);
        if self.state.routes.len() == before { Err("no such process") } else { Ok(()) }
    }

    fn execute(&mut self, step: &Step) -> Result<(), Refusal> {
        match step {
            Step::RemoveRoute(route) => self.remove_route(route),
            Step::RemoveAddress { link, address } => self.remove_address(link, *address),
            Step::Detach { port } => self.detach(port),
            Step::DeleteLink(name) => self.delete(name),
            Step::CreateLink { name, kind, mtu } => self.create(name, kind, *mtu),
            Step::SetMode { link, mode } => self.set_mode(link, mode),
            Step::SetMtu { link, mtu } => self.set_mtu(link, *mtu),
            Step::SetUp { link, up: true } => self.set_up(link),
            Step::SetUp { link, up: false } => self.set_down(link),
            Step::Attach { port, aggregation } => self.attach(port, aggregation),
            Step::SetAdvertisements { link, on } => {
                let link = self.link(link)?;
                if *on && link.mtu < IPV6_MTU_MIN {
                    return Err("no such file or directory");
                }
                link.advertisements = *on;
                Ok(())
            }
            Step::SetDhcp { link, on } => {
                self.link(link)?.dhcp = *on;
                Ok(())
            }
            Step::SetAddress { link, address } => self.set_address(link, *address),
            Step::SetRoute(route) => self.set_route(route),
            Step::SetDns(dns) => {
                self.state.dns = dns.clone();
                Ok(())
            }
            Step::SetHostName(name) => {
                self.state.host_name.clone_from(name);
                Ok(())
            }
        }
    }
}

impl Backend for Kernel {
    fn observe(&mut self) -> Result<State, Failure> {
        let mut state = self.state.clone();
        for name in self.state.links.keys() {
            let ports: Vec<&str> = self.state.ports(name).collect();
            if let Some(link) = state.links.get_mut(name)
                && let Kind::Aggregation(Mode::ActiveBackup { primary, .. }) = &mut link.kind
            {
                // It is shown while it is a port.
                primary.take_if(|port| !ports.contains(&port.as_str()));
            }
        }
        state.normalise();
        Ok(state)
    }

    fn take(&mut self, step: &Step) -> Result<(), Failure> {
        let refused =
            |why: Refusal| Failure::Refused { step: step.to_string(), why: why.to_owned() };
        self.execute(step).map_err(refused)
    }
}

#[cfg(test)]
mod tests;
