//! What both directions of a bridge and their starter share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::shape::Shapes;

/// What is wanted of both directions, and changed while they run.
#[derive(Debug, Default)]
pub struct DirectionSettings {
    shapes: Mutex<Shapes>,
    pub(super) generation: AtomicU64,
}

impl DirectionSettings {
    /// Begins with these.
    pub fn new(shapes: Shapes) -> Self {
        Self { shapes: Mutex::new(shapes), generation: AtomicU64::new(1) }
    }

    /// What is wanted now.
    pub fn get(&self) -> Shapes {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes it.
    pub fn put(&self, shapes: Shapes) {
        *self.shapes.lock().unwrap_or_else(PoisonError::into_inner) = shapes;
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// What both directions and their starter share.
#[derive(Debug, Default)]
pub struct Common {
    /// What is wanted.
    pub wanted: DirectionSettings,
    /// All is to end.
    pub stop: AtomicBool,
    /// Threads that could not be let go first.
    pub ordinary: AtomicU64,
}
