//! Ring-buffer pages and the records in them.
//!
//! ```text
//! page:    u64 time stamp | long commit | data …                    (events/header_page)
//!                           commit: low 27 bits  bytes of data
//!                                   bit 31       events were lost before this page
//!                                   bit 30       … and how many is stored behind the data
//! record:  type_len:5, time_delta:27 | array[0] … | payload         (events/header_event)
//!          type_len 1..28  payload of type_len * 4 bytes
//!                   0      array[0] = 4 + bytes of payload
//!                   29     padding of array[0] bytes; delta 0: to the end of the page
//!                   30     time extend: array[0] << 27 is added to the delta
//!                   31     absolute time stamp, 59 bits
//! ```
//!
//! Sources: the kernel's `include/linux/ring_buffer.h` and `kernel/trace/ring_buffer.c`,
//! libtraceevent's kbuffer(3). Every page has its own time stamp, so pages can be read in any
//! order.

use holdup_tracepoint::Endian;
use std::marker::PhantomData;

const COMMIT_BYTES: u64 = (1 << 27) - 1;
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
/// Bits of a time stamp that an absolute one does not carry.
const TIME_MSB: u64 = 0xf8 << 56;

/// Offsets of the parts of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    commit: usize,
    /// Bytes of the commit field: the kernel's `long`.
    pub(crate) long: usize,
    pub(crate) data: usize,
    /// Bytes of a page according to `header_page`; 0 if it does not say.
    pub(crate) page: usize,
}

impl PageLayout {
    /// The only layout the kernel has had since 2.6.31, for a kernel with this `long`.
    pub(crate) fn default_for(long: usize) -> PageLayout {
        PageLayout { commit: 8, long, data: 8 + long, page: 0 }
    }

    /// Parse the text of `events/header_page`. `None` if it does not describe a page that can be
    /// read (the time stamp is not eight bytes, or fields lie beyond any page).
    pub(crate) fn parse(text: &str) -> Option<PageLayout> {
        let field = |name: &str| {
            text.lines().find_map(|line| {
                let (decl, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
                if decl.rsplit([' ', '*']).next()? != name {
                    return None;
                }
                let number = |key: &str| {
                    rest.split(';')
                        .find_map(|p| p.trim().strip_prefix(key)?.trim().parse::<usize>().ok())
                };
                Some((number("offset:")?, number("size:")?))
            })
        };
        let (time, time_size) = field("timestamp")?;
        let (commit, long) = field("commit")?;
        let (data, data_size) = field("data")?;
        let sound = time == 0
            && time_size == 8
            && commit >= 8
            && matches!(long, 4 | 8)
            && commit + long <= data
            && data <= 256;
        sound.then_some(PageLayout { commit, long, data, page: data + data_size.min(1 << 30) })
    }

    /// Bytes before the data.
    pub(crate) fn header(&self) -> usize {
        self.data
    }

    /// If these bytes could start a page of `size` bytes in this byte order, its time stamp.
    pub(crate) fn plausible<E: Endian>(&self, head: &[u8], size: usize) -> Option<u64> {
        let page = Page::parse::<E>(self, head, size)?;
        // The flags are ints that the kernel adds to a long, so only their sign bits may be above
        // them. Read in the wrong byte order, the upper half holds the length instead.
        matches!(self.commit_word::<E>(head) >> 32, 0 | 0xffff_ffff).then_some(page.time)
    }

    #[inline]
    fn commit_word<E: Endian>(&self, page: &[u8]) -> u64 {
        if self.long == 8 { E::u64(page, self.commit) } else { E::u32(page, self.commit) as u64 }
    }
}

/// How many events were lost just before a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    None,
    Count(u64),
    Unknown,
}

/// The parts of a page.
pub(crate) struct Page<'a> {
    pub(crate) time: u64,
    pub(crate) loss: Loss,
    pub(crate) data: &'a [u8],
}

impl<'a> Page<'a> {
    /// Split `bytes`, which are one page or, where the data was cut off, its beginning. `None` if
    /// it claims more data than a page of `size` bytes holds: then nothing in it can be trusted.
    #[inline]
    pub(crate) fn parse<E: Endian>(
        layout: &PageLayout,
        bytes: &'a [u8],
        size: usize,
    ) -> Option<Page<'a>> {
        let commit = layout.commit_word::<E>(bytes);
        if bytes.len() < layout.data
            || (commit & COMMIT_BYTES) as usize > size.checked_sub(layout.data)?
        {
            return None;
        }
        let time = E::u64(bytes, 0);
        let end = layout.data + (commit & COMMIT_BYTES) as usize;
        let loss = match (commit & MISSED_EVENTS != 0, commit & MISSED_STORED != 0) {
            (false, _) => Loss::None,
            (true, true) if layout.long == 8 => Loss::Count(E::u64(bytes, end)),
            (true, true) => Loss::Count(E::u32(bytes, end) as u64),
            (true, false) => Loss::Unknown,
        };
        // A stored count that is 0 or absurd is treated as unknown.
        let loss = match loss {
            Loss::Count(n) if n == 0 || n > u32::MAX as u64 => Loss::Unknown,
            other => other,
        };
        Some(Page { time, loss, data: &bytes[layout.data..end.min(bytes.len())] })
    }

    /// Its records.
    #[inline]
    pub(crate) fn records<E: Endian>(&self) -> Records<'a, E> {
        let (data, time) = (self.data, self.time);
        Records { data, pos: 0, head: 0, time, broken: false, endian: PhantomData }
    }
}

/// Walks the records of a page. [`Records::time`] is the time of the latest record returned.
pub(crate) struct Records<'a, E> {
    data: &'a [u8],
    pos: usize,
    /// Offset of the latest record returned, including its header.
    pub(crate) head: usize,
    /// In the units of the ring buffer's clock.
    pub(crate) time: u64,
    /// The walk ended at bytes that are no record.
    pub(crate) broken: bool,
    endian: PhantomData<E>,
}

impl<'a, E: Endian> Records<'a, E> {
    /// The payload of the next event, from `common_type` on.
    #[inline(always)]
    pub(crate) fn next_payload(&mut self) -> Option<&'a [u8]> {
        loop {
            let word = u32_at::<E>(self.data, self.pos)?;
            let (kind, delta) =
                if E::BIG { (word >> 27, word & 0x7ff_ffff) } else { (word & 31, word >> 5) };
            if let 1..=28 = kind {
                self.time = self.time.wrapping_add(delta as u64);
                return self.take(4, kind as usize * 4);
            }
            match self.other(kind, delta) {
                Some((skip, Some(len))) => return self.take(skip, len),
                Some((skip, None)) => self.pos += skip,
                None => return None,
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, skip: usize, len: usize) -> Option<&'a [u8]> {
        let from = self.pos + skip;
        match self.data.get(from..from + len) {
            Some(payload) => {
                self.head = self.pos;
                self.pos = from + len;
                Some(payload)
            }
            None => {
                self.broken = true;
                self.pos = self.data.len();
                None
            }
        }
    }

    /// Handles the rarer records: returns the bytes to skip and, if an event follows, its length.
    /// `None` ends the page.
    fn other(&mut self, kind: u32, delta: u32) -> Option<(usize, Option<usize>)> {
        let Some(first) = u32_at::<E>(self.data, self.pos + 4) else {
            // Padding at the very end of a page has no room for its length word.
            self.broken = kind != 29;
            self.pos = self.data.len();
            return None;
        };
        let delta = delta as u64;
        match kind {
            // Padding: an event the kernel discarded, or the unused end of a page. trace-cmd and
            // the kernel add its delta; the kernel does not if it is the 1 that means "none".
            29 => {
                self.time = self.time.wrapping_add(delta);
                if delta == 0 || first as usize > self.data.len() - self.pos - 4 {
                    // Lengths that reach past the end of the page do occur, and mean the page's
                    // end.
                    self.pos = self.data.len();
                    return None;
                }
                Some((4 + first as usize, None))
            }
            30 => {
                self.time = self.time.wrapping_add(((first as u64) << 27) + delta);
                Some((8, None))
            }
            31 => {
                self.time = absolute(((first as u64) << 27) + delta, self.time);
                Some((8, None))
            }
            _ if first >= 4 => {
                self.time = self.time.wrapping_add(delta);
                Some((8, Some((first as usize - 4).next_multiple_of(4))))
            }
            _ => {
                self.broken = true;
                self.pos = self.data.len();
                None
            }
        }
    }
}

#[inline(always)]
fn u32_at<E: Endian>(data: &[u8], at: usize) -> Option<u32> {
    let word = data.get(at..)?.first_chunk::<4>()?;
    Some(if E::BIG { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) })
}

/// The 59 bits of an absolute time stamp completed from the time before it, as the kernel's
/// `rb_fix_abs_ts` does: a stamp that would lie in the past has wrapped.
fn absolute(low: u64, before: u64) -> u64 {
    let msb = before & TIME_MSB;
    if msb == 0 {
        return low;
    }
    let ts = low & !TIME_MSB | msb;
    if ts < before { ts.wrapping_add(1 << 59) } else { ts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_tracepoint::{Big, Little};

    const PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

    fn le(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// A page's data and the (time, first payload byte) of each of its events.
    fn walk<E: Endian>(time: u64, data: &[u8]) -> (Vec<(u64, usize)>, bool) {
        let mut r =
            Records::<E> { data, pos: 0, head: 0, time, broken: false, endian: PhantomData };
        let mut out = Vec::new();
        while let Some(p) = r.next_payload() {
            out.push((r.time, p.len()));
        }
        (out, r.broken)
    }

    #[test]
    fn layouts_come_from_the_text() {
        let l = PageLayout::parse(PAGE).unwrap();
        assert_eq!(l, PageLayout { commit: 8, long: 8, data: 16, page: 4096 });
        assert_eq!(PageLayout::default_for(4).header(), 12);
        assert_eq!(PageLayout::parse("rubbish"), None);
        assert_eq!(PageLayout::parse(&PAGE.replace("offset:16", "offset:99999")), None);
    }

    #[test]
    fn every_kind_of_record() {
        let data = le(&[
            1 | 5 << 5,
            0xaaaa, // an event of 4 bytes
            30 | 3 << 5,
            1, // time extend: 2^27 + 3
            10 << 5,
            4 + 5,
            0,
            0, // an event of 5 bytes, rounded up
            29 | 2 << 5,
            8,
            0, // discarded event: 12 bytes in all
            1 | 1 << 5,
            0xbbbb,
            31 | 7 << 5,
            2, // absolute: 2^28 + 7
            1,
            0xcccc,
        ]);
        let a = 1000 + 5;
        let b = a + (1 << 27) + 3 + 10;
        assert_eq!(
            walk::<Little>(1000, &data),
            (vec![(a, 4), (b, 8), (b + 3, 4), ((1 << 28) + 7, 4)], false)
        );
        // The same page of a big-endian machine: the bit fields are numbered from the other end.
        let big: Vec<u8> = data
            .chunks(4)
            .enumerate()
            .flat_map(|(i, w)| {
                let w = u32::from_le_bytes([w[0], w[1], w[2], w[3]]);
                let header = [0, 2, 4, 8, 11, 13, 15].contains(&i);
                (if header { w.rotate_right(5) } else { w }).to_be_bytes()
            })
            .collect();
        assert_eq!(walk::<Big>(1000, &big), walk::<Little>(1000, &data));
    }

    #[test]
    fn ends_that_are_no_damage_and_ends_that_are() {
        assert_eq!(walk::<Little>(0, &le(&[29, 0])), (vec![], false), "null event");
        assert_eq!(
            walk::<Little>(0, &le(&[29 | 1 << 5, 4000])),
            (vec![], false),
            "padding past the page"
        );
        assert_eq!(
            walk::<Little>(0, &le(&[29 | 1 << 5])),
            (vec![], false),
            "padding without length"
        );
        assert_eq!(walk::<Little>(0, &le(&[5])), (vec![], true), "payload past the page");
        assert_eq!(walk::<Little>(0, &le(&[0, 3])), (vec![], true), "length below its own size");
        assert_eq!(walk::<Little>(0, &le(&[30])), (vec![], true), "time extend cut");
        assert_eq!(walk::<Little>(0, &le(&[0, u32::MAX])), (vec![], true));
    }

    #[test]
    fn absolute_stamps_keep_the_upper_bits() {
        assert_eq!(absolute(5, 100), 5);
        assert_eq!(absolute(5, 1 << 60), (1 << 60) + 5);
        assert_eq!(absolute(5, (1 << 60) + 6), (1 << 60) + (1 << 59) + 5);
    }

    #[test]
    fn losses() {
        let layout = PageLayout::parse(PAGE).unwrap();
        let page = |commit: u64, stored: u64| {
            let mut p = vec![0; 4096];
            p[8..16].copy_from_slice(&commit.to_le_bytes());
            p[24..32].copy_from_slice(&stored.to_le_bytes());
            Page::parse::<Little>(&layout, &p, 4096).map(|p| (p.loss, p.data.len()))
        };
        // The kernel adds sign-extended ints to a 64-bit commit.
        assert_eq!(page(8 + (-1i64 << 31) as u64 + (1 << 30), 77), Some((Loss::Count(77), 8)));
        assert_eq!(page(8 + (1 << 31), 77), Some((Loss::Unknown, 8)));
        assert_eq!(page(8, 77), Some((Loss::None, 8)));
        assert_eq!(page(4081, 0), None);
    }
}
