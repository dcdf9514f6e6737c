#!/usr/bin/env bash
# Asks whether the loom models would notice a memory ordering that is too weak. Each ordering in the sources is weakened by one
# step, alone: Acquire and Release become Relaxed, AcqRel loses one half and then the other. The models must turn red each time. If
# they stay green, the ordering is stronger than needed, or a model is missing.
#
#   scripts/ordering-mutants.sh                        every ordering under src
#   scripts/ordering-mutants.sh FILE...                those in these files
#   scripts/ordering-mutants.sh FILE... -- FILTER...   with these arguments for the models, for instance a name
#
# Works on a copy below target/, so the sources stay as they are even if it is interrupted. Ends with 1 if a mutant survived.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD
copy=$root/target/ordering-mutants/source
log=$root/target/ordering-mutants/log
export CARGO_TARGET_DIR=$root/target/ordering-mutants/build
# A weaker ordering can make a model's search larger. Long past the time of a green run, it counts as red.
limit=10m

ordering='([A-Za-z_]+::)*\b(Acquire|Release|AcqRel)\b'

files=()
while (($# > 0)); do
    if [[ $1 == -- ]]; then
        shift
        break
    fi
    files+=("$1")
    shift
done
filter=("$@")
if ((${#files[@]} == 0)); then
    mapfile -t files < <(git grep --files-with-matches --extended-regexp "$ordering" -- src)
fi

compiles() {
    cargo test -p loom-tests --test models --no-run &>"$log" </dev/null
}

models_pass() {
    timeout "$limit" cargo test -p loom-tests --test models -- "${filter[@]}" &>"$log" </dev/null
}

# try FILE LINE NTH NEW: weakens the NTH ordering on this line for one run of the models.
caught=0 survived=0
try() {
    local file=$1 line=$2 nth=$3 new=$4 start=$SECONDS verdict
    # The full path, since the file need not import the weaker one.
    sed --in-place --regexp-extended "${line}s/$ordering/core::sync::atomic::Ordering::$new/$nth" "$file"
    # What does not compile was something else of that name.
    if compiles; then
        if models_pass; then
            verdict=SURVIVED survived=$((survived + 1))
        else
            verdict=caught caught=$((caught + 1))
        fi
        printf '%s:%d, no. %d -> %s: %s (%d s)\n' "$file" "$line" "$nth" "$new" "$verdict" "$((SECONDS - start))"
    fi
    cp "$root/$file" "$file"
}

rm -rf "$copy" && mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory "$copy"
cd "$copy"

if ! models_pass; then
    cat "$log"
    echo "the models do not pass as they are" >&2
    exit 2
fi
grep '^test result' "$log"

for file in "${files[@]}"; do
    while IFS=: read -r line text; do
        # Neither comments nor imports.
        [[ ! $text =~ ^\ *(pub\ )?use\  ]] || continue
        nth=0
        for name in $(grep --only-matching --extended-regexp "$ordering" <<<"${text%%//*}"); do
            nth=$((nth + 1))
            case $name in
                *AcqRel) weaker=(Acquire Release) ;;
                *) weaker=(Relaxed) ;;
            esac
            for new in "${weaker[@]}"; do
                try "$file" "$line" "$nth" "$new"
            done
        done
    done < <(grep --line-number --extended-regexp "$ordering" "$root/$file")
done

printf 'mutants: %d caught, %d survived\n' "$caught" "$survived"
# None at all would prove nothing.
((caught > 0 && survived == 0))
