//! The tests of dsync, in one program: each is linked with everything.

mod common;
mod dsync_begin;
mod dsync_change;
mod dsync_coarse;
mod dsync_converge;
mod dsync_hostile;
mod dsync_in_place;
mod dsync_index;
mod dsync_owners;
mod dsync_resume;
mod dsync_safety;
mod dsync_streams;
