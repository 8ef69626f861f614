//! Text in the full feature phase (RFC 7143 §11.10, §11.11): SendTargets, and the few keys that may
//! still be negotiated.

use std::net::SocketAddr;

use base::limits::ISCSI_TEXT_MAX;
use wire::iscsi::keys::Key;
use wire::iscsi::negotiate::take_in_full_feature;
use wire::iscsi::pairs::{self, Collector, put};
use wire::iscsi::reject::RejectReason;
use wire::iscsi::text::{TextRequest, TextResponse};
use wire::iscsi::{Bhs, RESERVED_TAG};

use super::conn::stream::Wire;
use super::ended::Ended;
use super::exchange::Exchange;
use super::session::Session;
use super::targets::{PORTAL_GROUP, Target};

impl Session {
    /// Takes text, and answers it.
    ///
    /// # Errors
    /// What came is no text.
    pub fn text(
        &mut self,
        wire: &mut Wire,
        request: &TextRequest<'_>,
        bhs: &Bhs,
    ) -> Result<(), Ended> {
        if !self.may_take(wire, (request.immediate, request.sn.cmd_sn), bhs) {
            return Ok(());
        }
        if request.immediate {
            self.immediate = self.immediate.saturating_sub(1);
        } else {
            self.window.end();
        }
        let goes_on = self.text.take().filter(|exchange| exchange.tag == request.ttt);
        let mut exchange = match goes_on {
            Some(exchange) => exchange,
            None if request.ttt == RESERVED_TAG => {
                let (tag, collector) = (self.tag(), Collector::new(ISCSI_TEXT_MAX));
                let held = self.core.budget.hold(0);
                Exchange { tag, collector, answer: Vec::new(), sent: 0, held }
            }
            None => {
                self.reject(wire, RejectReason::PROTOCOL_ERROR, bhs);
                return Ok(());
            }
        };
        if exchange.is_sent() {
            (exchange.answer, exchange.sent) = (Vec::new(), 0);
            let pushed = exchange.collector.push(request.data, request.to_be_continued);
            match pushed {
                Err(_) => {
                    self.reject(wire, RejectReason::PROTOCOL_ERROR, bhs);
                    return Err(Ended::Broken);
                }
                Ok(None) => {}
                Ok(Some(text)) => {
                    let Some(answer) = self.answer(text) else {
                        self.reject(wire, RejectReason::PROTOCOL_ERROR, bhs);
                        return Err(Ended::Broken);
                    };
                    exchange.answer = answer;
                }
            }
        }
        exchange.account();
        self.send_text(wire, request, exchange);
        Ok(())
    }

    /// Sends as much of a response as fits into one PDU. An exchange ends only when the initiator
    /// has set the F bit (§11.11.1).
    fn send_text(&mut self, wire: &mut Wire, request: &TextRequest<'_>, mut exchange: Exchange) {
        let start = exchange.sent;
        let most = (self.parameters.max_send_data as usize).max(1);
        exchange.sent = exchange.answer.len().min(start + most);
        let to_be_continued = !exchange.is_sent();
        let goes_on = to_be_continued || !request.is_final;
        let sn = self.status_sn();
        wire.put(&TextResponse {
            is_final: !goes_on,
            to_be_continued,
            lun: 0,
            itt: request.itt,
            ttt: if goes_on { exchange.tag } else { RESERVED_TAG },
            sn,
            data: exchange.answer.get(start..exchange.sent).unwrap_or_default(),
        });
        self.text = goes_on.then_some(exchange);
    }

    /// The answer to whole text; `None` if it is none. SendTargets is asked once (appendix C): its
    /// answer is long, and text has room for the question thousands of times.
    fn answer(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let pairs = pairs::parse(text).ok()?;
        if pairs::has_key_twice(&pairs) {
            return None;
        }
        for pair in pairs {
            if pair.key == Key::SendTargets.name() {
                self.send_targets(pair.value, &mut out);
            } else if let Some(bytes) = take_in_full_feature(pair, &mut out) {
                self.parameters.max_send_data = bytes;
            }
        }
        Some(out)
    }

    /// SendTargets (appendix C): all that the initiator may use in a discovery session, or one by
    /// its name; in a session of a target that one only.
    fn send_targets(&self, which: &str, out: &mut Vec<u8>) {
        match &self.joined {
            Some(joined) if which.is_empty() || which == joined.target().name => {
                self.put_target(joined.target(), out);
            }
            Some(_) => {}
            None => {
                let initiator = &self.initiator;
                for target in self.core.iscsi.targets.all() {
                    let is_meant = which == "All" || which == target.name;
                    if is_meant && target.is_seen_by(initiator) {
                        self.put_target(&target, out);
                    }
                }
            }
        }
    }

    fn put_target(&self, target: &Target, out: &mut Vec<u8>) {
        put(out, Key::TargetName.name(), &target.name);
        let settings = self.core.iscsi.settings();
        let came = [self.addresses.1];
        let portals = if settings.portals.is_empty() { &came[..] } else { &settings.portals };
        for portal in portals {
            put(out, Key::TargetAddress.name(), &address(*portal));
        }
    }
}

/// A portal as TargetAddress has it (RFC 7143 §13.8).
fn address(portal: SocketAddr) -> String {
    let portal = SocketAddr::new(portal.ip().to_canonical(), portal.port());
    format!("{portal},{PORTAL_GROUP}")
}
