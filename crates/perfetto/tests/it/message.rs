//! Messages of the protobuf wire format, written by hand.

use prost::encoding::{WireType, encode_key, encode_varint};

/// A message, field by field.
#[derive(Default, Clone)]
pub(crate) struct M(pub(crate) Vec<u8>);

impl M {
    pub(crate) fn int(mut self, number: u32, value: u64) -> M {
        encode_key(number, WireType::Varint, &mut self.0);
        encode_varint(value, &mut self.0);
        self
    }
    pub(crate) fn bytes(mut self, number: u32, value: impl AsRef<[u8]>) -> M {
        encode_key(number, WireType::LengthDelimited, &mut self.0);
        encode_varint(value.as_ref().len() as u64, &mut self.0);
        self.0.extend_from_slice(value.as_ref());
        self
    }
    pub(crate) fn with(self, number: u32, message: M) -> M {
        self.bytes(number, message.0)
    }
}

/// An empty message.
pub(crate) fn m() -> M {
    M::default()
}
