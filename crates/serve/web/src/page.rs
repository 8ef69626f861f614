//! The page around a listing, the form for signing in, and what they look like and do.
//!
//! Everything that is shown is escaped; a script runs only with the nonce of its page.

use std::fmt::Write as _;

use super::request::{Headers, percent_encode};
use super::response::Response;
use super::{state, status};
use files::VPath;

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// The mark on a ship's side.
const ICON: &str = include_str!("page/icon.svg");

/// The page around a listing.
pub struct Frame<'a> {
    /// The name of the appliance.
    pub appliance: &'a str,
    /// What lets our script run.
    pub nonce: &'a str,
    /// What is listed.
    pub path: &'a VPath,
    /// The name of the user; empty without sign-in.
    pub who: &'a str,
    /// Whether the user may add something here.
    pub writable: bool,
    /// Whether uploads in parts are taken.
    pub uploads: bool,
}

/// Text within a page, or within a quoted attribute of it.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A human-readable size: three digits and a unit.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1000.0 {
            let digits = usize::from(unit != "B" && value < 9.95);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} PiB")
}

/// The Content-Security-Policy of the pages.
pub fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    )
}

fn begin(out: &mut String, nonce: &str, title: &str) {
    let title = escape(title);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\
         <link rel=\"icon\" href=\"/.plimsoll/icon.svg\">\
         <link rel=\"stylesheet\" nonce=\"{nonce}\" href=\"/.plimsoll/page.css\">"
    );
}

/// Everything before the table.
pub fn head(out: &mut String, frame: &Frame<'_>) {
    let Frame { appliance, nonce, path, who, writable, uploads } = frame;
    let here =
        path.name().map_or_else(|| "Shares".into(), |n| String::from_utf8_lossy(n).into_owned());
    begin(out, nonce, &format!("{here} · {appliance}"));
    let _ = write!(
        out,
        "<script nonce=\"{nonce}\" src=\"/.plimsoll/page.js\" defer></script></head>\
         <body data-writable=\"{writable}\" data-uploads=\"{uploads}\"><header>\
         <nav aria-label=\"Path\">\
         <a class=\"home\" href=\"/\">{}</a>",
        escape(appliance)
    );
    let mut so_far = Vec::new();
    for part in path.parts() {
        so_far.push(b'/');
        so_far.extend_from_slice(part);
        let (href, name) = (percent_encode(&so_far), escape(&String::from_utf8_lossy(part)));
        let _ = write!(out, "<span class=\"sep\">/</span><a href=\"{href}/\">{name}</a>");
    }
    out.push_str("</nav>");
    if !who.is_empty() {
        let _ = write!(
            out,
            "<form class=\"who\" method=\"post\" action=\"/.plimsoll/sign-out\"><span>{}</span>\
             <button>Sign out</button></form>",
            escape(who)
        );
    }
    out.push_str("</header><main>");
    if !path.is_root() {
        out.push_str("<div class=\"tools\">");
        if *writable {
            out.push_str(
                "<button id=\"upload\" class=\"main\" hidden>Upload</button>\
                 <button id=\"folder\" hidden>New folder</button>\
                 <input id=\"files\" type=\"file\" multiple hidden>",
            );
        }
        out.push_str("<a class=\"button\" href=\"?archive\">Download all</a></div>");
    }
    out.push_str("<ul id=\"transfers\" aria-live=\"polite\"></ul>\n");
}

/// Everything after its rows: links to other pages, and what is shown if there are no rows.
pub fn foot(out: &mut String, links: &str, empty: Option<&str>) {
    out.push_str("</tbody></table>");
    if let Some(empty) = empty {
        let _ = write!(out, "<p class=\"empty\">{empty}</p>");
    }
    out.push_str(links);
    out.push_str("</main><div id=\"drop\" hidden>Drop to upload here</div></body></html>\n");
}

/// The form for signing in, with `to` as the next page.
pub fn sign_in(appliance: &str, to: &str, error: &str) -> Response {
    let nonce = state::token(12);
    let mut out = String::new();
    begin(&mut out, &nonce, &format!("Sign in · {appliance}"));
    let said = if error.is_empty() {
        String::new()
    } else {
        format!("<p class=\"error\" role=\"alert\">{}</p>", escape(error))
    };
    let (name, to) = (escape(appliance), escape(to));
    let _ = write!(
        out,
        "</head><body class=\"sign-in\"><main><h1>{name}</h1>{said}\
         <form method=\"post\" action=\"/.plimsoll/sign-in\">\
         <input type=\"hidden\" name=\"to\" value=\"{to}\">\
         <label>Name<input name=\"name\" autocomplete=\"username\" autocapitalize=\"none\" \
         autofocus required></label>\
         <label>Password<input name=\"password\" type=\"password\" \
         autocomplete=\"current-password\" required></label>\
         <button class=\"main\">Sign in</button></form></main></body></html>"
    );
    Response::new(200)
        .with("content-security-policy", policy(&nonce))
        .with("cache-control", "no-store")
        .bytes("text/html; charset=utf-8", out.into_bytes())
}

/// What belongs to the pages.
pub fn asset(path: &[u8], headers: &Headers) -> Response {
    let (kind, text) = match path {
        b"/.plimsoll/page.css" => ("text/css; charset=utf-8", STYLE),
        b"/.plimsoll/page.js" => ("text/javascript; charset=utf-8", SCRIPT),
        b"/.plimsoll/icon.svg" => ("image/svg+xml", ICON),
        _ => return status::plain(404, ""),
    };
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let etag = format!("\"{}\"", hash.get(..16).unwrap_or_default());
    let known = headers.get("if-none-match") == Some(etag.as_bytes());
    let answer =
        if known { Response::new(304) } else { Response::new(200).bytes(kind, text.as_bytes()) };
    answer.with("etag", etag).with("cache-control", "no-cache")
}

#[cfg(test)]
mod tests;
