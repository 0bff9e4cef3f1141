//! Which values are left out: a cursor through the skip paths that costs no memory.

/// Paths of serialized names that are left out: each path is the names from the argument downwards, without the
/// argument's own. An empty path leaves out the whole argument.
pub type Skip = &'static [&'static [&'static str]];

/// How far the names from the argument to the present value agree with the paths.
///
/// All paths that agree so far begin with the same names, so that beginning alone says which they are: however many
/// paths there are, the cursor is two slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// Empty when no path leads here.
    paths: Skip,
    /// The names gone through.
    prefix: &'static [&'static str],
}

/// What a name leads to.
pub(super) enum Step {
    /// The end of a path: the value is left out.
    Skip,
    /// A value inside which some path may end.
    Inside(Cursor),
}

impl Cursor {
    /// Where no path leads.
    pub(super) const LOST: Self = Self::new(&[]);

    /// At an argument.
    pub(super) const fn new(paths: Skip) -> Self {
        Self { paths, prefix: &[] }
    }

    /// Whether some path may still match further down.
    #[inline]
    pub(super) const fn is_live(self) -> bool {
        !self.paths.is_empty()
    }

    /// One name further down, or `None` when no path goes there.
    #[inline]
    pub(super) fn follow(self, name: &[u8]) -> Option<Step> {
        if self.is_live() { self.search(name) } else { None }
    }

    fn search(self, name: &[u8]) -> Option<Step> {
        let mut below = None;
        for path in self.paths {
            let Some([next, rest @ ..]) = path.strip_prefix(self.prefix) else { continue };
            if next.as_bytes() == name {
                if rest.is_empty() {
                    return Some(Step::Skip);
                }
                below = path.get(..=self.prefix.len());
            }
        }
        below.map(|prefix| Step::Inside(Self { paths: self.paths, prefix }))
    }
}
