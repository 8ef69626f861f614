//! Between a channel and the threads of a run: bytes in both directions, and records of operations.

use std::os::unix::net::UnixStream as Blocking;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::limits::{DSYNC_RECORDS, DSYNC_SHARE_PIPE};
use probe::op::OpRecord;
use sync::streams::listen::Reachable;
use sync::{SyncError, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::super::channel::{Gone, Input, Output};
use super::count::Tally;
use super::permits::RunPermit;
use super::tree::{self, TreeRequest};
use super::{Dsync, Request};
use files::Core;

/// Answers a client over a channel, until the run has ended. Whether it was done to its end.
pub async fn serve(
    core: &Core,
    dsync: &Dsync,
    request: Request,
    channel: (impl Input, impl Output),
) -> bool {
    let Ok((near, far)) = pair() else { return false };
    let (records, said) = mpsc::channel(DSYNC_RECORDS);
    let Some(permit) = dsync.permits.take(request.who.peer.ip()) else { return false };
    let refused = request.refused.or(permit.refused);
    let (at, gone) = (request.at, Arc::<AtomicBool>::default());
    let asked = TreeRequest {
        files: Arc::clone(&core.files),
        tally: Tally::new(&request.who, core.id, records),
        busy: Arc::clone(&dsync.busy),
        gone: Arc::clone(&gone),
        memory: Arc::clone(&permit.memory),
        request: Request { refused, ..request },
    };
    let (done, ended) = oneshot::channel();
    let engine = Arc::clone(&core.engine);
    let run = move || {
        let answered = tree::contained(&engine, || answer(far, asked, at, permit));
        // The waiting task may have ended.
        let _ = done.send(answered.unwrap_or(false));
    };
    if std::thread::Builder::new().name("dsync".to_owned()).spawn(run).is_err() {
        return false;
    }
    carry(core, near, channel, (said, &gone)).await;
    ended.await.unwrap_or(false)
}

/// Both ends of what joins the channel, on its core, to the threads of the run.
fn pair() -> std::io::Result<(UnixStream, Blocking)> {
    let (near, far) = Blocking::pair()?;
    near.set_nonblocking(true)?;
    Ok((UnixStream::from_std(near)?, far))
}

fn answer(far: Blocking, asked: TreeRequest, at: Reachable, _permit: RunPermit) -> bool {
    let name = asked.request.who.person.name.clone();
    let done = run::of_socket(far).map_err(Into::into).and_then(|link| {
        run::answer_with(link, at, |role, place, options| asked.tree(role, place, options))
    });
    if let Err(why) = &done {
        let why: &SyncError = why.error();
        base::debug!("dsync", "a dsync run of {name} was aborted: {why}");
    }
    done.is_ok()
}

/// Moves bytes between the channel and the run, and records the operations of the run, until the
/// run ends its output.
async fn carry(
    core: &Core,
    near: UnixStream,
    (mut input, mut output): (impl Input, impl Output),
    (mut said, gone): (mpsc::Receiver<OpRecord>, &AtomicBool),
) {
    let (read, write) = near.into_split();
    let mut inward = std::pin::pin!(inward(&mut input, write, gone));
    let mut outward = std::pin::pin!(outward(&mut output, read));
    let mut coming = true;
    loop {
        tokio::select! {
            () = &mut inward, if coming => coming = false,
            () = &mut outward => break,
            Some(record) = said.recv() => core.record(&record),
        }
    }
    // Once the run has dropped its tree, no more records can come.
    while let Ok(record) = said.try_recv() {
        core.record(&record);
    }
}

/// Copies input to the run, and shuts the socket down at the end of the input.
async fn inward(input: &mut impl Input, mut write: OwnedWriteHalf, gone: &AtomicBool) {
    let mut bytes = Vec::new();
    loop {
        match input.receive(&mut bytes).await {
            Ok(1..) => {}
            Ok(0) => break,
            Err(Gone) => {
                gone.store(true, Relaxed);
                break;
            }
        }
        if write.write_all(&bytes).await.is_err() {
            break;
        }
        bytes.clear();
    }
    // A run that has ended already takes no notice.
    let _ = write.shutdown().await;
}

async fn outward(output: &mut impl Output, mut read: OwnedReadHalf) {
    let mut bytes = vec![0; DSYNC_SHARE_PIPE];
    while let Ok(count @ 1..) = read.read(&mut bytes).await {
        let Some(part) = bytes.get(..count) else { break };
        if output.send(&[part]).await.is_err() {
            break;
        }
    }
}
