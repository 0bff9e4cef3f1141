//! Which values are left out: a cursor through the skip paths that costs no memory.

/// Paths of serialized names that are left out: each path is the names from the argument downwards, without the
/// argument's own. An empty path leaves out the whole argument.
pub type Skip = &'static [&'static [&'static str]];

/// How far the names from the argument to the present value agree with the paths.
///
/// All paths that agree so far begin with the same names, so that beginning alone says which they are: however many
/// paths there are, the cursor is one slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    paths: Skip,
    /// The names gone through, or `None` when no path begins with them.
    prefix: Option<&'static [&'static str]>,
}

impl Cursor {
    /// At an argument.
    pub(super) const fn new(paths: Skip) -> Self {
        Self { paths, prefix: if paths.is_empty() { None } else { Some(&[]) } }
    }

    /// No path is followed here, whatever names come.
    pub(super) const fn lost(self) -> Self {
        Self { paths: self.paths, prefix: None }
    }

    /// Whether some path may still match further down.
    pub(super) const fn is_live(self) -> bool {
        self.prefix.is_some()
    }

    /// One name further down, or `None` when a path ends there: the value is left out.
    pub(super) fn enter(self, name: &[u8]) -> Option<Self> {
        let Some(prefix) = self.prefix else { return Some(self) };
        let mut below = self.lost();
        for path in self.paths {
            let Some([next, rest @ ..]) = path.strip_prefix(prefix) else { continue };
            if next.as_bytes() == name {
                if rest.is_empty() {
                    return None;
                }
                below.prefix = path.get(..=prefix.len());
            }
        }
        Some(below)
    }
}
