//! Devices that are read, refused, absent or fail, with a simulated fabric.

use host_fabric::fake::{Fake, host};
use host_fabric::mad::Mad;
use host_fabric::transport::{Received, Target};

use super::*;

/// A simulated fabric that the test changes while it is read.
#[derive(Clone)]
struct Shared(Arc<Mutex<Fake>>);

impl Shared {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Fake::new(2, 6, 1))))
    }

    /// Opens it as the only device.
    fn opener(&self) -> Opener {
        let own = self.clone();
        Box::new(move |number| match number {
            0 => Ok(Box::new(own.clone()) as Device),
            _ => Err(absent()),
        })
    }
}

impl Transport for Shared {
    fn send(&mut self, target: &Target, mad: &Mad) -> io::Result<()> {
        self.0.lock().send(target, mad)
    }

    fn receive(&mut self, wait: Duration) -> io::Result<Option<Received>> {
        self.0.lock().receive(wait)
    }

    fn now(&self) -> Duration {
        self.0.lock().now()
    }
}

/// A device that has failed.
struct Broken;

impl Transport for Broken {
    fn send(&mut self, _target: &Target, _mad: &Mad) -> io::Result<()> {
        Err(io::Error::other("the device is gone"))
    }

    fn receive(&mut self, _wait: Duration) -> io::Result<Option<Received>> {
        Ok(None)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

fn absent() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

fn turn(opener: Opener) -> (Arc<Fabrics>, Devices, Option<Duration>) {
    let (fabrics, mut devices) = (Arc::new(Fabrics::default()), Devices::new(opener));
    let pause = devices.turn(&Arc::downgrade(&fabrics));
    (fabrics, devices, pause)
}

#[test]
fn without_a_device_the_reason_is_shown() {
    let (fabrics, _, pause) = turn(Box::new(|_| Err(absent())));
    assert_eq!(
        fabrics.reason(),
        "there is no /dev/infiniband/umad*: this machine has no InfiniBand device, or the module \
         ib_umad is not loaded (modprobe ib_umad)"
    );
    assert_eq!((fabrics.reports().len(), pause), (0, Some(RETRY)));
}

#[test]
fn without_access_the_reason_names_the_device() {
    let denied = || io::Error::from_raw_os_error(13);
    let opener = move |number| Err(if number < 2 { denied() } else { absent() });
    let (fabrics, _, _) = turn(Box::new(opener));
    assert_eq!(
        fabrics.reason(),
        "cannot open /dev/infiniband/umad0: Permission denied (os error 13); start the server as \
         root, or give its user read and write access to the device"
    );
}

#[test]
fn a_device_that_fails_leaves_the_other_one() {
    let shared = Shared::new();
    let opener = move |number| match number {
        0 => Ok(Box::new(Broken) as Device),
        1 => Ok(Box::new(shared.clone()) as Device),
        _ => Err(absent()),
    };
    let (fabrics, _, pause) = turn(Box::new(opener));
    assert_eq!(fabrics.reason(), "cannot read /dev/infiniband/umad0: the device is gone");
    assert_eq!((fabrics.reports().len(), pause), (1, Some(LOOK)));
}

#[test]
fn partitions_and_the_subnet_manager_are_seen_between_passes() {
    let shared = Shared::new();
    let (fabrics, mut devices, _) = turn(shared.opener());
    assert_eq!((fabrics.faults(), fabrics.reason()), (Vec::new(), String::new()));
    let walked = fabrics.reports()[0].walk;
    shared.0.lock().pkeys = vec![0xffff, 0x8001];
    shared.0.lock().manager = None;
    assert_eq!(devices.turn(&Arc::downgrade(&fabrics)), Some(LOOK));
    let report = &fabrics.reports()[0];
    assert_eq!((&report.fabric.pkeys, report.walk), (&vec![0xffff, 0x8001], walked));
    let fault = fabrics.faults().remove(0);
    assert_eq!(fault.id, "fabric-no-subnet-manager-host1:1");
    assert_eq!(fault.severity, Severity::Major);
    assert!(fault.what.starts_with("No subnet manager replies to host1:1"), "{}", fault.what);
    let weak = Arc::downgrade(&fabrics);
    drop(fabrics);
    assert_eq!(devices.turn(&weak), None);
}

#[test]
fn symbol_errors_are_a_minor_problem() {
    let shared = Shared::new();
    let (fabrics, mut devices, _) = turn(shared.opener());
    let mut fake = shared.0.lock();
    fake.port((host(2), 1)).expect("a port").narrow.errors[0] = 5;
    fake.advance(Duration::from_secs(10));
    drop(fake);
    devices.open.values_mut().for_each(|one| one.next = Duration::ZERO);
    devices.turn(&Arc::downgrade(&fabrics));
    let faults = fabrics.faults();
    let found: Vec<_> = faults.iter().map(|one| (one.id.as_str(), one.severity)).collect();
    assert_eq!(found, [("fabric-symbol-errors-host2:1", Severity::Minor)]);
}
