//! Compiles the messages of TensorFlow Metadata, without a `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files =
        protox::Compiler::new(["proto"])?.open_files(["schema.proto", "statistics.proto"])?.file_descriptor_set();
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let files_with_imports = {
        let mut compiler = protox::Compiler::new(["proto"])?;
        compiler.include_imports(true).open_files(["schema.proto", "statistics.proto"])?;
        compiler.encode_file_descriptor_set()
    };
    fs::write(out.join("metadata.bin"), files_with_imports)?;
    prost_build::Config::new().compile_fds(files)?;
    Ok(())
}
