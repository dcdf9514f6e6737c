//! Randomised schedules over the word and the shaper.
