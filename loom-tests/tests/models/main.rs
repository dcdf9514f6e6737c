//! Loom models: a file a subject, one invariant a model.
