//! Which implementation of the hot loops to use. The codec takes it as a value; callers decide.

/// An implementation of histogram and encoder. All give the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Plain Rust, one weight a step: the reference that every other kernel is compared with.
    #[default]
    Scalar,
}
