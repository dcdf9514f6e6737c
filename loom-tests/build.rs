//! Turns the loom flavour of the shared sources on, for this package alone.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=tollgate_loom");
    println!("cargo::rustc-cfg=tollgate_model");
}
