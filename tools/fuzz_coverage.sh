#!/usr/bin/env bash
# Runs one fuzz target for a while and says how much of its source the found inputs reach.
#
#   tools/fuzz_coverage.sh TARGET SECONDS [FLOOR [SOURCE ...]]
#
# TARGET is NAME_fuzz. FLOOR is the least line coverage in percent (default 90); SOURCE defaults to src/*/NAME.cc.
# Seeds come from tests/data/fuzz/NAME, the dictionary from tests/data/fuzz/NAME.dict; both are optional. New inputs and
# crashes stay below build/. Exit status: 0; 1 a crash, or coverage under the floor; 2 wrong usage.
set -euo pipefail
cd "$(dirname "$0")/.."

if (($# < 2)) || [[ $1 != *_fuzz || ! $2 =~ ^[1-9][0-9]*$ ]]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
target=$1 seconds=$2 floor=${3:-90}
name=${target%_fuzz}
if (($# > 3)); then
  sources=("${@:4}")
else
  sources=(src/*/"$name".cc)
fi
for source in "${sources[@]}"; do
  [[ -f $source ]] || { echo "no such source: $source" >&2; exit 2; }
done

build=build/fuzz
mkdir -p "$build"
(
  flock 9 # scripts/fuzz runs several targets at once
  cmake --preset fuzz >/dev/null
  ninja -C "$build" "$target" >&2
) 9>"$build/lock"
program=$(find "$build/tests" -type f -name "$target" -perm -u+x | head -n 1)

work=$build/corpus/$name
found=$work/found crashes=$work/crashes
mkdir -p "$found" "$crashes"
seeds=()
[[ -d tests/data/fuzz/$name ]] && seeds=("tests/data/fuzz/$name")
options=(-max_len=8192 -timeout=5 -rss_limit_mb=512 -malloc_limit_mb=64 "-artifact_prefix=$crashes/")
[[ -f tests/data/fuzz/$name.dict ]] && options+=("-dict=tests/data/fuzz/$name.dict")

# The instrumented program writes a profile on every exit; only the one of the replay below is used.
if ! LLVM_PROFILE_FILE=/dev/null "$program" "${options[@]}" "-max_total_time=$seconds" -print_final_stats=1 \
    "$found" "${seeds[@]}" >"$work/log" 2>&1; then
  tail -n 40 "$work/log" >&2
  echo "$target: an input breaks it; it lies in $crashes" >&2
  exit 1
fi
grep -E '^stat::(number_of_executed_units|average_exec_per_sec)' "$work/log" || true

LLVM_PROFILE_FILE=$work/replay.profraw "$program" "${options[@]}" -runs=0 "$found" "${seeds[@]}" >"$work/replay.log" 2>&1
llvm-profdata-19 merge -sparse "$work/replay.profraw" -o "$work/replay.profdata"
llvm-cov-19 export -summary-only -instr-profile="$work/replay.profdata" "$program" "${sources[@]}" >"$work/coverage.json"
llvm-cov-19 show -instr-profile="$work/replay.profdata" "$program" "${sources[@]}" >"$work/coverage.txt"
python3 - "$work/coverage.json" "$floor" <<'PYTHON'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    data = json.load(file)["data"][0]
floor = float(sys.argv[2])
for source in data["files"]:
    lines = source["summary"]["lines"]
    print(f"{source['filename'].rpartition('/src/')[2]}: {lines['covered']} of {lines['count']} lines")
percent = data["totals"]["lines"]["percent"]
print(f"line coverage {percent:.1f} %, floor {floor:g} %")
sys.exit(0 if data["files"] and percent >= floor else 1)
PYTHON
