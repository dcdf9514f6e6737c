//! Which versions are measured, as the lock file tells it.

/// The workspace's lock file, as it was when this was compiled.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// The name and version of every package that this one depends on directly, in order of name.
pub(crate) fn all() -> Vec<(String, String)> {
    of(LOCK, env!("CARGO_PKG_NAME"))
}

fn of(lock: &str, package: &str) -> Vec<(String, String)> {
    let packages: Vec<Package<'_>> = lock.split("[[package]]").filter_map(Package::read).collect();
    let Some(own) = packages.iter().find(|other| other.name == package) else { return Vec::new() };
    let version = |wanted: &str| {
        // A version stands behind the name where there are several of that name.
        let (name, version) = wanted.split_once(' ').map_or((wanted, None), |(name, version)| (name, Some(version)));
        let version = version.or_else(|| packages.iter().find(|other| other.name == name).map(|other| other.version));
        (name.to_owned(), version.unwrap_or("?").to_owned())
    };
    own.dependencies.iter().map(|wanted| version(wanted)).collect()
}

/// A package of a lock file.
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    dependencies: Vec<&'a str>,
}

impl<'a> Package<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let value = |key: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{key} = ")))?;
            line.split('"').nth(1)
        };
        let list = text.split("dependencies = [").nth(1).and_then(|list| list.split(']').next()).unwrap_or("");
        let dependencies = list.split('"').skip(1).step_by(2).collect();
        Some(Self { name: value("name")?, version: value("version")?, dependencies })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_has_its_locked_version_also_where_there_are_two() {
        let lock = r#"
version = 4

[[package]]
name = "a"
version = "1.0.0"
dependencies = [
 "b 2.0.0",
 "c",
]

[[package]]
name = "b"
version = "1.9.0"

[[package]]
name = "b"
version = "2.0.0"

[[package]]
name = "c"
version = "0.3.1"
source = "registry"
"#;
        let versions = [("b", "2.0.0"), ("c", "0.3.1")].map(|(name, version)| (name.to_owned(), version.to_owned()));
        assert_eq!(of(lock, "a"), versions);
        assert_eq!(of(lock, "none"), []);
    }

    #[test]
    fn the_measured_crates_are_in_the_lock_file() {
        let versions = all();
        for name in ["tollgate", "governor", "throttle-net", "tokio"] {
            assert!(versions.iter().any(|(other, version)| other == name && version != "?"), "{name}: {versions:?}");
        }
    }
}
