//! Types of CTF fields, as the metadata declares them.
//!
//! A type that is used in many places is shared, not copied: metadata of a few lines can declare
//! types that nest to any size.

use std::sync::Arc;

/// A byte order from the metadata; where none is declared, the trace's own applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Little,
    Big,
}

/// The type of a field. Alignments and sizes are in bits.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    Int(Int),
    Enum(Arc<Enum>),
    /// Never looked at, but its size is needed.
    Float {
        size: u32,
        align: u32,
    },
    /// Bytes up to a NUL.
    Str,
    Struct(Arc<Struct>),
    Variant {
        variant: Arc<Variant>,
        /// The field that chooses, as a path.
        tag: Option<Arc<str>>,
    },
    Array(Arc<Element>, u64),
    /// Its elements, and the path of the field with its length.
    Sequence(Arc<Element>, Arc<str>),
}

/// The elements of an array.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) of: Type,
    /// See [`Type::depth`].
    depth: u32,
}

/// An integer of 1 to 64 bits.
#[derive(Clone, Debug)]
pub(crate) struct Int {
    pub(crate) size: u8,
    pub(crate) align: u32,
    pub(crate) signed: bool,
    pub(crate) order: Option<Order>,
    /// `encoding = UTF8` or `ASCII`: an array of these is text.
    pub(crate) text: bool,
    /// Name of the clock whose value this is.
    pub(crate) clock: Option<Arc<str>>,
}

/// Names for ranges of an integer. The ranges of one name need not adjoin.
#[derive(Debug)]
pub(crate) struct Enum {
    pub(crate) int: Int,
    pub(crate) ranges: Vec<(Box<str>, i128, i128)>,
}

/// Fields one after the other.
#[derive(Debug)]
pub(crate) struct Struct {
    /// The largest of the declared alignment and the alignments of the fields.
    pub(crate) align: u32,
    pub(crate) fields: Vec<(Box<str>, Type)>,
    depth: u32,
}

/// One of several fields.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) options: Vec<(Box<str>, Type)>,
    depth: u32,
}

impl Element {
    pub(crate) fn new(of: Type) -> Element {
        Element { depth: of.depth() + 1, of }
    }
}

impl Struct {
    /// `align` is the declared alignment, which may exceed that of the fields.
    pub(crate) fn new(align: u32, fields: Vec<(Box<str>, Type)>) -> Struct {
        let align = fields.iter().map(|(_, of)| of.align()).fold(align, u32::max);
        Struct { align, depth: deepest(&fields), fields }
    }
}

impl Variant {
    pub(crate) fn new(options: Vec<(Box<str>, Type)>) -> Variant {
        Variant { depth: deepest(&options), options }
    }
}

fn deepest(fields: &[(Box<str>, Type)]) -> u32 {
    fields.iter().map(|(_, of)| of.depth()).max().unwrap_or(0) + 1
}

impl Type {
    /// The alignment of its first bit.
    pub(crate) fn align(&self) -> u32 {
        match self {
            Type::Int(int) => int.align,
            Type::Enum(e) => e.int.align,
            Type::Float { align, .. } => *align,
            Type::Str => 8,
            Type::Struct(s) => s.align,
            // A variant has no alignment itself; the chosen field has.
            Type::Variant { .. } => 1,
            Type::Array(element, _) | Type::Sequence(element, _) => element.of.align(),
        }
    }

    /// Nesting depth of the type. The parser refuses types that are too deep, so that walks may
    /// recurse.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Type::Int(_) | Type::Enum(_) | Type::Float { .. } | Type::Str => 0,
            Type::Struct(s) => s.depth,
            Type::Variant { variant, .. } => variant.depth,
            Type::Array(element, _) | Type::Sequence(element, _) => element.depth,
        }
    }
}
