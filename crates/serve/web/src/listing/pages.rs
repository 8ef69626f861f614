//! The pages of a long listing: which one is shown, and the links to the others.

use std::fmt::Write as _;

use base::limits::{HTTP_LISTING_PAGE, HTTP_LISTING_SORTED_MAX};

use super::{By, Order};
use crate::request::Request;

/// Which part of a listing a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// All of it.
    One,
    /// Of sorted entries the page of this number, from 1 on, of `pages` pages and `entries`
    /// entries.
    Sorted { page: usize, pages: usize, entries: usize },
    /// Entries in the order of the file system: whether they begin with the first, and the cookie
    /// behind which the next page continues.
    Unsorted { first: bool, next: Option<u64> },
}

/// The query of the URL.
pub(super) struct PageRequest {
    /// The page of sorted entries.
    page: usize,
    /// The cookie behind which a page of unsorted ones begins.
    pub(super) behind: Option<u64>,
}

impl PageRequest {
    pub(super) fn of(request: &Request<'_>) -> Self {
        let number =
            |name| request.target.parameter(name).and_then(|text| text.parse::<u64>().ok());
        let page = number("page").and_then(|page| usize::try_from(page).ok()).unwrap_or(1);
        Self { page, behind: number("behind").filter(|cookie| *cookie != 0) }
    }
}

impl Pages {
    /// The requested page of `entries` sorted entries, or the last; and its first entry.
    pub(super) fn sorted(asked: &PageRequest, entries: usize) -> (Self, usize) {
        let pages = entries.div_ceil(HTTP_LISTING_PAGE);
        if pages <= 1 {
            return (Self::One, 0);
        }
        let page = asked.page.clamp(1, pages);
        (Self::Sorted { page, pages, entries }, (page - 1) * HTTP_LISTING_PAGE)
    }

    /// Whether the entries are sorted as requested.
    pub(super) fn are_sorted(self) -> bool {
        !matches!(self, Self::Unsorted { .. })
    }

    /// Whether there is nothing before what is shown.
    pub(super) fn is_first(self) -> bool {
        match self {
            Self::One => true,
            Self::Sorted { page, .. } => page == 1,
            Self::Unsorted { first, .. } => first,
        }
    }

    /// Adds the links to the other pages, if there are any.
    pub(super) fn links(self, order: Order, out: &mut String) {
        if self == Self::One || matches!(self, Self::Unsorted { first: true, next: None }) {
            return;
        }
        out.push_str("<nav class=\"pages\" aria-label=\"Pages\">");
        match self {
            Self::One => {}
            Self::Sorted { page, pages, entries } => {
                let address = |page: usize| {
                    let down = if order.down { "&amp;order=down" } else { "" };
                    let sort = match order.by {
                        By::Name => "name",
                        By::Size => "size",
                        By::Time => "time",
                    };
                    format!("?page={page}&amp;sort={sort}{down}")
                };
                link(out, "First", "first", (page > 1).then(|| address(1)));
                link(out, "Previous", "prev", (page > 1).then(|| address(page - 1)));
                let _ = write!(out, "<span>Page {page} of {pages}, {entries} entries</span>");
                link(out, "Next", "next", (page < pages).then(|| address(page + 1)));
                link(out, "Last", "last", (page < pages).then(|| address(pages)));
            }
            Self::Unsorted { first, next } => {
                link(out, "First", "first", (!first).then(|| "?".to_owned()));
                let _ = write!(
                    out,
                    "<span>More than {HTTP_LISTING_SORTED_MAX} entries, in the order of the file \
                     system</span>"
                );
                link(out, "Next", "next", next.map(|cookie| format!("?behind={cookie}")));
            }
        }
        out.push_str("</nav>\n");
    }
}

/// A link; without an address its text, so that the others stay where they are.
fn link(out: &mut String, text: &str, rel: &str, address: Option<String>) {
    let _ = match address {
        Some(address) => {
            write!(out, "<a class=\"button\" rel=\"{rel}\" href=\"{address}\">{text}</a>")
        }
        None => write!(out, "<a class=\"button\" role=\"link\" aria-disabled=\"true\">{text}</a>"),
    };
}
