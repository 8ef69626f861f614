//! What is in a file of the back end in memory: pages, names, a target.

use std::collections::BTreeMap;

/// Bytes of a page: what a hole's neighbour costs.
const PAGE: usize = 4096;

/// Content by kind of file.
pub enum Body {
    File(Pages),
    Directory(Directory),
    Link(Vec<u8>),
    Special,
}

/// A file's data; pages never written to are holes.
#[derive(Default)]
pub struct Pages {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

impl Pages {
    /// Bytes of memory in use.
    pub fn used(&self) -> u64 {
        (self.pages.len() * PAGE) as u64
    }

    /// Bytes of memory that a write of `len` bytes at `offset` may take beyond those in use.
    pub fn needs(&self, offset: u64, len: usize) -> u64 {
        let (first, last) = (offset / PAGE as u64, (offset + len as u64) / PAGE as u64);
        let there = self.pages.range(first..=last).count() as u64;
        (last - first + 1 - there) * PAGE as u64
    }

    /// Copies from `offset` on; the caller has limited `out` to the file's size.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        let mut at = offset;
        let mut rest = out;
        while !rest.is_empty() {
            let within = (at % PAGE as u64) as usize;
            let len = rest.len().min(PAGE - within);
            let (part, tail) = rest.split_at_mut(len);
            match self.pages.get(&(at / PAGE as u64)) {
                Some(page) => part.copy_from_slice(&page[within..within + len]),
                None => part.fill(0),
            }
            at += len as u64;
            rest = tail;
        }
    }

    /// Copies `data` to `offset` on.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let within = (at % PAGE as u64) as usize;
            let len = rest.len().min(PAGE - within);
            let (part, tail) = rest.split_at(len);
            let page = self.pages.entry(at / PAGE as u64).or_insert_with(|| Box::new([0; PAGE]));
            page[within..within + len].copy_from_slice(part);
            at += len as u64;
            rest = tail;
        }
    }

    /// Makes sure that there is a page for every byte.
    pub fn reserve(&mut self, offset: u64, len: u64) {
        let Some(last) = len.checked_sub(1).map(|more| offset + more) else { return };
        for page in offset / PAGE as u64..=last / PAGE as u64 {
            self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE]));
        }
    }

    /// Makes a hole from `start` up to, not including, `end`.
    pub fn punch(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let page = PAGE as u64;
        let (first, last) = (start / page, (end - 1) / page);
        let inside: Vec<_> = self.pages.range(first..=last).map(|(at, _)| *at).collect();
        for at in inside {
            let from = start.saturating_sub(at * page).min(page) as usize;
            let upto = (end - at * page).min(page) as usize;
            if (from, upto) == (0, PAGE) {
                self.pages.remove(&at);
            } else if let Some(bytes) = self.pages.get_mut(&at) {
                bytes[from..upto].fill(0);
            }
        }
    }

    /// The first byte from `offset` on that lies in a page.
    pub fn data_from(&self, offset: u64) -> Option<u64> {
        let (at, _) = self.pages.range(offset / PAGE as u64..).next()?;
        Some((at * PAGE as u64).max(offset))
    }

    /// The first byte from `offset` on that lies in no page.
    pub fn hole_from(&self, offset: u64) -> u64 {
        let mut at = offset / PAGE as u64;
        while self.pages.contains_key(&at) {
            at += 1;
        }
        (at * PAGE as u64).max(offset)
    }

    /// Forgets everything from `size` on.
    pub fn cut(&mut self, size: u64) {
        let (page, within) = (size / PAGE as u64, (size % PAGE as u64) as usize);
        let keep_part = u64::from(within > 0);
        self.pages.split_off(&(page + keep_part));
        if within > 0
            && let Some(last) = self.pages.get_mut(&page)
        {
            last[within..].fill(0);
        }
    }
}

/// Names, by name and in the order in which they came: their numbers are the cookies.
#[derive(Default)]
pub struct Directory {
    by_name: BTreeMap<Vec<u8>, (u64, u64)>,
    by_cookie: BTreeMap<u64, Vec<u8>>,
    last: u64,
}

/// Cookies of `.` and `..`; the others follow.
pub const DOTS: u64 = 2;

impl Directory {
    pub fn get(&self, name: &[u8]) -> Option<u64> {
        self.by_name.get(name).map(|(ino, _)| *ino)
    }

    pub fn insert(&mut self, name: &[u8], ino: u64) {
        self.remove(name);
        self.last = self.last.max(DOTS) + 1;
        self.by_name.insert(name.to_vec(), (ino, self.last));
        self.by_cookie.insert(self.last, name.to_vec());
    }

    pub fn remove(&mut self, name: &[u8]) -> Option<u64> {
        let (ino, cookie) = self.by_name.remove(name)?;
        self.by_cookie.remove(&cookie);
        Some(ino)
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Cookie, name and inode of all names after a cookie.
    pub fn after(&self, cookie: u64) -> impl Iterator<Item = (u64, &[u8], u64)> {
        let from = cookie.max(DOTS).saturating_add(1);
        self.by_cookie.range(from..).filter_map(|(cookie, name)| {
            let ino = self.get(name)?;
            Some((*cookie, name.as_slice(), ino))
        })
    }
}
