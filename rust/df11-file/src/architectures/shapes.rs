//! Two-dimensional shapes of compressed weights, found again from the tensors that are not compressed. Nothing is guessed: what cannot be told, or is told
//! in two ways, is an error.

use super::{
    definition::{ShapeRecovery, ShapeRules, Side},
    detect::Names,
};

/// Rows and columns.
pub type Shape = [u64; 2];
/// What is missing or contradicts, as a sentence.
type Told<T> = Result<T, String>;

/// The length of one side, and where it is told.
struct Known {
    side: Side,
    length: u64,
    by: String,
}

impl ShapeRules {
    /// The shape of the weight at the path `module`, which belongs to `unit` and has so many `weights`. `plain`: the tensors that are not compressed.
    ///
    /// # Errors
    /// What is missing or contradicts, as a sentence.
    pub fn find(&self, unit: &str, module: &str, weights: u64, plain: &Names<'_>) -> Told<Shape> {
        let rule = self.rules.iter().find(|rule| rule.pattern.is_match(module));
        let by_bias = self.from_bias.then(|| bias(module, plain)).transpose()?;
        let by_rule = rule.map(|rule| rule.known(unit, plain)).transpose()?;
        let told = by_bias.flatten().into_iter().chain(by_rule.flatten());
        let mut found: Option<(Shape, String)> = None;
        for known in told {
            let shape = known.shape(weights)?;
            match &found {
                Some((other, by)) if *other != shape => {
                    return Err(format!(
                        "its shape would be {other:?} by {by}, and {shape:?} by {}",
                        known.by
                    ));
                }
                _ => found = Some((shape, known.by)),
            }
        }
        found.map(|(shape, _)| shape).ok_or_else(|| {
            let needs = rule.map(|rule| rule.tensors(unit).join(" or "));
            needs.map_or_else(
                || format!("the file does not hold {module}.bias, and the architecture has no shape rule for it"),
                |needs| format!("its shape follows from {needs}, which the file does not hold uncompressed"),
            )
        })
    }
}

impl Known {
    fn shape(&self, weights: u64) -> Told<Shape> {
        let other = weights.checked_div(self.length).unwrap_or(0);
        if other == 0 || other * self.length != weights {
            return Err(format!(
                "it has {weights} weights, which do not fit a side of {}, the length told by {}",
                self.length, self.by
            ));
        }
        Ok(match self.side {
            Side::Out => [self.length, other],
            Side::In => [other, self.length],
        })
    }
}

/// The rows that a bias tells, where there is one.
fn bias(module: &str, plain: &Names<'_>) -> Told<Option<Known>> {
    let by = format!("{module}.bias");
    let length = match plain.shape(&by) {
        None => return Ok(None),
        Some(&[length]) => length,
        Some(shape) => return Err(format!("{by} has the shape {shape:?}, so it tells no rows")),
    };
    let side = Side::Out;
    Ok(Some(Known { side, length, by }))
}

impl ShapeRecovery {
    /// The tensors of which any tells the length.
    fn tensors(&self, unit: &str) -> Vec<String> {
        let below = self.in_unit.iter().flatten();
        let below = below.map(|name| format!("{unit}.{name}"));
        self.key.iter().cloned().chain(below).collect()
    }

    /// The side that it tells; none where there is none of its tensors.
    fn known(&self, unit: &str, plain: &Names<'_>) -> Told<Option<Known>> {
        let mut found: Option<Known> = None;
        for by in self.tensors(unit) {
            let Some(shape) = plain.shape(&by) else {
                continue;
            };
            let length = shape
                .get(self.axis)
                .and_then(|side| side.checked_mul(self.factor));
            let Some(length) = length else {
                return Err(format!(
                    "{by} has the shape {shape:?}, which its shape rule does not expect"
                ));
            };
            match &found {
                Some(other) if other.length != length => {
                    return Err(format!(
                        "{} and {by} tell different lengths of a side",
                        other.by
                    ));
                }
                Some(_) => {}
                None => {
                    let side = self.side;
                    found = Some(Known { side, length, by });
                }
            }
        }
        Ok(found)
    }
}
