//! Suggestions for misspelled names.

/// A hint at the name that is most similar to `name`; empty if none is similar. The hint is a part
/// of a message.
pub fn similar<T: AsRef<str>>(name: &str, known: impl IntoIterator<Item = T>) -> String {
    nearest(name, known).map_or_else(String::new, |known| {
        format!(" (did you mean {}?)", known.as_ref())
    })
}

/// The name that is most similar to `name`, the first one of several; `None` if none is similar.
pub fn nearest<T: AsRef<str>>(name: &str, known: impl IntoIterator<Item = T>) -> Option<T> {
    let name = name.to_lowercase();
    // A third of the letters may differ.
    let most = (name.chars().count() / 3).max(1);
    let mut nearest: Option<(usize, T)> = None;
    for known in known {
        let distance = strsim::osa_distance(&name, &known.as_ref().to_lowercase());
        let is_nearer = nearest.as_ref().is_none_or(|(least, _)| distance < *least);
        if distance <= most && is_nearer {
            nearest = Some((distance, known));
        }
    }
    nearest.map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let similar = |name| similar(name, ["price", "city", "image/height", "label"]);
        assert_eq!(similar("pirce"), " (did you mean price?)");
        assert_eq!(similar("Citty"), " (did you mean city?)");
        assert_eq!(similar("image_height"), " (did you mean image/height?)");
        assert_eq!(similar("nosuch"), "");
        assert_eq!(similar(""), "");
    }
}
