//! Where canonical bytes go: into the hash, or, inside a map, into memory until the map's entries can be ordered.

use std::cmp::Ordering;

use sha2::{Digest, Sha256};

use super::tag;

/// Small writes are gathered here. A multiple of SHA-256's block, so that full buffers are hashed where they lie.
const BUFFER: usize = 256;

/// A hash over canonical bytes.
pub(super) struct Sink {
    hash: Sha256,
    buffer: [u8; BUFFER],
    /// How much of `buffer` is used.
    filled: usize,
    /// The entries of the maps that are open, inner ones after outer ones.
    arena: Vec<u8>,
    entries: Vec<Entry>,
    open_maps: usize,
}

/// An entry of a map, in the arena.
#[derive(Clone, Copy)]
struct Entry {
    start: usize,
    /// Where its content begins: behind tag and length of a key that is a string, elsewhere at the start. Entries are
    /// in the order of their contents, so that a map with sorted keys is in order already.
    content: usize,
    end: usize,
    /// The first bytes of the content, at hand for comparing.
    prefix: u64,
}

impl Entry {
    fn cmp(&self, other: &Self, arena: &[u8]) -> Ordering {
        let bytes = |entry: &Self| arena.get(entry.content..entry.end).unwrap_or_default();
        let head = |entry: &Self| arena.get(entry.start..entry.content).unwrap_or_default();
        self.prefix
            .cmp(&other.prefix)
            .then_with(|| bytes(self).cmp(bytes(other)))
            .then_with(|| head(self).cmp(head(other)))
    }
}

/// A map that was opened in a [`Sink`].
pub(super) struct OpenMap {
    arena: usize,
    entries: usize,
}

impl Sink {
    pub(super) fn new(domain: [u8; 8]) -> Self {
        let mut sink = Self {
            hash: Sha256::new(),
            buffer: [0; BUFFER],
            filled: 0,
            arena: Vec::new(),
            entries: Vec::new(),
            open_maps: 0,
        };
        sink.raw(&domain);
        sink
    }

    /// The digest of what was written. By reference, because a move would copy the whole buffer.
    pub(super) fn finish(&mut self) -> [u8; 32] {
        self.flush();
        self.hash.finalize_reset().into()
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        if self.open_maps > 0 {
            self.arena.push(byte);
        } else {
            self.raw(&[byte]);
        }
    }

    #[inline]
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        if self.open_maps > 0 {
            self.arena.extend_from_slice(bytes);
        } else if let Some(slot) = self.slot(bytes.len()) {
            slot.copy_from_slice(bytes);
            self.filled += bytes.len();
        } else {
            self.overflow(bytes);
        }
    }

    /// A tag and the first `significant` of eight bytes.
    #[inline]
    pub(super) fn word(&mut self, tag: u8, bytes: [u8; 8], significant: usize) {
        // All eight are copied, since a copy of a fixed length is a single move.
        if self.open_maps > 0 {
            self.arena.push(tag);
            let end = self.arena.len() + significant;
            self.arena.extend_from_slice(&bytes);
            self.arena.truncate(end);
        } else if let Some([first, rest @ ..]) = self.slot(9) {
            *first = tag;
            rest.copy_from_slice(&bytes);
            self.filled += 1 + significant;
        } else {
            self.byte(tag);
            self.raw(bytes.get(..significant).unwrap_or(&bytes));
        }
    }

    /// A string: up to 63 bytes with the length in the tag.
    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.text_header(text.len());
        self.raw(text.as_bytes());
    }

    #[inline]
    pub(super) fn text_header(&mut self, len: usize) {
        if let Ok(short @ 0..tag::SHORT_TEXTS) = u8::try_from(len) {
            self.byte(tag::SHORT_TEXT | short);
        } else {
            self.byte(tag::TEXT);
            self.length(len);
        }
    }

    /// A length in groups of seven bits, lowest first, the top bit set on all but the last.
    pub(super) fn length(&mut self, mut len: usize) {
        while let Some(rest @ 1..) = len.checked_shr(7) {
            self.byte(low_bits(len) | 0x80);
            len = rest;
        }
        self.byte(low_bits(len));
    }

    #[inline]
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.buffer.get_mut(self.filled..self.filled + len)
    }

    fn flush(&mut self) {
        self.hash.update(self.buffer.get(..self.filled).unwrap_or(&self.buffer));
        self.filled = 0;
    }

    /// `bytes` do not fit into what is left of the buffer.
    #[cold]
    fn overflow(&mut self, bytes: &[u8]) {
        let (head, tail) = bytes.split_at(bytes.len().min(BUFFER - self.filled));
        if let Some(slot) = self.slot(head.len()) {
            slot.copy_from_slice(head);
            self.filled += head.len();
        }
        self.flush();
        // What fills the buffer goes past it, in whole blocks; the rest waits for more.
        let (blocks, rest) = tail.split_at(tail.len() - tail.len() % BUFFER);
        self.hash.update(blocks);
        if let Some(slot) = self.slot(rest.len()) {
            slot.copy_from_slice(rest);
            self.filled = rest.len();
        }
    }

    /// From here on bytes are kept, not hashed.
    pub(super) fn open_map(&mut self) -> OpenMap {
        if self.open_maps == 0 {
            // Most maps grow no further.
            self.arena.reserve(512);
            self.entries.reserve(16);
        }
        self.open_maps += 1;
        OpenMap { arena: self.arena.len(), entries: self.entries.len() }
    }

    pub(super) fn open_entry(&mut self) {
        let start = self.arena.len();
        self.entries.push(Entry { start, content: start, end: start, prefix: 0 });
    }

    /// The key is written. Gives its text if it is a string or the name of a variant.
    pub(super) fn close_key(&mut self) -> Option<&[u8]> {
        let entry = self.entries.last_mut()?;
        let text = tag::text(self.arena.get(entry.start..)?)?;
        entry.content = self.arena.len() - text.len();
        Some(text)
    }

    pub(super) fn close_entry(&mut self) {
        let Some(entry) = self.entries.last_mut() else { return };
        entry.end = self.arena.len();
        let content = self.arena.get(entry.content..).unwrap_or_default();
        entry.prefix = match content.first_chunk() {
            Some(chunk) => u64::from_be_bytes(*chunk),
            None => content.iter().rfold(0, |prefix, byte| prefix >> 8 | u64::from(*byte) << 56),
        };
    }

    pub(super) fn drop_entry(&mut self) {
        if let Some(entry) = self.entries.pop() {
            self.arena.truncate(entry.start);
        }
    }

    /// Orders the entries and hands them on: to the hash, or to the entry of the map around this one.
    pub(super) fn close_map(&mut self, map: &OpenMap) {
        let Self { arena, entries, .. } = self;
        let content = arena.len();
        let order = entries.get_mut(map.entries..).unwrap_or_default();
        if !order.is_sorted_by(|a, b| a.cmp(b, arena).is_le()) {
            order.sort_unstable_by(|a, b| a.cmp(b, arena));
            // A sorted copy behind the content takes its place.
            for entry in &*order {
                arena.extend_from_within(entry.start..entry.end);
            }
            arena.drain(map.arena..content);
        }
        self.entries.truncate(map.entries);
        self.open_maps -= 1;
        if self.open_maps == 0 {
            let arena = std::mem::take(&mut self.arena);
            self.raw(&arena);
            self.arena = arena;
            self.arena.clear();
        }
    }
}

/// The lowest seven bits.
fn low_bits(len: usize) -> u8 {
    let [byte, ..] = len.to_le_bytes();
    byte & 0x7f
}
