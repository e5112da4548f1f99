//! The `console` blocks of README.md and docs/ show the output of the program, standard error
//! included.
//!
//! `TFARROW_UPDATE=1 cargo test documents` writes the output into the documents for review.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::{path, root};

/// Each command of the `console` blocks of a document, and the output that follows it.
fn examples(document: &str) -> Vec<(&str, &str)> {
    let blocks = document
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let commands = blocks.flat_map(|block| block.trim_start_matches("$ ").split("\n$ "));
    commands
        .filter_map(|command| command.split_once('\n'))
        .map(|(command, output)| (command, output.trim_end()))
        .collect()
}

/// The output of a shell command, with the program on its path.
fn printed(command: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_tfarrow"))
        .parent()
        .unwrap()
        .to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    let folders = env::join_paths([folder].into_iter().chain(env::split_paths(&others))).unwrap();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("exec 2>&1; {command}")])
        .current_dir(root())
        .env("PATH", folders);
    let output = shell.env_remove("CLICOLOR_FORCE").output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

fn documents() -> Vec<PathBuf> {
    let pages = fs::read_dir(path("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pages = pages.filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.chain([path("README.md")]).collect()
}

#[test]
fn console_blocks_show_the_output_of_the_program() {
    let mut count = 0;
    for path in documents() {
        let document = fs::read_to_string(&path).unwrap();
        let mut updated = document.clone();
        for (command, expect) in examples(&document) {
            let found = printed(command);
            updated = updated.replacen(
                &format!("$ {command}\n{expect}\n"),
                &format!("$ {command}\n{found}\n"),
                1,
            );
            if env::var_os("TFARROW_UPDATE").is_none() {
                assert_eq!(found, expect, "{}: {command}", path.display());
            }
            count += 1;
        }
        if updated != document {
            fs::write(&path, updated).unwrap();
        }
    }
    assert!(count >= 8, "{count} examples");
}
