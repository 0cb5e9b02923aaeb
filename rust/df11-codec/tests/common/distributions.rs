//! Weights as models have them, and worse.

/// Makes a given number of BF16 weights.
pub type Distribution = fn(usize) -> Vec<u8>;

/// The distributions that kernels are tested with.
pub const ALL: [(&str, Distribution); 6] = [
    ("gaussian", gaussian),
    ("row sigma", row_sigma),
    ("5 % zeros", zeros),
    ("student t", student_t),
    ("uniform bits", uniform_bits),
    ("ladder", ladder),
];

/// Names a file of little-endian BF16 weights, such as `scripts/real_weights.py` makes.
const REAL_WEIGHTS: &str = "DF11_REAL_WEIGHTS";

/// What rates are measured with: all distributions with `n` weights, a unit of few, and the weights of a file.
pub fn measured(n: usize) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let made = ALL.into_iter().map(move |(name, make)| (name, make(n)));
    let few = std::iter::once_with(|| ("few weights", gaussian(1000)));
    let real = std::env::var_os(REAL_WEIGHTS).into_iter().map(move |path| {
        let mut weights = std::fs::read(path).expect("a file of weights");
        weights.truncate(2 * n);
        ("real weights", weights)
    });
    made.chain(few).chain(real)
}

/// Weights of one row of a matrix.
const ROW: usize = 4096;

struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(0x2545_F491_4F6C_DD1D)
    }

    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// In (0, 1].
    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let angle = std::f64::consts::TAU * self.uniform();
        (-2.0 * self.uniform().ln()).sqrt() * angle.cos()
    }
}

/// Rounds to BF16, ties to even.
fn bf16(value: f64) -> [u8; 2] {
    let bits = (value as f32).to_bits();
    ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).to_le_bytes()[..2]
        .try_into()
        .unwrap_or_default()
}

fn weights(n: usize, mut next: impl FnMut(&mut Random, usize) -> f64) -> Vec<u8> {
    let mut random = Random::new();
    (0..n).flat_map(|i| bf16(next(&mut random, i))).collect()
}

/// Normal, sigma 0.02.
fn gaussian(n: usize) -> Vec<u8> {
    weights(n, |random, _| 0.02 * random.normal())
}

/// Normal, with a sigma from 0.005 to 0.08 for each row.
fn row_sigma(n: usize) -> Vec<u8> {
    let mut sigma = 0.0;
    weights(n, |random, i| {
        if i % ROW == 0 {
            sigma = 0.005 * 16f64.powf(random.uniform());
        }
        sigma * random.normal()
    })
}

/// Normal, one in twenty exactly zero.
fn zeros(n: usize) -> Vec<u8> {
    weights(n, |random, _| {
        if random.bits() % 20 == 0 {
            0.0
        } else {
            0.02 * random.normal()
        }
    })
}

/// Student's t with 3 degrees of freedom, scaled to 0.02: heavy tails.
fn student_t(n: usize) -> Vec<u8> {
    weights(n, |random, _| {
        let chi_squared: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
        0.02 * random.normal() / (chi_squared / 3.0).sqrt()
    })
}

/// Random words with exponents that DF11 can hold.
fn uniform_bits(n: usize) -> Vec<u8> {
    let mut random = Random::new();
    let word = |bits: u64| (bits as u16 & 0x807F) | (((bits >> 16) % 240) as u16) << 7;
    (0..n)
        .flat_map(|_| word(random.bits()).to_le_bytes())
        .collect()
}

/// Counts like Fibonacci numbers, of 33 exponents where there are enough weights (9,227,464): codes of 1 to 32 bits.
pub fn ladder(n: usize) -> Vec<u8> {
    let mut exponents = Vec::with_capacity(n);
    let mut counts = (1, 1);
    let mut exponent = 100;
    while exponent < 133 && exponents.len() + counts.0 <= n {
        exponents.resize(exponents.len() + counts.0, exponent);
        counts = (counts.1, counts.0 + counts.1);
        exponent += 1;
    }
    exponents.resize(n, exponent - 1);
    let mut random = Random::new();
    for i in (1..n).rev() {
        exponents.swap(i, (random.bits() % (i as u64 + 1)) as usize);
    }
    let word = |exponent: u8| random.bits() as u16 & 0x807F | u16::from(exponent) << 7;
    exponents
        .into_iter()
        .map(word)
        .flat_map(u16::to_le_bytes)
        .collect()
}
