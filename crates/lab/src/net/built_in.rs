//! Profiles of this program: those of `jobs/lso-*.xml`, and short forms that are made for any
//! number of hosts.

use lab_net::profile::Profile;
use lab_net::read::{Variables, read};

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

/// Means that the source of these jobs published (2008, 15 clients of 1 Gbit/s), and the shares of
/// three kinds of threads: the one that writes, a worker, the interrupt that handles ACKs.
const PUBLISHED: [(&str, &str, [u32; 3]); 5] = [
    ("lso-stream-64k", "40 KiB", [12, 0, 88]),
    ("lso-request", "60 KiB", [70, 0, 30]),
    ("lso-request-1", "65.5 KB", [98, 0, 2]),
    ("lso-stream-1k", "10.6 KiB", [74, 1, 24]),
    ("lso-many", "5 KiB (2,000 connections a client)", [34, 37, 29]),
];

/// The question that a built-in profile answers.
pub fn answers(name: &str) -> &'static str {
    let job = BUILT_IN.iter().find(|(own, ..)| *own == name).map(|(_, answers, _)| *answers);
    job.unwrap_or("How fast is the network between two ends?")
}

/// The figures that the source publishes for a job, and where today's Linux differs.
pub fn published(name: &str) -> Option<String> {
    let (_, mean, [sender, worker, interrupt]) = PUBLISHED.iter().find(|(own, ..)| *own == name)?;
    Some(format!(
        "the source saw segments of {mean} on average: {sender} % by the thread that writes \
         (sender), {worker} % by a worker (none in Linux; small-queue and the timers are closest), \
         {interrupt} % by the interrupt (ack). In Linux 64 KiB are 45 segments of 1,448 bytes and \
         a rest of 376 bytes: the plain mean of replies of 64 KiB is half of the mean by bytes. \
         With BBR the pacing timer is a context of its own"
    ))
}

/// Variables of built-in profiles that have a value without `--set`.
const DEFAULTS: [(&str, &str); 6] = [
    ("threads", "4"),
    ("size", "64k"),
    ("request", "64"),
    ("duration", "10s"),
    ("proto", "tcp"),
    ("connections", "100"),
];

/// Short forms.
pub const FORMS: [&str; 3] = ["stream", "request", "connect"];

/// Gives the variables of built-in profiles that have none a value.
pub fn defaults(variables: &mut Variables) {
    for (name, value) in DEFAULTS {
        variables.set.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// A built-in profile with both ends on this machine.
///
/// # Errors
/// There is none of this name, or a setting is wrong.
pub fn here(name: &str, settings: &[String]) -> Result<Profile, String> {
    let text = text(name, 1).ok_or_else(|| format!("there is no network profile {name:?}"))?;
    let mut variables = Variables::of(settings)?;
    variables.local_hosts = true;
    defaults(&mut variables);
    read(name, &text, &variables).map_err(|e| e.to_string())
}

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
