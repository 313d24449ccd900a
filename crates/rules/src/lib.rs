//! What reacts with what: the rule language of `.hocl` files and the engine that lets molecules react.
//!
//! - [`Program::read`] reads rules, indexes and a solution, and reports everything that is wrong.
//! - [`Value`] is what molecules are made of; [`Solution`] a multiset of them; [`Rule`] says what reacts.
//! - [`RuleSet`] makes rules ready; [`Engine`] lets molecules react until the solution is inert.
//! - [`Host`] has the functions that rules call but that are not built in, and sees reactions.
//! - [`classify`] says how equal peers, none of which sees the whole solution, can execute a rule; a
//!   [`RangeRule`] is what they find partners with.
//!
//! Nothing here waits, sends or looks at a clock. The language is described in `docs/rules.md`.

mod ast;
mod check;
mod class;
mod code;
mod engine;
mod eval;
mod expressions;
mod functions;
mod lexer;
mod matching;
mod memory;
mod network;
#[cfg(test)]
mod oracle;
mod outcome;
mod parser;
mod patterns;
mod prefer;
mod print;
mod program;
mod range;
mod rule;
mod search;
mod serial;
mod settle;
mod solution;
mod trend;
mod value;

pub use class::{Class, classify};
pub use engine::Engine;
pub use eval::Fault;
pub use functions::{Extern, Host, NoHost};
pub use network::RuleSet;
pub use outcome::{Outcome, Reaction, RunError};
pub use program::{Index, Program, Rejected};
pub use range::{Call, Products, Query, RangeRule};
pub use rule::Rule;
pub use solution::Solution;
pub use trend::{Direction, Side};
pub use value::{Float, Tuple, Value};
