//! Compiles the messages of TensorFlow Metadata, without a `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).open_files([
        "anomalies.proto",
        "schema.proto",
        "statistics.proto",
    ])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    fs::write(
        out.join("metadata.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    prost_build::Config::new().compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
