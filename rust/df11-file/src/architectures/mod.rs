//! Architectures are data: TOML files that say which tensors form a unit and how a model is recognised.

mod definition;
mod detect;
mod layout;
mod library;
mod shapes;

pub(crate) use definition::weight_names;
pub use definition::{Architecture, Loader};
pub use detect::Names;
pub use layout::{Config, Layout};
pub use library::{Asked, Choice, Library, Summary};
pub(crate) use library::{ambiguous, contradiction};
