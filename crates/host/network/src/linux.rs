//! The network of this machine: rtnetlink for links, addresses and routes, `/proc/sys` for router
//! advertisements, `/etc/resolv.conf` for name servers.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::backend::{Backend, Failure};
use crate::dhcp::{DHCP_MARK, Folder, Holding, Lease, METRIC};
use crate::netlink::{Netlink, RawLink};
use crate::state::{Address, Dns, Kind, Link, MARK, Owner, Route, State};
use crate::step::Step;

/// The first line of a file of name servers that Plimsoll has made.
const RESOLV_CONF_HEAD: &str = "# Made by Plimsoll from its configuration; changes are lost.";
/// The same of one that has the name servers of leases.
const RESOLV_CONF_LEASED: &str = "# Made by Plimsoll from DHCP; changes are lost.";
/// The oldest Linux that can mark addresses (IFA_PROTO).
const LINUX_MIN: (u32, u32) = (5, 18);
/// Longest file of `/run` or `/etc` that is read.
const FILE_MAX: u64 = 64 << 10;

/// Where the machine's files are.
#[derive(Debug, Clone)]
pub struct Files {
    /// State of other programs that manage links: `/run`.
    pub run: PathBuf,
    /// The file of name servers: `/etc/resolv.conf`.
    pub resolv_conf: PathBuf,
    /// Links with DHCP, for what starts and stops it; without it, DHCP is not seen.
    pub dhcp: Option<Folder>,
}

impl Default for Files {
    fn default() -> Self {
        Self { run: "/run".into(), resolv_conf: "/etc/resolv.conf".into(), dhcp: None }
    }
}

/// How a link works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// It has no carrier.
    None,
    /// It has one, but its group does not use it: no host answers a probe on it.
    Unanswered,
    /// It has one.
    Works,
}

/// The network in the namespace in which it was opened.
#[derive(Debug)]
pub struct Linux {
    netlink: Netlink,
    files: Files,
}

impl Linux {
    /// Opens the network of the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(files: Files) -> io::Result<Self> {
        Ok(Self { netlink: Netlink::open()?, files })
    }

    fn gather(&mut self) -> Result<State, String> {
        let raw = self.netlink.links()?;
        let mut names: BTreeMap<u32, String> = BTreeMap::new();
        names.extend(raw.iter().map(|link| (link.index, link.name.clone())));
        let mut state = State { host_name: host_name(), ..State::default() };
        for link in &raw {
            state.links.insert(link.name.clone(), self.link(link, &names));
        }
        for raw in self.netlink.addresses()? {
            // A link that was made since has no name here; it is in the next state.
            if let Some(name) = names.get(&raw.index) {
                state.addresses.entry(name.clone()).or_default().push(raw.address);
            }
        }
        for raw in self.netlink.routes()? {
            if let Some(name) = names.get(&raw.index) {
                let mut route = raw.route;
                route.link.clone_from(name);
                state.routes.push(route);
            }
        }
        state.dns = resolv_conf(&read(&self.files.resolv_conf).unwrap_or_default());
        state.normalise();
        Ok(state)
    }

    /// All links, and how each of them works.
    ///
    /// # Errors
    /// The kernel's, as a sentence.
    pub fn carriers(&mut self) -> Result<BTreeMap<String, Carrier>, Failure> {
        let links = self.netlink.links().map_err(Failure::Observe)?;
        let carrier = |raw: &RawLink| match (raw.carrier, raw.unused) {
            (false, _) => Carrier::None,
            (true, true) => Carrier::Unanswered,
            (true, false) => Carrier::Works,
        };
        Ok(links.into_iter().map(|raw| (raw.name.clone(), carrier(&raw))).collect())
    }

    fn link(&self, raw: &RawLink, names: &BTreeMap<u32, String>) -> Link {
        let kind = raw.kind(|index| names.get(&index).cloned());
        let made = raw.group == u32::from(MARK) && !matches!(kind, Kind::Device { .. });
        let owner = match manager(&self.files.run, raw.index) {
            _ if made => Owner::Plimsoll,
            Some(manager) => Owner::Manager(manager.to_owned()),
            None => Owner::Free,
        };
        Link {
            kind,
            mtu: raw.mtu,
            mtu_range: raw.mtu_range,
            up: raw.up,
            controller: names.get(&raw.controller).cloned(),
            owner,
            advertisements: raw.advertisements,
            dhcp: self.files.dhcp.as_ref().is_some_and(|folder| folder.has(&raw.name)),
        }
    }

    fn execute(&mut self, step: &Step) -> Result<(), String> {
        let netlink = &mut self.netlink;
        match step {
            Step::RemoveRoute(route) => netlink.remove_route(route),
            Step::RemoveAddress { link, address } => netlink.remove_address(link, address),
            Step::Detach { port } => netlink.set_controller(port, None),
            Step::DeleteLink(name) => netlink.delete(name),
            Step::CreateLink { name, kind, mtu } => netlink.create(name, kind, *mtu),
            Step::SetMode { link, mode } => netlink.set_mode(link, mode),
            Step::SetMtu { link, mtu } => netlink.set_mtu(link, *mtu),
            Step::SetUp { link, up } => netlink.set_up(link, *up),
            Step::Attach { port, aggregation } => netlink.set_controller(port, Some(aggregation)),
            Step::SetAdvertisements { link, on } => set_advertisements(link, *on),
            Step::SetDhcp { link, on } => self.set_dhcp(link, *on),
            Step::SetAddress { link, address } => netlink.set_address(link, address),
            Step::SetRoute(route) => netlink.set_route(route),
            Step::SetDns(dns) => {
                set_resolv_conf(&self.files.resolv_conf, dns, RESOLV_CONF_HEAD)?;
                self.set_leased_names()
            }
            Step::SetHostName(name) => set_host_name(name),
        }
    }
}

/// The leases by DHCP.
impl Linux {
    /// The index of a link and its hardware address.
    ///
    /// # Errors
    /// The kernel's, as a sentence.
    pub fn hardware(&mut self, link: &str) -> Result<(u32, Vec<u8>), String> {
        self.netlink.hardware(link)
    }

    /// Enters the lease of a link, and brings the kernel to it.
    ///
    /// # Errors
    /// One sentence.
    pub fn hold(&mut self, link: &str, holding: &Holding) -> Result<(), String> {
        let folder = self.folder()?;
        let before = folder.read(link).and_then(|before| before.lease);
        folder.write(link, holding).map_err(|e| e.to_string())?;
        let lease = holding.lease.as_ref();
        let gone = before.filter(|before| lease.is_none_or(|lease| lease.cidr != before.cidr));
        if let Some(gone) = gone {
            self.end(link, &gone);
        }
        self.set_lease(link, holding)?;
        self.set_leased_names()
    }

    fn folder(&self) -> Result<Folder, String> {
        self.files.dhcp.clone().ok_or_else(|| "there is no DHCP client".to_owned())
    }

    fn set_dhcp(&mut self, link: &str, on: bool) -> Result<(), String> {
        let folder = self.folder()?;
        let entry = folder.read(link);
        if !on {
            if let Some(lease) = entry.and_then(|entry| entry.lease) {
                self.end(link, &lease);
            }
            folder.remove(link).map_err(|e| e.to_string())?;
            return self.set_leased_names();
        }
        let mac = mac_text(&self.netlink.hardware(link)?.1);
        if let Some(entry) = entry {
            if entry.mac == mac {
                return self.set_lease(link, &entry);
            }
            // Another link of that name: the lease is not its.
            entry.lease.iter().for_each(|lease| self.end(link, lease));
        }
        let begun = Holding::begin(&mac, now_ns());
        folder.write(link, &begun).map_err(|e| e.to_string())
    }

    /// Removes the address of a lease, which takes its routes along. It may be gone.
    fn end(&mut self, link: &str, lease: &Lease) {
        let address = Address { cidr: lease.cidr, made: false };
        // The kernel has removed it if its time was over.
        let _ = self.netlink.remove_address(link, &address);
    }

    /// Sets the address of a valid lease and its routes.
    fn set_lease(&mut self, link: &str, holding: &Holding) -> Result<(), String> {
        let now = now_ns() / 1_000_000_000;
        let Some(lease) = holding.valid(now) else { return Ok(()) };
        self.netlink.set_leased(link, lease.cidr, lease.left_s(now))?;
        let own = (lease.cidr.network(), None);
        let source = Some(lease.cidr.address);
        for (destination, gateway) in std::iter::once(&own).chain(&lease.routes) {
            let route = Route {
                destination: destination.network(),
                gateway: gateway.map(IpAddr::V4),
                link: link.to_owned(),
                metric: METRIC,
                source,
                protocol: DHCP_MARK,
            };
            self.netlink.set_leased_route(&route, lease.mtu)?;
        }
        Ok(())
    }

    /// Sets the name servers of all leases, unless the file is not Plimsoll's, or configured.
    fn set_leased_names(&mut self) -> Result<(), String> {
        let Some(folder) = &self.files.dhcp else { return Ok(()) };
        let path = &self.files.resolv_conf;
        let is_link = path.symlink_metadata().is_ok_and(|m| m.file_type().is_symlink());
        let text = read(path);
        let ours = match &text {
            Ok(text) => text.starts_with(RESOLV_CONF_LEASED),
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        };
        if is_link || !ours {
            return Ok(());
        }
        let mut dns = Dns::default();
        for lease in folder.all().values().filter_map(|one| one.lease.as_ref()) {
            for server in &lease.dns.servers {
                if !dns.servers.contains(server) {
                    dns.servers.push(*server);
                }
            }
            for domain in &lease.dns.domains {
                if !dns.domains.contains(domain) {
                    dns.domains.push(domain.clone());
                }
            }
        }
        set_resolv_conf(path, &dns, RESOLV_CONF_LEASED)
    }
}

/// A hardware address as iproute2 writes it.
pub fn mac_text(bytes: &[u8]) -> String {
    let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

/// The wall clock in nanoseconds since 1970: a lease outlives processes and boots.
fn now_ns() -> u64 {
    base::clock::wall_ns()
}

impl Backend for Linux {
    fn observe(&mut self) -> Result<State, Failure> {
        self.gather().map_err(Failure::Observe)
    }

    fn take(&mut self, step: &Step) -> Result<(), Failure> {
        self.execute(step).map_err(|why| Failure::Refused { step: step.to_string(), why })
    }
}

/// Why the network of this machine can only be observed, whatever the rights of this process.
pub fn lacks() -> Option<String> {
    let release = read(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let (major, minor) = LINUX_MIN;
    (version(&release)? < LINUX_MIN)
        .then(|| format!("Linux {} cannot mark addresses; {major}.{minor} can", release.trim()))
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The program that manages a link, by what it leaves in `/run`.
fn manager(run: &Path, index: u32) -> Option<&'static str> {
    let has = |file: &str, words: &str| -> Option<bool> {
        let text = read(&run.join(format!("{file}/{index}"))).ok()?;
        Some(text.lines().any(|line| line == words))
    };
    if has("NetworkManager/devices", "managed=true") == Some(true) {
        return Some("NetworkManager");
    }
    let released = has("systemd/netif/links", "ADMIN_STATE=unmanaged");
    (released == Some(false)).then_some("systemd-networkd")
}

fn read(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(FILE_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn set_advertisements(link: &str, on: bool) -> Result<(), String> {
    let path = Path::new("/proc/sys/net/ipv6/conf").join(link).join("accept_ra");
    match std::fs::write(&path, if on { "1" } else { "0" }) {
        // Without IPv6 there are none.
        Err(e) if e.kind() == io::ErrorKind::NotFound && !on => Ok(()),
        done => done.map_err(|e| format!("{}: {e}", path.display())),
    }
}

/// The name servers in a file (resolv.conf(5)); those of leases come and go without a step.
fn resolv_conf(text: &str) -> Dns {
    let mut dns = Dns::default();
    if text.starts_with(RESOLV_CONF_LEASED) {
        return dns;
    }
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => {
                dns.servers.extend(words.next().and_then(|word| word.parse::<IpAddr>().ok()));
            }
            // The last one counts.
            Some("search" | "domain") => dns.domains = words.map(str::to_owned).collect(),
            _ => {}
        }
    }
    dns
}

fn set_resolv_conf(path: &Path, dns: &Dns, head: &str) -> Result<(), String> {
    let failed = |e: io::Error| format!("{}: {e}", path.display());
    let is_link = path.symlink_metadata().is_ok_and(|m| m.file_type().is_symlink());
    match read(path) {
        _ if is_link => {
            return Err(format!("{} is another program's: it is a link", path.display()));
        }
        Ok(text) if ![RESOLV_CONF_HEAD, RESOLV_CONF_LEASED].iter().any(|h| text.starts_with(h)) => {
            return Err(format!("{} is not Plimsoll's: remove it first", path.display()));
        }
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(failed(e)),
    }
    if *dns == Dns::default() {
        return match std::fs::remove_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.map_err(failed),
        };
    }
    let mut text = format!("{head}\n");
    if !dns.domains.is_empty() {
        text += &format!("search {}\n", dns.domains.join(" "));
    }
    for server in &dns.servers {
        text += &format!("nameserver {server}\n");
    }
    write_whole(path, &text).map_err(failed)
}

/// Replaces a file by one with this text, which is on disk before it gets the name.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let temporary = path.with_extension("plimsoll");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o644).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

fn host_name() -> String {
    let name = read(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn set_host_name(name: &str) -> Result<(), String> {
    std::fs::write("/proc/sys/kernel/hostname", name).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests;
