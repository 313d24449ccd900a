//! Tests of the index as a whole, in a simulated ring.

mod concurrent;
mod cost;
mod crash;
mod sequential;
mod world;
