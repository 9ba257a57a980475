//! The protobuf wire format, as far as needed to choose among messages and to write one.

/// A field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// A number.
    Int(u64),
    /// A message, text or bytes.
    Bytes(&'a [u8]),
    /// Four or eight bytes.
    Fixed,
}

/// The fields of a message, up to the first unreadable one.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = (u32, Field<'_>)> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let key = varint(&mut rest)?;
        let number = u32::try_from(key >> 3).ok()?;
        let field = match key & 7 {
            0 => Field::Int(varint(&mut rest)?),
            1 => take(&mut rest, 8).map(|_| Field::Fixed)?,
            2 => {
                let len = varint(&mut rest)?;
                Field::Bytes(take(&mut rest, len)?)
            }
            5 => take(&mut rest, 4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        Some((number, field))
    })
}

fn take<'a>(rest: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *rest = tail;
    Some(head)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Append a field that holds bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_ends_it() {
        let mut out = Vec::new();
        put_bytes(&mut out, 900, b"text");
        put_bytes(&mut out, 1, &[7; 300]);
        out.extend([8 << 3, 0xac, 2]);
        let all: Vec<(u32, Field<'_>)> = fields(&out).collect();
        assert_eq!(all[0], (900, Field::Bytes(b"text")));
        assert_eq!((all[1].0, all[2]), (1, (8, Field::Int(300))));
        for n in 0..out.len() {
            assert!(fields(&out[..n]).count() <= 3);
        }
        assert_eq!(fields(&[0xff; 20]).count(), 0);
    }
}
