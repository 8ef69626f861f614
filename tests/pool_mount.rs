//! A client of NFSv3 in the root of a share, for the tests of shares on pools.

use e2e::nfs3::{Client, Failure, Handle};
use e2e::server::Server;
use wire::nfs3::{CreateHow, Fattr3, StableHow};

/// A connection, and the root of the share.
pub struct Mounted {
    pub client: Client,
    pub root: Handle,
}

impl Mounted {
    pub fn new(server: &Server, share: &str) -> Self {
        let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
        let root = client.mnt(&format!("/export/{share}")).expect("mounted").to_vec();
        Self { client, root }
    }

    /// Creates a file that does not exist, and writes it, stable.
    pub fn make(&mut self, name: &str, content: &[u8]) -> Handle {
        self.write(name, CreateHow::Guarded(Default::default()), content)
    }

    /// Writes a file, which may exist, stable.
    pub fn put(&mut self, name: &str, content: &[u8]) -> Handle {
        self.write(name, CreateHow::Unchecked(Default::default()), content)
    }

    fn write(&mut self, name: &str, how: CreateHow, content: &[u8]) -> Handle {
        let file = self.client.create(&self.root, name, how).expect("created").handle;
        self.client.write(&file, 0, content, StableHow::FILE_SYNC).expect("written");
        file
    }

    pub fn find(&mut self, path: &str) -> Result<Handle, Failure> {
        let root = self.root.clone();
        let step = |at: Handle, name: &str| Ok(self.client.lookup(&at, name)?.handle);
        path.split('/').try_fold(root, step)
    }

    pub fn read(&mut self, file: &[u8]) -> Result<Vec<u8>, Failure> {
        self.client.read_all(file)
    }

    pub fn attr(&mut self, file: &[u8]) -> Fattr3 {
        self.client.getattr(file).expect("attributes")
    }
}
