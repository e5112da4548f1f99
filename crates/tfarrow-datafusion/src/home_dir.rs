//! Expansion of a leading `~/` in names of files to the user's home directory, as in a shell.

/// The home directory of the current user.
pub struct HomeDir(String);

impl HomeDir {
    /// The home directory of the current user; `None` if the system has none for the user.
    pub fn of_user() -> Option<Self> {
        let folder = std::env::home_dir()?
            .to_str()?
            .trim_end_matches('/')
            .to_owned();
        Some(Self(folder))
    }

    /// Expands `~` and `~/..`. Home directories of other users (`~name`) are not supported.
    pub fn expand(&self, name: &mut String) {
        if let Some(rest) = name.strip_prefix('~')
            && (rest.is_empty() || rest.starts_with('/'))
        {
            *name = format!("{}{rest}", self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_leading_tilde_of_the_user_is_expanded() {
        let home = HomeDir("/home/me".to_owned());
        for (name, expanded) in [
            ("~/x", "/home/me/x"),
            ("~", "/home/me"),
            ("~you/x", "~you/x"),
            ("a/~/x", "a/~/x"),
            ("", ""),
        ] {
            let mut name = name.to_owned();
            home.expand(&mut name);
            assert_eq!(name, expanded);
        }
    }
}
