//! The tests of the program and its documents, in one program: each is linked with everything.

mod configuration;
mod doctor;
mod harness;
mod help;
mod manual;
mod pipes;
mod secrets;
mod serve;
mod statistics;
