//! Methods and header fields, the same for HTTP/1.1 and HTTP/2.

use base::limits::HTTP_HEADERS_MAX;

macro_rules! methods {
    ($($name:ident = $text:literal,)*) => {
        /// A method; its number is that of its operation in statistics (`probe::labels`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Method { $($name,)* }

        impl Method {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// As it stands in a request; [`Method::Other`] is no method.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

methods! {
    Other = "OTHER",
    Get = "GET",
    Head = "HEAD",
    Post = "POST",
    Put = "PUT",
    Delete = "DELETE",
    Connect = "CONNECT",
    Options = "OPTIONS",
    Trace = "TRACE",
    Patch = "PATCH",
    Propfind = "PROPFIND",
    Proppatch = "PROPPATCH",
    Mkcol = "MKCOL",
    Copy = "COPY",
    Move = "MOVE",
    Lock = "LOCK",
    Unlock = "UNLOCK",
    Report = "REPORT",
    Search = "SEARCH",
    Acl = "ACL",
}

impl Method {
    /// The method of this name; names are case-sensitive (RFC 9110 §9.1).
    pub fn parse(name: &[u8]) -> Self {
        let known = Self::ALL.iter().skip(1).find(|method| method.name().as_bytes() == name);
        known.copied().unwrap_or(Self::Other)
    }

    /// Whether it is a safe method (RFC 9110 §9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Propfind)
    }
}

/// Header fields in the order in which they came. Names are in lower case; values are bytes without
/// white space around them. One block of memory holds them all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers {
    text: Vec<u8>,
    /// Where each field begins, where its name ends, and where its value ends.
    fields: Vec<(usize, usize, usize)>,
}

impl Headers {
    /// Adds a field; false when there are [`HTTP_HEADERS_MAX`] already.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> bool {
        if self.fields.len() >= HTTP_HEADERS_MAX {
            return false;
        }
        let start = self.text.len();
        self.text.extend(name.iter().map(u8::to_ascii_lowercase));
        let middle = self.text.len();
        self.text.extend_from_slice(value.trim_ascii());
        self.fields.push((start, middle, self.text.len()));
        true
    }

    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|&(start, middle, end)| {
            let part = |from, to| self.text.get(from..to).unwrap_or_default();
            (part(start, middle), part(middle, end))
        })
    }

    /// The values of all fields of this name, which is in lower case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(n, _)| *n == name.as_bytes()).map(|(_, value)| value)
    }

    /// The value of the first field of this name, which is in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(n, _)| *n == name.as_bytes()).map(|(_, value)| value)
    }

    /// As [`Headers::get`], if the value is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The members of all lists of this name (RFC 9110 §5.6.1), for lists without quoted commas.
    pub fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let values = self.all(name).flat_map(|value| value.split(|b| *b == b','));
        values.map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
    }

    /// Whether a list of this name has this member, in whatever case.
    pub fn has(&self, name: &str, member: &str) -> bool {
        self.members(name).any(|m| m.eq_ignore_ascii_case(member.as_bytes()))
    }
}

#[cfg(test)]
mod tests;
