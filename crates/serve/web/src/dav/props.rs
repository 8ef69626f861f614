//! The properties that resources have by themselves (RFC 4918 §15; quota: RFC 4331; those of
//! Windows that are times of the file), and the answer about one resource.

use std::sync::Arc;

use vfs::attr::{Attr, FileType};
use vfs::fs::Space;
use wire::dav::body::Find;
use wire::dav::xml::{Name, Writer};
use wire::dav::{DAV, WIN32};

use super::dead::Dead;
use super::locks::Locks;
use super::multi;
use super::state::{Lineage, Lock};
use crate::{date, kind, select};

macro_rules! live {
    ($($which:ident = $ns:expr, $local:literal, $all:literal;)*) => {
        /// A property that a resource has by itself.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Live { $($which,)* }

        impl Live {
            /// All of them, and whether `allprop` tells them (§9.1: those of RFC 4918).
            const ALL: &[(Self, &'static str, &'static str, bool)] =
                &[$((Self::$which, $ns, $local, $all),)*];
        }
    };
}

live! {
    CreationDate = DAV, "creationdate", true;
    DisplayName = DAV, "displayname", true;
    ContentLength = DAV, "getcontentlength", true;
    ContentType = DAV, "getcontenttype", true;
    ETag = DAV, "getetag", true;
    LastModified = DAV, "getlastmodified", true;
    LockDiscovery = DAV, "lockdiscovery", true;
    ResourceType = DAV, "resourcetype", true;
    SupportedLock = DAV, "supportedlock", true;
    QuotaAvailable = DAV, "quota-available-bytes", false;
    QuotaUsed = DAV, "quota-used-bytes", false;
    Win32LastModified = WIN32, "Win32LastModifiedTime", false;
    Win32LastAccess = WIN32, "Win32LastAccessTime", false;
}

impl Live {
    /// The one of this name.
    pub fn of(name: &Name) -> Option<Self> {
        Self::ALL.iter().find(|(_, ns, local, _)| name.is(ns, local)).map(|live| live.0)
    }

    /// Whether PROPPATCH may set it: the times of the file, and what it is called for people.
    pub const fn may_be_set(self) -> bool {
        let time = matches!(self, Self::LastModified | Self::Win32LastModified);
        time || matches!(self, Self::Win32LastAccess | Self::DisplayName)
    }
}

/// What is told of one resource.
pub struct Resource<'a> {
    /// Its path from the list of shares on.
    pub path: &'a [u8],
    /// The same by identity.
    pub of: &'a Lineage,
    /// Its attributes; `None` for the list of shares.
    pub attr: Option<&'a Attr>,
    /// Its dead properties.
    pub dead: &'a Dead,
    /// Space of its share, if somebody asks.
    pub space: Option<Space>,
    /// All locks.
    pub locks: &'a Locks,
}

/// Whether these need more than attributes: dead properties (of which a name for people is one).
pub fn needs_dead(find: &Find) -> bool {
    match find {
        Find::All(_) | Find::Names => true,
        Find::These(names) => {
            names.iter().any(|name| matches!(Live::of(name), None | Some(Live::DisplayName)))
        }
    }
}

/// Whether space is asked for.
pub fn needs_space(find: &Find) -> bool {
    let asked = match find {
        Find::All(names) | Find::These(names) => names.as_slice(),
        Find::Names => &[],
    };
    let quota = |name| matches!(Live::of(name), Some(Live::QuotaAvailable | Live::QuotaUsed));
    asked.iter().any(quota)
}

impl Resource<'_> {
    /// Whether it is a collection.
    pub fn is_collection(&self) -> bool {
        self.attr.is_none_or(|attr| attr.kind == FileType::Directory)
    }

    fn name(&self) -> String {
        let name = self.path.rsplit(|b| *b == b'/').next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// The value of a property as text; `None` if it has none, or one that is no text.
    fn text(&self, which: Live) -> Option<String> {
        let file = self.attr.filter(|_| !self.is_collection());
        match which {
            Live::CreationDate => {
                let attr = self.attr?;
                let first = attr.birth.unwrap_or(attr.mtime.min(attr.ctime));
                Some(date::write_iso(first.sec))
            }
            Live::DisplayName => Some(self.name()),
            Live::ContentLength => file.map(|attr| attr.size.to_string()),
            Live::ContentType => file.map(|_| kind::of(self.name().as_bytes()).to_owned()),
            Live::ETag => file.map(|attr| select::Validators::of(attr).etag),
            Live::LastModified | Live::Win32LastModified => {
                self.attr.map(|attr| date::write(attr.mtime.sec))
            }
            Live::Win32LastAccess => self.attr.map(|attr| date::write(attr.atime.sec)),
            Live::QuotaAvailable => self.space.map(|space| space.avail_bytes.to_string()),
            Live::QuotaUsed => {
                let used = |space: Space| space.total_bytes.saturating_sub(space.free_bytes);
                self.space.map(|space| used(space).to_string())
            }
            Live::LockDiscovery | Live::ResourceType | Live::SupportedLock => None,
        }
    }

    /// Adds a property with its value; false if the resource does not have it.
    fn write(&self, w: &mut Writer<'_>, which: Live) -> bool {
        let Some((_, ns, local, _)) = Live::ALL.iter().find(|live| live.0 == which) else {
            return false;
        };
        match which {
            Live::DisplayName if self.dead.0.contains_key(&Name::new(DAV, local)) => {
                let xml = self.dead.0.get(&Name::new(DAV, local));
                w.raw(xml.map_or("", String::as_str));
            }
            Live::ResourceType if self.is_collection() => {
                w.raw("<D:resourcetype><D:collection/></D:resourcetype>");
            }
            Live::ResourceType => {
                w.raw("<D:resourcetype/>");
            }
            Live::SupportedLock if self.attr.is_some() => {
                w.raw(SUPPORTED_LOCK);
            }
            Live::SupportedLock => {
                w.raw("<D:supportedlock/>");
            }
            Live::LockDiscovery => {
                write_discovery(w, self.locks, &self.locks.covering(self.path, self.of));
            }
            which => {
                let Some(text) = self.text(which) else { return false };
                if *ns == DAV {
                    w.dav(local, &text);
                } else {
                    w.raw("<").raw(local).raw(" xmlns=\"").text(ns).raw("\">").text(&text);
                    w.raw("</").raw(local).raw(">");
                }
            }
        }
        true
    }

    /// Adds `response` (§14.24) with what was asked.
    pub fn respond(&self, out: &mut String, find: &Find) {
        let href = multi::href(self.path, self.is_collection());
        let mut w = Writer::new(out);
        w.raw("<D:response>").dav("href", &href);
        match find {
            Find::Names => self.names(&mut w),
            Find::All(more) => {
                let told = |live: &Live| Live::ALL.iter().any(|(l, _, _, all)| l == live && *all);
                let more = more.iter().filter(|name| {
                    Live::of(name).map_or(!self.dead.0.contains_key(*name), |live| !told(&live))
                });
                self.values(&mut w, more, true);
            }
            Find::These(names) => self.values(&mut w, names.iter(), false),
        }
        w.raw("</D:response>\n");
    }

    fn names(&self, w: &mut Writer<'_>) {
        w.raw("<D:propstat><D:prop>");
        for (_, ns, local, all) in Live::ALL {
            if *all {
                w.empty(&Name::new(ns, local));
            }
        }
        for name in self.dead.0.keys().filter(|name| Live::of(name).is_none()) {
            w.empty(name);
        }
        w.raw("</D:prop>");
        multi::write_status(w, 200);
        w.raw("</D:propstat>");
    }

    fn values<'n>(&self, w: &mut Writer<'_>, named: impl Iterator<Item = &'n Name>, all: bool) {
        let (mut there, mut missing) = (String::new(), Vec::new());
        let mut found = Writer::new(&mut there);
        if all {
            for (live, ..) in Live::ALL.iter().filter(|live| live.3) {
                self.write(&mut found, *live);
            }
            for (_, xml) in self.dead.0.iter().filter(|(name, _)| Live::of(name).is_none()) {
                found.raw(xml);
            }
        }
        for name in named {
            match (Live::of(name), self.dead.0.get(name)) {
                (Some(live), _) if self.write(&mut found, live) => {}
                (None, Some(xml)) => {
                    found.raw(xml);
                }
                _ => missing.push(name),
            }
        }
        // Nothing asked for is all there, too.
        if !there.is_empty() || missing.is_empty() {
            w.raw("<D:propstat><D:prop>").raw(&there).raw("</D:prop>");
            multi::write_status(w, 200);
            w.raw("</D:propstat>");
        }
        if !missing.is_empty() {
            w.raw("<D:propstat><D:prop>");
            for name in missing {
                w.empty(name);
            }
            w.raw("</D:prop>");
            multi::write_status(w, 404);
            w.raw("</D:propstat>");
        }
    }
}

/// Both kinds of write lock (§15.10).
const SUPPORTED_LOCK: &str = "<D:supportedlock>\
    <D:lockentry><D:lockscope><D:exclusive/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockentry>\
    <D:lockentry><D:lockscope><D:shared/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockentry></D:supportedlock>";

/// Adds `lockdiscovery` (§15.8). Tokens are no secret: they are of use only to who took them.
pub fn write_discovery(w: &mut Writer<'_>, locks: &Locks, held: &[Arc<Lock>]) {
    w.raw("<D:lockdiscovery>");
    for lock in held {
        let scope = if lock.exclusive { "exclusive" } else { "shared" };
        w.raw("<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope><D:").raw(scope);
        w.raw("/></D:lockscope>").dav("depth", if lock.deep { "infinity" } else { "0" });
        w.raw(&lock.owner).dav("timeout", &format!("Second-{}", locks.left_s(lock)));
        w.raw("<D:locktoken>").dav("href", &lock.token).raw("</D:locktoken><D:lockroot>");
        w.dav("href", &multi::href(&lock.root, false)).raw("</D:lockroot></D:activelock>");
    }
    w.raw("</D:lockdiscovery>");
}
