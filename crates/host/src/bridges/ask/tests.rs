//! Simulated bridges: they hang, send malformed replies, never stop sending, or close the
//! connection. None of them delays the requests or hides the replies of the others.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use super::*;

/// A folder for sockets, which goes with this value.
pub(in super::super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(in super::super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bridges-{}-{n}", std::process::id()));
        fs::create_dir(&path).expect("a folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("for us alone");
        Self { path }
    }

    pub(in super::super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The uid of its owner.
    pub(in super::super) fn user(&self) -> u32 {
        fs::metadata(&self.path).expect("the folder").uid()
    }

    fn socket(&self, name: &str) -> UnixListener {
        UnixListener::bind(self.path.join(format!("{name}.sock"))).expect("a socket")
    }

    /// A bridge that sends these pieces to its `n`th client, counted from 1.
    pub(in super::super) fn bridge(
        &self,
        name: &str,
        says: impl Fn(u64) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Played {
        let listener = self.socket(name);
        let path = self.path.join(format!("{name}.sock"));
        let play = move || {
            for n in 1.. {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let mut question = [0; REQUEST.len()];
                if stream.read_exact(&mut question).is_err() {
                    return;
                }
                assert_eq!(question, REQUEST);
                for piece in says(n) {
                    let _gone = stream.write_all(&piece);
                }
            }
        };
        Played { path, thread: Some(std::thread::spawn(play)) }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.path);
    }
}

/// A bridge that is played. It ends with this value, its socket with it.
pub(in super::super) struct Played {
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Played {
    fn drop(&mut self) {
        // A connection without a request ends the thread.
        drop(UnixStream::connect(&self.path));
        let ended = self.thread.take().map(JoinHandle::join);
        let _gone = fs::remove_file(&self.path);
        if !std::thread::panicking() {
            assert!(ended.is_some_and(|end| end.is_ok()), "the player failed");
        }
    }
}

/// The reply of a bridge that has delivered `packets` packets forth and none back, in the format of
/// `plimsoll bridge`.
pub(in super::super) fn answer(pid: u32, packets: u64) -> Vec<u8> {
    let way = |packets: u64| {
        let (bytes, lost, twice) = (packets * 1000, packets / 10, packets / 100);
        let pauses_ns = packets * 100_000;
        format!(
            r#"{{"packets_in":{packets},"bytes_in":{bytes},"packets_out":{packets},
            "bytes_out":{bytes},"dropped":{{"queue_full":0,"lost":{lost},"no_room":0,"refused":0,
            "overrun":0}},"twice":{twice},"damaged":0,"held":0,"under_way":3,"queue_bytes":1500,
            "queue_bytes_max":3000,"lateness":{{"p50_ns":17000,"p99_ns":18000,"max_ns":18000,
            "packets":{packets},"by":[[16384,{packets}]],"too_late":0}},"pauses":{{"count":1,
            "total_ns":{pauses_ns},"max_ns":{pauses_ns}}}}}"#
        )
    };
    let (forth, back) = (way(packets), way(0));
    let status = format!(
        r#"{{"event":"asked","name":"wan","pid":{pid},"ran_s":2.5,"set":{{"forth":{{}}}},
        "forth":{forth},"back":{back},"verdict":"good","why":[],"text":"wan\n"}}"#
    );
    let line: String = status.lines().map(str::trim).collect();
    format!("{{\"status\":{line}}}\n").into_bytes()
}

fn poller(folder: &Folder, wait: Duration) -> Poller {
    Poller { wait, ..Poller::new(folder.path(), folder.user()) }
}

/// Longer than any test takes: an answer that is awaited comes.
pub(in super::super) const PATIENT: Duration = Duration::from_secs(60);
/// What is awaited never comes.
const SHORT: Duration = Duration::from_millis(20);

fn statuses(poller: &mut Poller) -> Vec<(String, Option<u64>)> {
    let packets = |status: Status| status.forth.packets_out;
    poller.poll().into_iter().map(|(name, status)| (name, status.map(packets))).collect()
}

fn is(name: &str, packets: Option<u64>) -> (String, Option<u64>) {
    (name.to_owned(), packets)
}

#[test]
fn bridges_are_polled_by_name_and_other_files_ignored() {
    let folder = Folder::new();
    let in_pieces = |_| answer(2, 20).chunks(100).map(<[u8]>::to_vec).collect();
    let _wan = folder.bridge("wan", in_pieces);
    let _lan = folder.bridge("lan", |_| vec![answer(1, 10)]);
    fs::write(folder.path.join("file.sock"), "no socket").expect("a file");
    let _unnamed = folder.socket("a name of our own");
    let _long = folder.socket("longer-than-a-device-may-be");
    let mut poller = poller(&folder, PATIENT);
    assert_eq!(statuses(&mut poller), [is("lan", Some(10)), is("wan", Some(20))]);
}

#[test]
fn no_folder_is_no_bridge() {
    let folder = Folder::new();
    let mut poller = Poller::new(folder.path.join("none"), folder.user());
    assert_eq!(statuses(&mut poller), []);
}

#[test]
fn one_that_hangs_delays_no_other_and_is_queried_once() {
    let folder = Folder::new();
    let hangs = folder.socket("a-hangs");
    let _speaks = folder.bridge("speaks", |n| vec![answer(1, n)]);
    let mut poller = poller(&folder, SHORT);
    // The other one may not be let run for longer than that, but not each time.
    let mut others = 0;
    while others < 3 {
        let now = statuses(&mut poller);
        assert_eq!(now[0], is("a-hangs", None));
        others += u32::from(now[1].1.is_some());
    }
    // It comes round: one question waits for it, and its late answer is not taken for a new one.
    hangs.set_nonblocking(true).expect("not to wait");
    let (mut stream, _) = hangs.accept().expect("a question");
    assert!(hangs.accept().is_err(), "it is asked again before it has answered");
    stream.write_all(&answer(3, 1)).expect("an answer");
    hangs.set_nonblocking(false).expect("to wait");
    let play = std::thread::spawn(move || {
        let (mut stream, _) = hangs.accept().expect("another question");
        stream.write_all(&answer(3, 2)).expect("an answer");
    });
    poller.wait = PATIENT;
    assert_eq!(statuses(&mut poller)[0], is("a-hangs", Some(2)));
    play.join().expect("the player");
}

#[test]
fn nonsense_and_what_does_not_end_are_no_answer() {
    let folder = Folder::new();
    let _huge = folder.bridge("huge", |_| vec![vec![b'x'; BRIDGE_LINE_MAX], vec![b'x'; PIECE]]);
    let _other = folder.bridge("other", |_| vec![b"{\"status\":{\"pid\":\"me\"}}\n".to_vec()]);
    let _refuses = folder.bridge("refuses", |_| vec![b"{\"refused\":\"no\"}\n".to_vec()]);
    let _torn = folder.bridge("torn", |_| {
        let mut half = answer(1, 1);
        half.truncate(half.len() / 2);
        vec![half]
    });
    let none = ["huge", "other", "refuses", "torn"].map(|name| is(name, None));
    assert_eq!(statuses(&mut poller(&folder, PATIENT)), none);
}

#[test]
fn one_that_went_away_is_no_bridge() {
    let folder = Folder::new();
    // Its socket was left over.
    drop(folder.socket("killed"));
    let (say, hear) = mpsc::channel();
    let ends = folder.socket("ends");
    let play = std::thread::spawn(move || {
        drop(ends.accept());
        say.send(()).expect("somebody listens");
    });
    assert_eq!(statuses(&mut poller(&folder, PATIENT)), []);
    hear.recv().expect("it was asked");
    play.join().expect("the player");
}

#[test]
fn sockets_of_other_users_are_not_polled() {
    let folder = Folder::new();
    let listener = folder.socket("wan");
    listener.set_nonblocking(true).expect("not to wait");
    // A folder of another user is not trusted; root's is trusted by all.
    if folder.user() != 0 {
        let stranger = folder.user() + 1;
        assert_eq!(statuses(&mut Poller::new(folder.path(), stranger)), []);
    }
    fs::set_permissions(&folder.path, fs::Permissions::from_mode(0o777)).expect("for all");
    assert_eq!(statuses(&mut poller(&folder, SHORT)), []);
    assert!(listener.accept().is_err(), "it was asked");
}

#[test]
fn no_more_are_polled_than_are_watched() {
    let folder = Folder::new();
    let sockets: Vec<_> =
        (0..BRIDGES_WATCHED_MAX + 3).map(|n| folder.socket(&format!("b{n:02}"))).collect();
    assert_eq!(statuses(&mut poller(&folder, SHORT)).len(), BRIDGES_WATCHED_MAX);
    drop(sockets);
}
