//! The accumulator of images: their sizes, read from their headers.

use serde::{Deserialize, Serialize};
use tfarrow_dataset::internals::ImageHeader;

/// The sizes of the images of one feature.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ImageAccumulator {
    /// Number of images with a readable header.
    pub(crate) read: u64,
    /// Number of values that begin as an image does but have no readable header.
    pub(crate) damaged: u64,
    /// Smallest and largest width, and smallest and largest height, in pixels.
    pub(crate) sizes: Option<[(u32, u32); 2]>,
}

impl ImageAccumulator {
    /// Adds a value that looks like an image.
    pub(crate) fn add(&mut self, image: &[u8]) {
        match ImageHeader::read(image) {
            Some(ImageHeader { width, height, .. }) => {
                self.read += 1;
                self.widen([(width, width), (height, height)]);
            }
            None => self.damaged += 1,
        }
    }

    /// Adds the sizes that another thread has accumulated.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.read += other.read;
        self.damaged += other.damaged;
        other.sizes.into_iter().for_each(|sizes| self.widen(sizes));
    }

    /// Extends the ranges of both sides.
    fn widen(&mut self, more: [(u32, u32); 2]) {
        let held = self.sizes.get_or_insert(more);
        held.iter_mut()
            .zip(more)
            .for_each(|(held, more)| *held = (held.0.min(more.0), held.1.max(more.1)));
    }
}
