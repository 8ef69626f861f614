//! Room `analytics`.
