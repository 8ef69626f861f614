//! Room `lab`.
