//! Tests of what a connection holds.

use std::sync::Arc;

use base::limits::{ISCSI_DATA_MAX, ISCSI_LOGIN_DATA_MAX};
use engine::exec::{self, Engine};
use engine::pool::{Pool, PoolLimits};
use engine::transport::Budgets;
use engine::transport::budget::Limits;
use probe::hub::{Hub, HubOptions};
use probe::op::OpRecord;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use vfs::flush::FlushGroup;
use wire::iscsi::nop::NopIn;
use wire::iscsi::{RESERVED_TAG, TargetSn};

use super::*;
use crate::Iscsi;
use crate::settings::Settings;

fn core() -> Rc<Core> {
    let hub = Hub::new(HubOptions { cores: 1, recorder_bytes: 1 << 20 });
    let budgets = Arc::new(Budgets::new(Limits::default()));
    let pool = Pool::start(PoolLimits::default()).expect("threads");
    let flush = Arc::new(FlushGroup::start().expect("threads"));
    let engine = Engine::new(pool, flush, budgets, hub);
    let iscsi = Iscsi::new(Arc::clone(&engine), Settings::default());
    Rc::new(Core { core: exec::Core::new(0, 1, engine), iscsi })
}

/// Both ends of a connection.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("bound");
    let client = TcpStream::connect(at).await.expect("it listens");
    let (server, _) = listener.accept().await.expect("it comes");
    (client, server)
}

fn on_a_core(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn connections_hold_little_before_login() {
    on_a_core(async {
        let (mut client, stream) = pair().await;
        let mut wire = Wire::new(&core(), stream, ISCSI_LOGIN_DATA_MAX);
        client.write_all(&[0; 100]).await.expect("sent");
        assert!(wire.receive().await.expect("it comes") > 0);
        assert!(wire.held.bytes() <= 2 * ISCSI_LOGIN_DATA_MAX, "{}", wire.held.bytes());
        wire.set(Digests::default(), ISCSI_DATA_MAX);
        client.write_all(&[0; 100]).await.expect("sent");
        assert!(wire.receive().await.expect("it comes") > 0);
        assert!(wire.held.bytes() >= RECEIVE_BUFFER, "{}", wire.held.bytes());
    });
}

#[test]
fn what_a_peer_does_not_take_is_held_in_the_budget() {
    on_a_core(async {
        let (_silent, stream) = pair().await;
        let mut wire = Wire::new(&core(), stream, ISCSI_DATA_MAX);
        // Far more than the sockets take, whatever their buffers are.
        let data = vec![0; 1 << 20];
        let sn = TargetSn::default();
        for itt in 0..64 {
            wire.put(&NopIn { lun: 0, itt, ttt: RESERVED_TAG, sn, data: &data });
        }
        let size = wire.size();
        tokio::select! {
            biased;
            _ = wire.send() => panic!("all of it was taken"),
            () = tokio::task::yield_now() => {}
        }
        let held = wire.sending.bytes();
        assert!(held >= size, "{held} of {size} bytes are held");
    });
}

#[test]
fn a_command_ends_when_its_response_was_handed_to_the_socket() {
    on_a_core(async {
        let (_client, stream) = pair().await;
        let mut wire = Wire::new(&core(), stream, ISCSI_DATA_MAX);
        let (data, sn) = (vec![0; 1 << 20], TargetSn::default());
        for itt in 0..64 {
            wire.put(&NopIn { lun: 0, itt, ttt: RESERVED_TAG, sn, data: &data });
        }
        wire.ends(Span::new(OpRecord::default(), 0));
        tokio::select! {
            biased;
            _ = wire.send() => panic!("all of it was taken"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(wire.unsent.records.len(), 1, "it has not ended");
    });
    on_a_core(async {
        let (mut client, stream) = pair().await;
        let mut wire = Wire::new(&core(), stream, ISCSI_DATA_MAX);
        let sn = TargetSn::default();
        wire.put(&NopIn { lun: 0, itt: 1, ttt: RESERVED_TAG, sn, data: &[] });
        wire.ends(Span::new(OpRecord::default(), 0));
        let mut received = vec![0; wire.size()];
        wire.send().await.expect("sent");
        client.read_exact(&mut received).await.expect("received");
        assert!(wire.unsent.records.is_empty(), "it has ended");
    });
}
