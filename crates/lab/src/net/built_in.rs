//! Profiles of this program: those of `jobs/lso-*.xml`, and short forms that are made for any
//! number of hosts.

/// Jobs, with what each answers.
pub const BUILT_IN: [(&str, &str, &str); 5] = [
    (
        "lso-stream-64k",
        "How large are the segments of streams with 64 KiB writes, one connection a client?",
        include_str!("../../../../jobs/lso-stream-64k.xml"),
    ),
    (
        "lso-request",
        "How large are they with requests and replies of 64 KiB, one connection a client?",
        include_str!("../../../../jobs/lso-request.xml"),
    ),
    (
        "lso-request-1",
        "How large are they with requests and replies of 64 KiB and a single client?",
        include_str!("../../../../jobs/lso-request-1.xml"),
    ),
    (
        "lso-stream-1k",
        "How large are they with streams of 1 KiB writes, one connection a client?",
        include_str!("../../../../jobs/lso-stream-1k.xml"),
    ),
    (
        "lso-many",
        "How large are they with streams over many connections a client?",
        include_str!("../../../../jobs/lso-many.xml"),
    ),
];

/// Variables of built-in profiles that have a value without `--set`.
pub const DEFAULTS: [(&str, &str); 6] = [
    ("threads", "4"),
    ("size", "64k"),
    ("request", "64"),
    ("duration", "10s"),
    ("proto", "tcp"),
    ("connections", "100"),
];

/// Short forms.
pub const FORMS: [&str; 3] = ["stream", "request", "connect"];

/// The text of a built-in profile; a short form has a group for each host.
pub fn text(name: &str, hosts: usize) -> Option<String> {
    if let Some((.., text)) = BUILT_IN.iter().find(|(own, ..)| *own == name) {
        return Some((*text).to_owned());
    }
    let open = |n: usize| {
        format!("<flowop type=\"connect\" options=\"remotehost=$h{n} protocol=$proto\"/>")
    };
    let close = "<flowop type=\"disconnect\"/>";
    let load = match name {
        "stream" => "<flowop type=\"write\" options=\"size=$size\"/>",
        "request" => {
            "<flowop type=\"read\" options=\"size=$request\"/>\n      \
             <flowop type=\"write\" options=\"size=$size\"/>"
        }
        "connect" => "",
        _ => return None,
    };
    let group = |n: usize| match load {
        "" => format!(
            "  <group nthreads=\"$threads\">\n    <transaction duration=\"$duration\">\n      \
             {}\n      {close}\n    </transaction>\n  </group>\n",
            open(n)
        ),
        load => format!(
            "  <group nthreads=\"$threads\">\n    <transaction>{}</transaction>\n    \
             <transaction duration=\"$duration\">\n      {load}\n    </transaction>\n    \
             <transaction>{close}</transaction>\n  </group>\n",
            open(n)
        ),
    };
    let groups: String = (1..=hosts.max(1)).map(group).collect();
    Some(format!("<profile name=\"{name}\">\n{groups}</profile>\n"))
}

#[cfg(test)]
mod tests;
