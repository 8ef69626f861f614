//! Leftovers of killed tests are removed; folders in use, and of running processes, stay.

use super::*;

/// A machine in a folder of its own.
struct World {
    folder: PathBuf,
    machine: Machine,
}

impl World {
    fn new(name: &str) -> Self {
        let folder = format!("xtask-leftovers-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let [place, proc, block] = ["tmp", "proc", "block"].map(|name| folder.join(name));
        fs::create_dir_all(&place).expect("a folder");
        let world = Self { folder, machine: Machine { places: vec![place], proc, block } };
        world.write("proc/self/mountinfo", "");
        world.process(700, "700");
        world
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// A process that lives, with its numbers in each namespace.
    fn process(&self, number: u32, numbers: &str) {
        self.write(&format!("proc/{number}/status"), &format!("Name:\tx\nNSpid:\t{numbers}\n"));
    }

    /// Makes a file in a folder of tests.
    fn made(&self, name: &str) -> PathBuf {
        self.write(&format!("tmp/{name}/file"), "");
        self.folder.join("tmp").join(name)
    }

    /// Removes what may be removed; the commands that were run for it, and what there was to say.
    fn remove(&self) -> (Vec<String>, Vec<String>) {
        let mut commands = Vec::new();
        let (_, problems) = self.machine.remove(&mut |command| {
            let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
            commands.push(words.join(" "));
            if words.first().is_some_and(|word| word == "umount") {
                self.write("proc/self/mountinfo", "");
            }
            Ok(())
        });
        (commands, problems)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What cannot be removed is in the temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_name_shows_the_process_that_made_it() {
    assert_eq!(creator("plimsoll-test-crash-123-0"), Some(123));
    assert_eq!(creator("plimsoll-test-hostile-depth-20-4767-12"), Some(4767));
    let others = ["plimsoll-test-crash-123", "plimsoll-test-1-2", "plimsoll-test-crash-x-0"];
    for other in others.into_iter().chain(["plimsoll-123-0", "my-plimsoll-test-crash-123-0"]) {
        assert_eq!(creator(other), None, "{other}");
    }
}

#[test]
fn only_what_belongs_to_no_living_process_is_removed() {
    let world = World::new("living");
    let gone = world.made("plimsoll-test-a-500-0");
    world.write("tmp/plimsoll-test-log-500-0", "a file");
    world.process(800, "800 31");
    let stay = ["plimsoll-test-a-700-0", "plimsoll-test-a-31-0", "plimsoll-a-500-0"];
    let mut stay = stay.map(|name| world.made(name)).to_vec();
    assert_eq!(world.remove(), (vec![], vec![]));
    assert!(!gone.exists() && !world.folder.join("tmp/plimsoll-test-log-500-0").exists());

    // The server of a test that is gone has it open, another one was started with it.
    let open = world.made("plimsoll-test-b-500-1");
    let named = world.made("plimsoll-test-c-500-1");
    let longer = world.made("plimsoll-test-c-500-12");
    fs::create_dir_all(world.folder.join("proc/700/fd")).expect("made");
    std::os::unix::fs::symlink(open.join("file"), world.folder.join("proc/700/fd/3"))
        .expect("made");
    world.write("proc/700/cmdline", &format!("serve\0--state={}/state\0", named.display()));
    let problems = world.remove().1;
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|why| why.ends_with("process 700 uses it")), "{problems:?}");
    stay.extend([open, named]);
    assert!(stay.iter().all(|path| path.exists()) && !longer.exists());
}

#[test]
fn what_was_mounted_last_goes_first_and_loop_devices_before_it() {
    let world = World::new("mounts");
    let [gone, alive] = ["plimsoll-test-xfs-500-0", "plimsoll-test-xfs-700-0"].map(|name| {
        let made = world.made(name);
        (made.display().to_string(), made)
    });
    let line = |at: &str| format!("36 35 98:0 / {at} rw,noatime - xfs /dev/loop0 rw\n");
    let mounts = ["/", &format!("{}/be\\040low", gone.0), &format!("{}/disk", gone.0), &alive.0];
    world.write("proc/self/mountinfo", &mounts.map(line).concat());
    world.write("block/loop3/loop/backing_file", &format!("{}/be low/image\n", gone.0));
    world.write("block/loop4/loop/backing_file", &format!("{}/image\n", alive.0));
    // Of one the folder is gone already.
    let deleted = world.folder.join("tmp/plimsoll-test-xfs-500-9/image");
    let deleted = format!("{} (deleted)\n", deleted.display());
    world.write("block/loop5/loop/backing_file", &deleted);
    let (commands, problems) = world.remove();
    assert_eq!(problems, Vec::<String>::new());
    let unmount = "umount --lazy --no-canonicalize";
    assert_eq!(
        commands,
        [
            "losetup --detach /dev/loop3".to_owned(),
            format!("{unmount} {}/disk", gone.0),
            format!("{unmount} {}/be low", gone.0),
            "losetup --detach /dev/loop5".to_owned(),
        ]
    );
    assert!(!gone.1.exists() && alive.1.exists());
}

#[test]
fn nothing_is_removed_while_something_is_mounted_in_it() {
    let world = World::new("busy");
    let made = world.made("plimsoll-test-a-500-0");
    let line = format!("36 35 98:0 / {}/disk rw - xfs /dev/loop0 rw\n", made.display());
    world.write("proc/self/mountinfo", &line);
    let (_, problems) = world.machine.remove(&mut |_| Ok(()));
    assert!(problems.iter().all(|why| why.contains("mounted in it")) && problems.len() == 1);
    assert!(made.join("file").exists());
}
