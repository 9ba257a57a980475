//! Every judgement on its own, on traces built by hand: what it says, and one step beside it, where
//! it says nothing.

mod calls;
mod machine;
mod objects;
mod people;
mod scene;
mod threads;
