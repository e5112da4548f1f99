//! How large images are, by their headers.

use tfarrow_dataset::ImageHeader;

/// How large the images of a feature are.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageAccumulator {
    /// Those whose headers can be read.
    pub(crate) read: u64,
    /// Those whose headers cannot.
    pub(crate) damaged: u64,
    /// The narrowest and the widest, the lowest and the highest, in pixels.
    pub(crate) sizes: Option<[(u32, u32); 2]>,
}

impl ImageAccumulator {
    /// Adds what looks like an image.
    pub(crate) fn add(&mut self, image: &[u8]) {
        match ImageHeader::read(image) {
            Some(ImageHeader { width, height, .. }) => {
                self.read += 1;
                self.widen([(width, width), (height, height)]);
            }
            None => self.damaged += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.read += other.read;
        self.damaged += other.damaged;
        other.sizes.into_iter().for_each(|sizes| self.widen(sizes));
    }

    fn widen(&mut self, more: [(u32, u32); 2]) {
        let held = self.sizes.get_or_insert(more);
        held.iter_mut().zip(more).for_each(|(held, more)| *held = (held.0.min(more.0), held.1.max(more.1)));
    }
}
