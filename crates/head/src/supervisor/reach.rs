//! Looks at the links and probes of resources, a thread for each, so that one that is silent delays
//! no other.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use host_network::resource_address::reach::Reach;

use super::Message;
use crate::config::{Config, Resource};
use crate::limits::{HEAD_PROBE_TIMEOUT, HEAD_REACH_EVERY};
use crate::reach::Watch;

/// Watches all resources, and reports each change.
pub(super) fn watch(config: &Arc<Config>, reports: &Sender<Message>) -> io::Result<()> {
    for resource in &config.resources {
        let (mut reach, mut watch) = (Reach::open()?, Watch::default());
        let (resource, reports) = (resource.clone(), reports.clone());
        let work = move || {
            loop {
                if watch.enter(look(&mut reach, &resource)) {
                    let cut = watch.cut().map(str::to_owned);
                    if reports.send(Message::Reach(resource.name.clone(), cut)).is_err() {
                        return;
                    }
                }
                std::thread::sleep(HEAD_REACH_EVERY);
            }
        };
        std::thread::Builder::new().name("reach".to_owned()).spawn(work)?;
    }
    Ok(())
}

/// Whether clients can reach a resource at this head now.
fn look(reach: &mut Reach, resource: &Resource) -> Result<(), String> {
    let link = &resource.link;
    if !reach.has_carrier(link)? {
        return Err(format!("the link {link} has no carrier"));
    }
    let mut why = None;
    for host in &resource.probe {
        match reach.answers(link, *host, HEAD_PROBE_TIMEOUT) {
            Ok(true) => return Ok(()),
            Ok(false) => why = Some(format!("no probe answers on {link}")),
            Err(e) => why = Some(format!("no probe answers on {link}; {host}: {e}")),
        }
    }
    why.map_or(Ok(()), Err)
}
