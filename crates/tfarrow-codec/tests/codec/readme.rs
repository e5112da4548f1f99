//! Runs the Rust examples of README.md and docs/recipes.md on files that are longer than one batch.

use std::{error::Error, fs, path::Path};

mod readme_example {
    include!("readme_example.rs");

    pub(super) fn run(path: &Path) -> Result<usize, Box<dyn Error>> {
        count_rows(path)
    }
}

mod recipes_example {
    include!("recipes_example.rs");

    pub(super) fn run(path: &Path) -> Result<usize, Box<dyn Error>> {
        count_rows(path)
    }
}

/// The function that both examples define.
type CountRows = fn(&Path) -> Result<usize, Box<dyn Error>>;

/// Frames of 128 bytes divide every power of two, those of 131 bytes none.
#[test]
fn the_examples_read_ten_megabytes() {
    for (name, length) in [("even", 112), ("odd", 115)] {
        let (mut file, mut records) = (Vec::new(), 0);
        while file.len() < 10 << 20 {
            tfarrow_codec::frame::write(&payload(length), &mut file);
            records += 1;
        }
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.tfrecord"));
        let examples: [CountRows; 2] = [readme_example::run, recipes_example::run];
        for count_rows in examples {
            fs::write(&path, &file).unwrap();
            assert_eq!(count_rows(&path).unwrap(), records);
            fs::write(&path, &file[..file.len() - 1]).unwrap();
            let error = count_rows(&path).unwrap_err().to_string();
            assert!(
                error.contains("the file ends inside this record"),
                "{error}"
            );
        }
        fs::remove_file(&path).unwrap();
    }
}

/// Returns an Example of one text with `length` bytes in total, fewer than 128.
fn payload(length: usize) -> Vec<u8> {
    let text = vec![b'x'; length - 13];
    let field = |tag: u8, body: &[u8]| [&[tag, body.len() as u8], body].concat();
    let entry = [
        field(0x0a, b"x"),
        field(0x12, &field(0x0a, &field(0x0a, &text))),
    ]
    .concat();
    let payload = field(0x0a, &field(0x0a, &entry));
    assert_eq!(payload.len(), length);
    payload
}

#[test]
fn the_examples_are_those_of_the_documents() {
    let documents = [
        (
            include_str!("../../../../README.md"),
            include_str!("readme_example.rs"),
        ),
        (
            include_str!("../../../../docs/recipes.md"),
            include_str!("recipes_example.rs"),
        ),
    ];
    for (document, example) in documents {
        assert!(document.contains(&format!("```rust\n{example}```\n")));
        assert_eq!(
            document.matches("use tfarrow_codec").count(),
            1,
            "an example of the codec that is not run"
        );
    }
}
