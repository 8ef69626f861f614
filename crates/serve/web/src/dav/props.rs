//! Live properties (RFC 4918 §15; quota: RFC 4331; those of Windows that are times of the file),
//! and the response about one resource.

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
        /// A live property.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum LiveProperty { $($which,)* }

        impl LiveProperty {
            /// All of them, and whether `allprop` includes them (§9.1: those of RFC 4918).
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

impl LiveProperty {
    /// The one of this name.
    pub fn of(name: &Name) -> Option<Self> {
        Self::ALL.iter().find(|(_, ns, local, _)| name.is(ns, local)).map(|live| live.0)
    }

    /// Whether it is part of `allprop`.
    fn is_in_all(self) -> bool {
        Self::ALL.get(self as usize).is_some_and(|row| row.3)
    }

    /// Whether PROPPATCH may set it: the times of the file, and what it is called for people.
    pub const fn may_be_set(self) -> bool {
        let time = matches!(self, Self::LastModified | Self::Win32LastModified);
        time || matches!(self, Self::Win32LastAccess | Self::DisplayName)
    }
}

/// What a response states about one resource.
pub struct Resource<'a> {
    /// Its path from the list of shares on.
    pub path: &'a [u8],
    /// The same as a URL, with a slash at its end if it is a collection.
    pub href: &'a str,
    /// The same by identity.
    pub of: &'a Lineage,
    /// Its attributes; `None` for the list of shares.
    pub attr: Option<&'a Attr>,
    /// Its dead properties.
    pub dead: &'a Dead,
    /// Space of its share, if requested.
    pub space: Option<Space>,
    /// All locks.
    pub locks: &'a Locks,
}

/// The requested properties, with the names looked up once and not for each resource.
pub struct PropertyRequest {
    find: Find,
    live: Vec<Option<LiveProperty>>,
}

impl PropertyRequest {
    /// The properties that a body requests.
    pub fn of(find: Find) -> Self {
        let names = match &find {
            Find::All(names) | Find::These(names) => names.as_slice(),
            Find::Names => &[],
        };
        let live = names.iter().map(LiveProperty::of).collect();
        Self { find, live }
    }

    /// As the body has it.
    pub fn find(&self) -> &Find {
        &self.find
    }
}

/// Whether these need more than attributes: dead properties (of which a name for people is one).
pub fn needs_dead(find: &Find) -> bool {
    match find {
        Find::All(_) | Find::Names => true,
        Find::These(names) => names
            .iter()
            .any(|name| matches!(LiveProperty::of(name), None | Some(LiveProperty::DisplayName))),
    }
}

/// Whether space is requested.
pub fn needs_space(find: &Find) -> bool {
    let asked = match find {
        Find::All(names) | Find::These(names) => names.as_slice(),
        Find::Names => &[],
    };
    let quota = |name| {
        matches!(
            LiveProperty::of(name),
            Some(LiveProperty::QuotaAvailable | LiveProperty::QuotaUsed)
        )
    };
    asked.iter().any(quota)
}

impl Resource<'_> {
    /// Whether it is a collection.
    pub fn is_collection(&self) -> bool {
        self.attr.is_none_or(|attr| attr.kind == FileType::Directory)
    }

    fn name(&self) -> &[u8] {
        self.path.rsplit(|b| *b == b'/').next().unwrap_or_default()
    }

    /// Adds the value of a property as text; false if it has none, or one that is no text.
    fn put_text(&self, which: LiveProperty, out: &mut String) -> bool {
        let file = self.attr.filter(|_| !self.is_collection());
        let done = match which {
            LiveProperty::CreationDate => self.attr.map(|attr| {
                let first = attr.birth.unwrap_or(attr.mtime.min(attr.ctime));
                date::put_iso(first.sec, out);
            }),
            LiveProperty::DisplayName => {
                Writer::new(out).text(&String::from_utf8_lossy(self.name()));
                Some(())
            }
            LiveProperty::ContentLength => file.map(|attr| put_number(attr.size, out)),
            // No type has a character that would have to be escaped.
            LiveProperty::ContentType => file.map(|_| out.push_str(kind::of(self.name()))),
            LiveProperty::ETag => file.map(|attr| select::put_etag(attr, "&quot;", out)),
            LiveProperty::LastModified | LiveProperty::Win32LastModified => {
                self.attr.map(|attr| date::put(attr.mtime.sec, out))
            }
            LiveProperty::Win32LastAccess => self.attr.map(|attr| date::put(attr.atime.sec, out)),
            LiveProperty::QuotaAvailable => {
                self.space.map(|space| put_number(space.avail_bytes, out))
            }
            LiveProperty::QuotaUsed => {
                let used = |space: Space| space.total_bytes.saturating_sub(space.free_bytes);
                self.space.map(|space| put_number(used(space), out))
            }
            LiveProperty::LockDiscovery
            | LiveProperty::ResourceType
            | LiveProperty::SupportedLock => None,
        };
        done.is_some()
    }

    /// Adds a property with its value; false if the resource does not have it.
    fn write(&self, out: &mut String, which: LiveProperty) -> bool {
        let Some((_, ns, local, _)) = LiveProperty::ALL.get(which as usize) else { return false };
        let mut w = Writer::new(out);
        match which {
            LiveProperty::DisplayName if self.own_name().is_some() => {
                w.raw(self.own_name().unwrap_or_default());
            }
            LiveProperty::ResourceType if self.is_collection() => {
                w.raw("<D:resourcetype><D:collection/></D:resourcetype>");
            }
            LiveProperty::ResourceType => {
                w.raw("<D:resourcetype/>");
            }
            LiveProperty::SupportedLock if self.attr.is_some() => {
                w.raw(SUPPORTED_LOCK);
            }
            LiveProperty::SupportedLock => {
                w.raw("<D:supportedlock/>");
            }
            LiveProperty::LockDiscovery => {
                write_discovery(&mut w, self.locks, &self.locks.covering(self.path, self.of));
            }
            which => return self.write_text(out, which, (ns, local)),
        }
        true
    }

    /// The same of a property that has text as its value.
    fn write_text(&self, out: &mut String, which: LiveProperty, (ns, local): (&str, &str)) -> bool {
        let start = out.len();
        let is_dav = *ns == *DAV;
        let mut w = Writer::new(out);
        if is_dav {
            w.raw("<D:").raw(local).raw(">");
        } else {
            w.raw("<").raw(local).raw(" xmlns=\"").text(ns).raw("\">");
        }
        if !self.put_text(which, out) {
            out.truncate(start);
            return false;
        }
        let prefix = if is_dav { "</D:" } else { "</" };
        Writer::new(out).raw(prefix).raw(local).raw(">");
        true
    }

    /// Its dead properties with names of their own.
    fn others(&self) -> impl Iterator<Item = (&Name, &String)> {
        self.dead.0.iter().filter(|(name, _)| LiveProperty::of(name).is_none())
    }

    /// The display name that a client has set, as XML.
    fn own_name(&self) -> Option<&str> {
        if self.dead.0.is_empty() {
            return None;
        }
        self.dead.0.get(&Name::new(DAV, "displayname")).map(String::as_str)
    }

    /// Adds `response` (§14.24) with the requested properties.
    pub fn respond(&self, out: &mut String, wanted: &PropertyRequest) {
        // Nothing in a URL has to be escaped in XML once it is percent-encoded.
        Writer::new(out).raw("<D:response><D:href>").raw(self.href).raw("</D:href>");
        match &wanted.find {
            Find::Names => self.names(&mut Writer::new(out)),
            Find::All(more) => {
                let more = more.iter().zip(&wanted.live).filter(|(name, live)| {
                    live.map_or_else(|| !self.dead.0.contains_key(*name), |live| !live.is_in_all())
                });
                self.values(out, more, true);
            }
            Find::These(names) => self.values(out, names.iter().zip(&wanted.live), false),
        }
        out.push_str("</D:response>\n");
    }

    fn names(&self, w: &mut Writer<'_>) {
        w.raw("<D:propstat><D:prop>");
        for (_, ns, local, all) in LiveProperty::ALL {
            if *all {
                w.empty(&Name::new(ns, local));
            }
        }
        for (name, _) in self.others() {
            w.empty(name);
        }
        w.raw("</D:prop>");
        multi::write_status(w, 200);
        w.raw("</D:propstat>");
    }

    fn values<'n>(
        &self,
        out: &mut String,
        named: impl Iterator<Item = (&'n Name, &'n Option<LiveProperty>)>,
        all: bool,
    ) {
        let (start, mut missing) = (out.len(), Vec::new());
        out.push_str("<D:propstat><D:prop>");
        let begun = out.len();
        if all {
            for (live, ..) in LiveProperty::ALL.iter().filter(|live| live.3) {
                self.write(out, *live);
            }
            self.others().for_each(|(_, xml)| out.push_str(xml));
        }
        for (name, live) in named {
            match (live, self.dead.0.get(name)) {
                (Some(live), _) if self.write(out, *live) => {}
                (None, Some(xml)) => out.push_str(xml),
                _ => missing.push(name),
            }
        }
        // Nothing asked for is all there, too.
        if out.len() > begun || missing.is_empty() {
            out.push_str("</D:prop>");
            multi::write_status(&mut Writer::new(out), 200);
            out.push_str("</D:propstat>");
        } else {
            out.truncate(start);
        }
        if missing.is_empty() {
            return;
        }
        let mut w = Writer::new(out);
        w.raw("<D:propstat><D:prop>");
        for name in missing {
            w.empty(name);
        }
        w.raw("</D:prop>");
        multi::write_status(&mut w, 404);
        w.raw("</D:propstat>");
    }
}

fn put_number(number: u64, out: &mut String) {
    use std::fmt::Write as _;
    let _ = write!(out, "{number}");
}

/// Both kinds of write lock (§15.10).
const SUPPORTED_LOCK: &str = "<D:supportedlock>\
    <D:lockentry><D:lockscope><D:exclusive/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockentry>\
    <D:lockentry><D:lockscope><D:shared/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockentry></D:supportedlock>";

/// Adds `lockdiscovery` (§15.8). Tokens are not secret: only the user that created the lock can use
/// its token.
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
