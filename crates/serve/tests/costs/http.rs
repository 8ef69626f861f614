//! Requests of HTTP/1.1 and WebDAV.

use base::random::{Random, SeededRandom};
use vfs::share::Service;

use crate::scene::Scene;
use crate::search::worst;
use crate::stand::{Client, Stand, open};
use crate::tree::{self, one_of, path, up_to};
use base::limits::PEER_PATIENCE;

/// A client that comes again when the server has closed the connection.
struct HttpClient {
    stand: Stand,
    client: Client,
}

/// A request: its line, its header fields and its body.
pub type HttpRequest = (String, Vec<String>, Vec<u8>);

impl HttpClient {
    fn ask(&mut self, (line, fields, body): &HttpRequest) -> u16 {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let reply = self.client.ask(line, &fields, body);
        if reply.header("connection") == "close" {
            self.client = self.stand.client();
        }
        reply.status
    }
}

fn target(random: &mut SeededRandom) -> String {
    format!(
        "/share/{}",
        path(random).replace('%', "%25").replace(' ', "%20").replace('é', "%C3%A9")
    )
}

/// Reads: ranges, conditions, listings, archives.
fn read(random: &mut SeededRandom) -> HttpRequest {
    let mut fields = Vec::new();
    let mut line = format!("GET {}", target(random));
    match random.below(6) {
        0 => {
            let count = up_to(random, 2_000);
            let overlap = random.below(3);
            let range = |n: u64| match overlap {
                0 => format!("{}-{}", n * 3 % 50_000, n * 5 % 70_000),
                1 => format!("{n}-"),
                _ => format!("-{}", 1 + n * 4096),
            };
            let ranges: Vec<_> = (0..count).map(range).collect();
            line = format!("GET /share/{}", one_of(random, &["sparse", "holes", "small"]));
            fields.push(format!("Range: bytes={}", ranges.join(",")));
            if count > 32 {
                // More are the whole file.
                line = "GET /share/small".to_owned();
            }
        }
        1 => {
            let field = one_of(random, &["If-Match", "If-None-Match", "If-Range", "Accept"]);
            let tags = "\"0-0-0\", W/\"1\",".repeat(up_to(random, 1_500) as usize);
            fields.push(format!("{field}: {tags}\"x\""));
            line = "GET /share/small".to_owned();
        }
        2 if random.below(40) == 0 => {
            let order =
                one_of(random, &["sort=size", "sort=time&order=down", "page=5", "behind=9"]);
            line = format!("GET /share/large/?{order}");
        }
        2 => line = format!("GET /share/{}/?sort=size", one_of(random, &["few", "many", "links"])),
        3 if random.below(10) == 0 => {
            line = format!("GET /share/{}?archive", one_of(random, &["links", "deep", "few"]));
        }
        _ => {
            for n in 0..up_to(random, 90) {
                fields.push(format!("X-{n}: {}", "v".repeat(up_to(random, 200) as usize)));
            }
        }
    }
    (line, fields, Vec::new())
}

/// `If` with many resources and conditions.
fn conditions(random: &mut SeededRandom) -> String {
    let mut header = String::from("If:");
    let step = one_of(random, &["links/long/", "links/longer/", "links/up/", "deep/d/../../"]);
    for n in 0..1 + up_to(random, 250) {
        let count = up_to(random, 20) as usize;
        let resource = format!("/share/{}small?{n}", step.repeat(count));
        let state = one_of(random, &["[\"x\"]", "<opaquelocktoken:1>", "Not <DAV:no-lock>"]);
        if header.len() + resource.len() > 15_000 {
            break;
        }
        header.push_str(&format!(" <{resource}> ({state} [\"1\"])"));
    }
    header
}

fn xml(random: &mut SeededRandom) -> String {
    let spaces = up_to(random, 60);
    let declared: String = (0..spaces).map(|n| format!(" xmlns:n{n}=\"u:{n}\"")).collect();
    match random.below(4) {
        0 => {
            let prop = |n: u64| format!("<n{}:p{n}/>", n % spaces.max(1));
            let props: String = (0..up_to(random, 255)).map(prop).collect();
            let declared = if spaces == 0 { " xmlns:n0=\"u:0\"" } else { &declared };
            format!("<D:propfind xmlns:D=\"DAV:\"{declared}><D:prop>{props}</D:prop></D:propfind>")
        }
        1 => {
            let depth = up_to(random, 40) as usize;
            let (open, close) = ("<a>".repeat(depth), "</a>".repeat(depth));
            format!("<D:propfind xmlns:D=\"DAV:\"><D:allprop/>{open}{close}</D:propfind>")
        }
        2 => {
            let text = "&amp;&#65;]]&gt;".repeat(up_to(random, 9_000) as usize);
            format!("<D:propfind xmlns:D=\"DAV:\"><D:propname/><!--{text}--></D:propfind>")
        }
        _ => {
            let attribute = |n: u64| format!(" a{n}=\"{n}\"");
            let attributes: String = (0..up_to(random, 63)).map(attribute).collect();
            let elements = format!("<x{attributes}/>").repeat(up_to(random, 300) as usize);
            format!("<D:propfind xmlns:D=\"DAV:\"{declared}><D:allprop/>{elements}</D:propfind>")
        }
    }
}

/// What WebDAV adds.
fn dav(random: &mut SeededRandom) -> HttpRequest {
    let depth = format!("Depth: {}", one_of(random, &["0", "1", "infinity"]));
    let at = match random.below(3) {
        0 => target(random),
        _ => format!("/share/{}", one_of(random, &["few/", "many/", "links/", "hidden/", "work/"])),
    };
    match random.below(6) {
        0 | 1 if at.contains("large") => {
            (format!("PROPFIND {at}"), vec!["Depth: 0".to_owned()], xml(random).into())
        }
        0 | 1 => (format!("PROPFIND {at}"), vec![depth], xml(random).into()),
        2 => {
            let line =
                format!("{} /share/small", one_of(random, &["PROPPATCH", "UNLOCK", "DELETE"]));
            (line, vec![conditions(random)], Vec::new())
        }
        3 => {
            let set =
                |n: u64| format!("<p{n} xmlns=\"u:{}\">{}</p{n}>", n % 9, "v".repeat(n as usize));
            let props: String = (0..up_to(random, 255)).map(set).collect();
            let body = format!(
                "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop>{props}</D:prop></D:set>\
                 </D:propertyupdate>"
            );
            ("PROPPATCH /share/work/".to_owned(), Vec::new(), body.into())
        }
        4 => {
            let body = b"<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:shared/></D:lockscope>\
                <D:locktype><D:write/></D:locktype></D:lockinfo>";
            let line = format!("LOCK /share/work/l{}", random.below(600));
            (line, vec!["Depth: infinity".to_owned()], body.to_vec())
        }
        _ => {
            let method = one_of(random, &["COPY", "MOVE", "DELETE", "MKCOL"]);
            let fields =
                vec![format!("Destination: {}", target(random)), "Overwrite: F".to_owned()];
            (format!("{method} /share/work/{}", up_to(random, 600)), fields, Vec::new())
        }
    }
}

/// What a seed makes.
pub fn candidate(random: &mut SeededRandom) -> HttpRequest {
    match random.below(2) {
        0 => read(random),
        _ => dav(random),
    }
}

#[test]
fn of_http() {
    let folder = tree::new();
    let scene = Scene::in_folder(Service::Http, &folder, PEER_PATIENCE);
    let stand = Stand::over(scene, open());
    let mut http = HttpClient { client: stand.client(), stand };
    worst("http", |random: &mut SeededRandom| {
        let asked = candidate(random);
        let status = http.ask(&asked);
        format!("{status} {} {:?} {} bytes", asked.0, asked.1, asked.2.len())
    });
}
