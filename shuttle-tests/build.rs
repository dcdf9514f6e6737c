//! Turns the shuttle flavour of the shared sources on, for this package alone.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=tollgate_shuttle");
    println!("cargo::rustc-cfg=tollgate_model");
}
