//! Elements of slices at places that the code before has checked.
//!
//! A place outside of the slice is a bug, which panics in tests and while fuzzing. In a release
//! build, which must not panic, there is nothing at such a place.

use std::slice::SliceIndex;

/// The elements in `range`, which is within the slice.
#[inline(always)]
pub(crate) fn part<T, R>(slice: &[T], range: R) -> &[T]
where
    R: SliceIndex<[T], Output = [T]>,
{
    let part = slice.get(range);
    debug_assert!(part.is_some(), "a range beyond {} elements", slice.len());
    part.unwrap_or_default()
}

/// The element at `index`, which is within the slice.
#[inline(always)]
pub(crate) fn item<T: Copy + Default>(slice: &[T], index: usize) -> T {
    let item = slice.get(index).copied();
    debug_assert!(item.is_some(), "{index} of {} elements", slice.len());
    item.unwrap_or_default()
}
