//! Every judgement alone, on hand-made traces: a trace in which it holds, and a similar one in
//! which it does not.

mod background;
mod calls;
mod closing;
mod machine;
mod objects;
mod samples;
mod scene;
mod threads;
