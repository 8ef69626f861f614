//! Echo: lines come back in order. It stores nothing, and none of its lines goes to the pool.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use serve::echo::Server;
use serve::pool::Pool;
use serve::transport::Budgets;
use serve::transport::budget::Limits;
use serve::transport::listener::listen;
use vfs::identity::Identity;
use vfs::share::Service;

use crate::scene::{Scene, Serving, Users};
use crate::{BLOCK, Op, Outcome, PATIENCE, POOL, Serves, Session};

/// The service.
pub struct Echo {
    _tasks: Serving,
    pub scene: Scene,
    at: SocketAddr,
}

impl Echo {
    /// Starts it.
    pub fn start() -> Self {
        Self::over(|users| users)
    }

    /// Starts it with an identity over these users.
    pub fn over(identity: impl FnOnce(Arc<Users>) -> Arc<dyn Identity>) -> Self {
        // The service of the scene's shares, of which it has none, does not matter.
        let scene = Scene::with_pool(Service::Ftp, &[], Limits::default(), POOL);
        let files = &scene.files;
        let sign_in = (identity(Arc::clone(&scene.users)), Arc::clone(&files.sign_ins));
        let server = Server::new(Arc::clone(&files.engine), sign_in, PATIENCE);
        let socket = listen(([127, 0, 0, 1], 0).into()).expect("a port");
        let at = socket.local_addr().expect("an address");
        let tasks = Serving(server.start(&scene.runtimes, vec![socket]));
        Self { _tasks: tasks, scene, at }
    }
}

impl Serves for Echo {
    fn at(&self) -> SocketAddr {
        self.at
    }

    fn open(&self, at: SocketAddr) -> io::Result<Box<dyn Session>> {
        Ok(Box::new(Lines::open(at)?))
    }

    fn budgets(&self) -> Arc<Budgets> {
        Arc::clone(&self.scene.files.engine.budgets)
    }

    fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.scene.files.engine.pool)
    }

    fn content(&self) -> Option<Vec<u8>> {
        None
    }
}

/// A client that has signed in.
pub struct Lines {
    stream: BufReader<TcpStream>,
    /// Those that were sent last, and the number of the one that comes back next.
    sent: Vec<(Op, String)>,
    next: usize,
}

impl Lines {
    /// Connects and signs in.
    pub fn open(at: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut lines = Self { stream: BufReader::new(stream), sent: Vec::new(), next: 0 };
        lines.put("alice secret\n")?;
        match lines.line()?.as_str() {
            "OK" => Ok(lines),
            other => panic!("refused: {other:?}"),
        }
    }

    /// Sends this as it is.
    pub fn put(&mut self, text: &str) -> io::Result<()> {
        self.stream.get_mut().write_all(text.as_bytes())
    }

    /// The next line that comes.
    pub fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            _ if line.ends_with('\n') => Ok(line.trim_end().to_owned()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Session for Lines {
    fn send(&mut self, ops: &[Op]) -> io::Result<()> {
        let line = |op: &Op| format!("{op:?} {}", "x".repeat(BLOCK / 4));
        self.sent = ops.iter().map(|op| (*op, line(op))).collect();
        self.next = 0;
        let all: String = self.sent.iter().map(|(_, line)| format!("{line}\n")).collect();
        self.put(&all)
    }

    fn answer(&mut self) -> io::Result<(usize, Outcome)> {
        let line = self.line()?;
        let number = self.next;
        self.next += 1;
        assert_eq!(line, self.sent[number].1);
        // What it does to no block is not looked at.
        Ok((number, None))
    }
}
