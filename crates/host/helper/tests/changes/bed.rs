//! A kernel in memory in its first configuration, the folder of a helper, and a second
//! configuration to change to.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use base::random::SeededRandom;
use e2e::scratch::Scratch;
use host_helper::files::Folder;
use host_helper::keeper::{Arm, Keeper};
use host_helper::request::Proposal;
use host_network::backend::{Backend, Failure};
use host_network::configuration::Configuration;
use host_network::fake::Kernel;
use host_network::state::{Link, State};
use host_network::step::Step;

use crate::configurations::{generate, machine, others_add};

/// What a process that ends in the middle leaves for the test.
pub const CUT: &str = "cut";
/// The kernel's reason for a step that it refuses.
pub const REFUSED: &str = "refused for the test";

/// Guards are the tests themselves.
pub struct Unguarded;

impl Arm for Unguarded {
    fn arm(&mut self, _change: u64, _seconds: u32) -> io::Result<Box<dyn Send>> {
        Ok(Box::new(()))
    }
}

/// A kernel that outlives the process that uses it.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Inner>>);

struct Inner {
    kernel: Kernel,
    /// The process ends before the step after this number.
    left: Option<usize>,
    /// The step after this number is refused.
    refuse: Option<usize>,
    /// All steps are refused.
    refuse_all: bool,
}

impl Shared {
    fn new(kernel: Kernel) -> Self {
        let inner = Inner { kernel, left: None, refuse: None, refuse_all: false };
        Self(Arc::new(Mutex::new(inner)))
    }

    fn with<T>(&self, with: impl FnOnce(&mut Inner) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The step after this number is refused, once.
    pub fn refuse_after(&self, steps: usize) {
        self.with(|inner| inner.refuse = Some(steps));
    }

    /// Whether each step is refused from now on.
    pub fn refuse_all(&self, refuse: bool) {
        self.with(|inner| inner.refuse_all = refuse);
    }

    /// A device goes, with what is made on it.
    pub fn unplug(&self, device: &str) {
        self.with(|inner| {
            let state = inner.kernel.state_mut();
            let mut gone = vec![device.to_owned()];
            while let Some(name) = gone.pop() {
                let on_it = |link: &Link| link.kind.on() == Some(&*name);
                let above = state.links.iter().filter(|(_, link)| on_it(link));
                gone.extend(above.map(|(name, _)| name.clone()));
                state.links.remove(&name);
                state.addresses.remove(&name);
                state.routes.retain(|route| route.link != name);
            }
        });
    }

    /// A device comes as the machine has it after a boot.
    pub fn plug(&self, device: &str) {
        let link = machine().links.remove(device).expect("a device of the machine");
        self.with(|inner| {
            let state = inner.kernel.state_mut();
            state.links.insert(device.to_owned(), link);
            state.normalise();
        });
    }

    /// Runs something that ends before it takes more than this number of steps. Whether it
    /// came to its end.
    pub fn cut_after(&self, steps: usize, run: impl FnOnce(&mut Self)) -> bool {
        self.with(|inner| inner.left = Some(steps));
        let ended = catch_unwind(AssertUnwindSafe(|| run(&mut self.clone())));
        self.with(|inner| inner.left = None);
        match ended {
            Ok(()) => true,
            Err(why) if why.downcast_ref::<&str>() == Some(&CUT) => false,
            Err(why) => resume_unwind(why),
        }
    }
}

impl Backend for Shared {
    fn observe(&mut self) -> Result<State, Failure> {
        self.with(|inner| inner.kernel.observe())
    }

    fn take(&mut self, step: &Step) -> Result<(), Failure> {
        self.with(|inner| {
            match &mut inner.left {
                // Without a message of the panic hook.
                Some(0) => resume_unwind(Box::new(CUT)),
                Some(left) => *left -= 1,
                None => {}
            }
            if inner.refuse_all {
                let (step, why) = (step.to_string(), REFUSED.to_owned());
                return Err(Failure::Refused { step, why });
            }
            match inner.refuse.take() {
                Some(0) => {
                    let (step, why) = (step.to_string(), REFUSED.to_owned());
                    return Err(Failure::Refused { step, why });
                }
                Some(more) => inner.refuse = Some(more - 1),
                None => {}
            }
            inner.kernel.take(step)
        })
    }
}

/// All of it.
pub struct Bed {
    pub folder: Folder,
    kernel: Kernel,
    /// The configuration that is confirmed, and the one to change to.
    pub first: Configuration,
    pub second: Configuration,
    /// The state in the first configuration, with what other programs have added, and without.
    pub old: State,
    pub old_alone: State,
    _scratch: Scratch,
}

pub fn wanted(configuration: &Configuration) -> Proposal {
    Proposal { configuration: configuration.clone(), ..Proposal::default() }
}

fn keeper(kernel: &Shared, folder: &Folder, boot: &str) -> Keeper {
    Keeper::new(Box::new(kernel.clone()), folder.clone(), Box::new(Unguarded), boot)
}

impl Bed {
    pub fn new(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed);
        let scratch = Scratch::new("helper");
        let folder = Folder::open(scratch.path()).expect("a folder");
        let shared = Shared::new(Kernel::new(machine()));
        let first = generate(&mut random);
        let mut helper = keeper(&shared, &folder, "this boot");
        let (change, _) = helper.apply(&wanted(&first), 60).expect("the first configuration");
        if let Some(change) = change {
            helper.confirm(change).expect("a confirmation");
        }
        let mut kernel = shared.with(|inner| inner.kernel.clone());
        let old_alone = kernel.observe().expect("a state");
        others_add(&mut kernel, &mut random);
        let old = kernel.observe().expect("a state");
        let second = generate(&mut random);
        Self { folder, kernel, first, second, old, old_alone, _scratch: scratch }
    }

    /// The kernel in the first configuration.
    pub fn kernel(&self) -> Shared {
        Shared::new(self.kernel.clone())
    }

    /// The kernel after a boot.
    pub fn bare(&self) -> Shared {
        Shared::new(Kernel::new(machine()))
    }

    pub fn keeper(&self, kernel: &Shared, boot: &str) -> Keeper {
        keeper(kernel, &self.folder, boot)
    }

    /// A third configuration, with the second waiting, by a helper that ends after this number of
    /// further steps. Whether all were taken.
    pub fn continue_cut(&self, kernel: &Shared, third: &Configuration, steps: usize) -> bool {
        let mut helper = self.keeper(kernel, "this boot");
        helper.apply(&wanted(&self.second), 3_600).expect("a change");
        kernel.cut_after(steps, |_| {
            helper.apply(&wanted(third), 3_600).expect("a change that continues it");
        })
    }

    /// Changes to the second configuration by a helper that ends after this number of steps.
    /// Whether all were taken.
    pub fn apply_cut(&self, kernel: &Shared, steps: usize) -> bool {
        kernel.cut_after(steps, |kernel| {
            let mut helper = self.keeper(kernel, "this boot");
            helper.apply(&wanted(&self.second), 3_600).expect("a change");
        })
    }
}
