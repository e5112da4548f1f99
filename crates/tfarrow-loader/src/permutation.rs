//! A keyed permutation of the numbers below a count, without a table.
//!
//! A Feistel network permutes the numbers of some bits, and is applied again while its result is not
//! below the count (cycle walking, Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
//! The round function is the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable
//! Pseudorandom Number Generators", 2014). It is no cipher: it has to look random, and nothing more.
//!
//! Orders of records are made of it. It must never change: a training run that is continued with a
//! later version would see other records. A test keeps some of its numbers.

/// The fractional part of the golden ratio, by which SplitMix64 advances.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Number of rounds. Even, so that the halves have their sizes again at the end.
const ROUNDS: usize = 6;
/// Least number of bits. A network of fewer has few permutations.
const LEAST_BITS: u32 = 8;

/// A permutation of the numbers below a count.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    count: u64,
    /// Number of bits of the first half; the second one has as many, or one more.
    first_bits: u32,
    second_bits: u32,
    keys: [u64; ROUNDS],
}

/// Mixes the bits of a number.
fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The key of some numbers, such as a seed and an epoch.
pub(crate) fn key(numbers: &[u64]) -> u64 {
    let mut key = 0;
    for number in numbers {
        key = mix(key ^ mix(number.wrapping_add(GOLDEN)));
    }
    key
}

impl Permutation {
    pub(crate) fn new(count: u64, key: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let bits = bits.max(LEAST_BITS);
        let mut keys = [0; ROUNDS];
        let mut state = key;
        for key in &mut keys {
            state = state.wrapping_add(GOLDEN);
            *key = mix(state);
        }
        Self {
            count,
            first_bits: bits / 2,
            second_bits: bits - bits / 2,
            keys,
        }
    }

    /// The number at the place of `number`, which is below the count.
    pub(crate) fn of(&self, number: u64) -> u64 {
        let mut found = number;
        // The cycle of a number comes back to it at the latest.
        loop {
            found = self.forward(found);
            if found < self.count || found == number {
                return found;
            }
        }
    }

    /// The number at whose place `number` is.
    pub(crate) fn inverse(&self, number: u64) -> u64 {
        let mut found = number;
        loop {
            found = self.backward(found);
            if found < self.count || found == number {
                return found;
            }
        }
    }

    fn forward(&self, number: u64) -> u64 {
        let mut first = number >> self.second_bits;
        let mut second = number & ones(self.second_bits);
        let mut bits = self.first_bits;
        for key in self.keys {
            let other = (first ^ mix(second ^ key)) & ones(bits);
            first = second;
            second = other;
            bits = self.bits() - bits;
        }
        first << self.second_bits | second
    }

    fn backward(&self, number: u64) -> u64 {
        let mut first = number >> self.second_bits;
        let mut second = number & ones(self.second_bits);
        let mut bits = self.first_bits;
        for key in self.keys.iter().rev() {
            bits = self.bits() - bits;
            let other = (second ^ mix(first ^ key)) & ones(bits);
            second = first;
            first = other;
        }
        first << self.second_bits | second
    }

    fn bits(&self) -> u32 {
        self.first_bits + self.second_bits
    }
}

/// A number of this many ones, at most 32.
fn ones(bits: u32) -> u64 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn each_number_is_at_one_place(count in 1_u64..3_000, seed: u64) {
            let permutation = Permutation::new(count, seed);
            let mut numbers: Vec<_> = (0..count).map(|number| permutation.of(number)).collect();
            for (number, found) in numbers.iter().enumerate() {
                prop_assert_eq!(permutation.inverse(*found), number as u64);
            }
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn large_counts_have_an_inverse(count in 1_u64.., seed: u64, number: u64) {
            let permutation = Permutation::new(count, seed);
            let number = number % count;
            let found = permutation.of(number);
            assert!(found < count);
            prop_assert_eq!(permutation.inverse(found), number);
        }
    }

    #[test]
    fn the_numbers_never_change() {
        let numbers = |count, key| -> Vec<u64> {
            let permutation = Permutation::new(count, key);
            (0..10).map(|number| permutation.of(number)).collect()
        };
        // Computed by another implementation, in Python.
        assert_eq!(key(&[1, 0]), 14_441_215_724_402_424_410);
        assert_eq!(numbers(10, key(&[1, 0])), [7, 0, 8, 2, 9, 4, 6, 3, 1, 5]);
        assert_eq!(
            numbers(1_000_000_007, key(&[2, 3])),
            [
                567_274_230,
                194_180_855,
                549_939_977,
                753_651_394,
                953_288_726,
                782_942_527,
                551_735_358,
                178_126_501,
                898_510_403,
                417_190_206
            ]
        );
    }
}
