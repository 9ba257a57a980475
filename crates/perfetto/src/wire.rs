//! The protobuf wire format: a message is a sequence of fields, each a key and a value.
//!
//! prost reads the varints and keys. Nothing is copied: a field that holds a message, text or a
//! packed list is the slice of the file it lies in.

use prost::encoding::{WireType, decode_key, decode_varint};

/// The bytes are no message. The exact position does not matter: a truncated message is counted and
/// skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A varint; negative numbers are sign-extended to 64 bits.
    Int(u64),
    /// A message, text, bytes or a packed list.
    Bytes(&'a [u8]),
    /// Four or eight bytes of fixed width: doubles, which holdup does not use.
    Fixed,
}

impl<'a> Value<'a> {
    pub(crate) fn int(self) -> Option<u64> {
        match self {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Text, lossily.
    pub(crate) fn text(self) -> Option<String> {
        self.bytes().map(|b| String::from_utf8_lossy(b).into_owned())
    }
}

/// The fields of a message, in file order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// Number and value of the next field, `None` at the end.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Broken> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire) = self.key()?;
        let value = match wire {
            WireType::Varint => Value::Int(varint(&mut self.rest)?),
            WireType::LengthDelimited => {
                let len = varint(&mut self.rest)?;
                Value::Bytes(self.take(len)?)
            }
            WireType::SixtyFourBit => self.take(8).map(|_| Value::Fixed)?,
            WireType::ThirtyTwoBit => self.take(4).map(|_| Value::Fixed)?,
            // Protobuf deprecated groups before Perfetto existed.
            WireType::StartGroup | WireType::EndGroup => return Err(Broken),
        };
        Ok(Some((number, value)))
    }

    #[inline(always)]
    fn key(&mut self) -> Result<(u32, WireType), Broken> {
        // Most fields of events have numbers below 16, whose keys take one byte.
        if let Some((&byte @ 8..0x80, rest)) = self.rest.split_first()
            && let Ok(wire) = WireType::try_from(u64::from(byte & 7))
        {
            self.rest = rest;
            return Ok((u32::from(byte >> 3), wire));
        }
        decode_key(&mut self.rest).map_err(|_| Broken)
    }

    #[inline(always)]
    fn take(&mut self, len: u64) -> Result<&'a [u8], Broken> {
        let (taken, rest) = usize::try_from(len)
            .ok()
            .and_then(|len| self.rest.split_at_checked(len))
            .ok_or(Broken)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The first number in field `wanted`.
    pub(crate) fn find_int(mut self, wanted: u32) -> Option<u64> {
        while let Ok(Some((number, value))) = self.next() {
            if let (true, Value::Int(n)) = (number == wanted, value) {
                return Some(n);
            }
        }
        None
    }

    /// Call `field` for each, as far as the message can be read.
    pub(crate) fn each(mut self, mut field: impl FnMut(u32, Value<'a>)) -> Result<(), Broken> {
        while let Some((number, value)) = self.next()? {
            field(number, value);
        }
        Ok(())
    }
}

#[inline(always)]
fn varint(rest: &mut &[u8]) -> Result<u64, Broken> {
    // Fast path: half of all numbers and nearly all lengths take one byte.
    if let Some((&byte @ ..0x80, behind)) = rest.split_first() {
        *rest = behind;
        return Ok(byte.into());
    }
    decode_varint(rest).map_err(|_| Broken)
}

/// A packed list of varints, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packed<'a>(pub(crate) &'a [u8]);

impl Packed<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next number; [`Broken`] at the end too, because lists that belong together have the same
    /// length.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<u64, Broken> {
        varint(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Result<Vec<(u32, Value<'_>)>, Broken> {
        let mut out = Vec::new();
        Fields::of(message).each(|n, v| out.push((n, v))).map(|()| out)
    }

    #[test]
    fn every_type_of_field_is_told_apart() {
        let message =
            [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4, 0x80, 0x01, 0x05];
        assert_eq!(
            all(&message),
            Ok(vec![
                (1, Value::Int(150)),
                (2, Value::Bytes(b"hi")),
                (3, Value::Fixed),
                (16, Value::Int(5))
            ])
        );
        let negative = [&[0x08][..], &[0xff; 9], &[0x01]].concat();
        assert_eq!(all(&negative), Ok(vec![(1, Value::Int(u64::MAX))]));
    }

    #[test]
    fn what_does_not_fit_is_broken() {
        for bad in [
            &[0x12, 0x05, b'h'][..],
            &[0x08],
            &[0x08, 0x80],
            &[0x00, 0x01],
            &[0x0b],
            &[0x1d, 1],
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        ] {
            assert_eq!(all(bad), Err(Broken), "{bad:?}");
        }
    }
}
