#!/usr/bin/env bash
# Asks whether the tests would notice a changed operator, answer or condition in the arithmetic, the word and the queue. Each change
# is made alone (cargo-mutants); some test must turn red. A mutant meets the fast tests first; what lives on meets all of them, then
# the loom models, then shuttle's schedules. `.cargo/mutants.toml` names the mutants that differ from the code in nothing that
# counts, with the reason.
#
#   scripts/mutants.sh              every subject, which takes hours
#   scripts/mutants.sh FILE...      these subjects
#
# Needs cargo-mutants 27 and cargo-nextest. Works on a copy, so the sources stay as they are even if it is interrupted. Ends with 1
# if a mutant survived.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD
out=$root/target/mutants
export CARGO_TARGET_DIR=$out/build CARGO_PROFILE_DEV_DEBUG=0
rm -rf "$out/mutants.out" && mkdir -p "$out"

(($# > 0)) || set -- src/algorithm/{bucket,gcra,pause,rate_set}.rs src/{cell,interval,quota,time,word}.rs src/shaper/line.rs 'src/shaper/pace/*.rs' 'src/shaper/queue/*.rs'
files=()
for file; do
    files+=(--file "$file")
done

# Whole seconds each, and seldom the only ones to notice.
slow='test(/^timer::/) | test(/^differential::the_(bucket_answers|reference)/) | test(/^shaper_random::the_law/) | test(/^simulation::/)
    | test(/^bucket_flaws::/) | test(/^bucket_rates::exactly/) | test(/^shaper_lateness::(paused::no_rate|a_clock|a_timer)/)
    | test(/^shaper_rates::fast/) | test(/_threads::/) | test(/^shaper_runtimes::/) | test(/^shaper_polls::paused/)'

# round ARGUMENT...: whoever is left of the mutants meets the tests that these arguments of cargo-mutants select.
round() {
    local status=0
    # Many mutants make a loop endless.
    cargo mutants --package tollgate "${files[@]}" --iterate --output "$out" --test-tool nextest --minimum-test-timeout 60 "$@" || status=$?
    # 2: some are left. 3: some ran out of time, which no test does as the code is.
    ((status == 0 || status == 2 || status == 3)) || exit "$status"
    # So those have been noticed too, and the next round leaves them out.
    cat "$out/mutants.out/timeout.txt" >>"$out/mutants.out/caught.txt"
}

# round_of PACKAGE TEST: the same with one test of another package. The check that it is green as it is would only be made with the
# package that is changed.
round_of() {
    cargo nextest run --package "$1" --test "$2"
    round --baseline skip --timeout 300 --test-package "$1" --cargo-arg="--test=$2" -- --max-fail=1:immediate
}

tests=(--cargo-arg=--lib --cargo-arg=--test=it)
round "${tests[@]}" -- --max-fail=1:immediate --filterset "not ($slow)"
round "${tests[@]}" -- --max-fail=1:immediate
round_of loom-tests models
round_of shuttle-tests shuttle

if [[ -s $out/mutants.out/missed.txt ]]; then
    echo "no test notices:" >&2
    cat "$out/mutants.out/missed.txt" >&2
    exit 1
fi
