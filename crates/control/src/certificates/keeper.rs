//! The thread that renews certificates: nothing that a connection or a change waits for.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use base::limits::{ACME_ORDER_TIMEOUT, CERTIFICATE_LOOK_EVERY};
use tokio::sync::watch;

use super::Certificates;
use super::acme::{self, Acme};

/// The running thread. [`Keeper::end`] stops it; dropping does the same.
#[derive(Debug)]
pub struct Keeper {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Maintains `room` until it is ended. An order in progress is abandoned then.
    ///
    /// # Errors
    /// No thread is available.
    pub fn start(room: Arc<Certificates>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("certificates-block")
            .build()?;
        let (stop, mut stopped) = watch::channel(false);
        let thread =
            std::thread::Builder::new().name("certificates".to_owned()).spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = run(&room) => {}
                        _ = stopped.wait_for(|stop| *stop) => {}
                    }
                });
                // A name that is being looked up must not hold up the end.
                runtime.shutdown_timeout(Duration::from_millis(100));
            })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops it.
    pub fn end(mut self) {
        self.stop_and_wait();
    }

    fn stop_and_wait(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the hook already.
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop_and_wait();
    }
}

async fn run(room: &Certificates) {
    loop {
        if let Err(e) = room.renew_own(false) {
            base::info!("certificates", "the self-signed certificate cannot be renewed: {e}");
        }
        for (name, acme) in room.due() {
            order(room, &name, &acme).await;
        }
        room.forget();
        let pause = Duration::from_secs(room.next().saturating_sub(room.now()));
        let pause = pause.clamp(Duration::from_secs(1), CERTIFICATE_LOOK_EVERY);
        tokio::select! {
            () = room.wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn order(room: &Certificates, name: &str, acme: &Acme) {
    let keep = |account| {
        room.keep(name, |issued| {
            // A certificate of another CA stays in use, but is not the configured one.
            if issued.directory != acme.directory {
                issued.domains.clear();
            }
            issued.directory.clone_from(&acme.directory);
            issued.account = Some(account);
        });
    };
    let account = room.account(name, acme);
    let order = acme::order(acme, account, room.shown.answers(), room.host.address, keep);
    let given = tokio::time::timeout(ACME_ORDER_TIMEOUT, order).await;
    let given = given.unwrap_or_else(|_| Err("the CA timed out".to_owned()));
    match given {
        Ok(given) => {
            room.keep(name, |issued| {
                issued.domains.clone_from(&acme.domains);
                (issued.chain, issued.key) = (Some(given.chain), Some(given.key));
            });
            room.ordered(name, None);
        }
        Err(why) => room.ordered(name, Some(why)),
    }
}
