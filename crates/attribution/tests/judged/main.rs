//! Every judgement alone, on hand-made traces: a trace in which it holds, and a similar one in
//! which it does not.

mod calls;
mod machine;
mod objects;
mod people;
mod scene;
mod threads;
