//! Rules about the sources and the dependencies of the codec.

use std::{fs, path::Path, process::Command};

use tfarrow_testkit::golden;

#[test]
fn depends_on_no_runtime_engine_or_compressor() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args([
        "tree",
        "--package",
        "tfarrow-codec",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--offline",
    ]);
    let output = tree
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(
        names.contains(&"tfarrow-codec") && names.contains(&"arrow-array"),
        "{tree}"
    );
    for foreign in [
        "tokio",
        "futures",
        "async-trait",
        "datafusion",
        "parquet",
        "object_store",
        "flate2",
    ] {
        let found = names
            .iter()
            .find(|name| **name == foreign || name.starts_with(&format!("{foreign}-")));
        assert_eq!(found, None, "the codec depends on {foreign}");
    }
}

#[test]
fn uses_no_file_network_thread_clock_or_environment() {
    let sources = golden::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    assert!(sources.len() > 10);
    for source in sources {
        let text = fs::read_to_string(&source).unwrap();
        // These take a source or an output from their caller, of which they use only the trait.
        let wraps = [
            ("decode/reader.rs", "usestd::{io::BufRead,sync::Arc};"),
            ("encode/writer.rs", "usestd::io::Write;"),
            ("infer/reader.rs", "usestd::io::{self,Read};"),
        ];
        let wraps = wraps
            .into_iter()
            .find(|(name, _)| source.ends_with(Path::new("src").join(name)));
        let text = wraps.map_or(code(&text), |(_, trait_)| code(&text).replace(trait_, ""));
        for module in std_modules(&text) {
            let forbidden =
                ["fs", "net", "thread", "time", "env", "process", "io"].contains(&module.as_str());
            assert!(!forbidden, "{} mentions std::{module}", source.display());
        }
    }
}

/// Only the modules of `frame` go from header to header, in one loop. Other modules at most add up
/// lengths of frames.
#[test]
fn has_one_framing_loop() {
    let sources = golden::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let mut loops = 0;
    for source in sources {
        let code = code(&fs::read_to_string(&source).unwrap());
        let product = code.split("#[cfg(test)]").next().unwrap();
        if source.ends_with("tests.rs") {
            continue;
        }
        let frames = source.components().any(|part| part.as_os_str() == "frame");
        if !frames {
            for name in [
                "Framer",
                "Span{",
                "first_chunk::<HEADER>",
                "first_chunk::<{frame::HEADER",
                "frame::length(",
            ] {
                assert!(
                    !product.contains(name),
                    "{} mentions {name}",
                    source.display()
                );
            }
            let adds_up = source.ends_with("src/encode/encoder/mod.rs");
            assert!(
                adds_up || !product.contains("HEADER"),
                "{} mentions HEADER",
                source.display()
            );
        }
        loops += product.matches("whileletSome(frame)=self.need(").count();
    }
    assert_eq!(loops, 1);
}

/// Returns code without comments and white space.
fn code(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .collect()
}

/// Returns the modules of the standard library that code names, by path or in a group.
fn std_modules(text: &str) -> Vec<String> {
    let code = code(text);
    let mut modules = Vec::new();
    for (at, path) in code.match_indices("std::") {
        let rest = &code[at + path.len()..];
        let group = rest.strip_prefix('{').map(first_names);
        modules.extend(group.unwrap_or_else(|| vec![name(rest)]));
    }
    modules
}

/// Returns the first name of each path in a group, up to its closing brace.
fn first_names(group: &str) -> Vec<String> {
    let mut names = vec![name(group)];
    let mut depth = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

fn name(path: &str) -> String {
    path.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

#[test]
fn modules_are_found_in_paths_and_groups() {
    let text = "// std::fs\nuse std::{\n    collections::{HashMap, hash_map::Entry},\n    env,\n    time::Instant,\n};\nstd::thread::sleep(x);";
    assert_eq!(
        std_modules(text),
        ["collections", "env", "time", "", "thread"]
    );
}
