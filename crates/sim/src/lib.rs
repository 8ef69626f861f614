//! Room `sim`.
