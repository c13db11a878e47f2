#!/bin/sh
# Every benchmark of this project in one go, into one folder with one page, index.md: a new machine's figures.
#   sh tools/benchmark_all.sh [--quick] [FOLDER]      FOLDER: benchmarks/DATE if none is given
# A benchmark that fails is marked on the page and does not stop the others; the exit code is 1 then.
# PYTHON is the interpreter, BENCHMARKS the folder of the scripts benchmark_*.py.
set -u
python=${PYTHON:-python3}
scripts=${BENCHMARKS:-$(dirname "$0")}
quick="" folder="" failed=""
for argument in "$@"; do
  case $argument in
    --quick) quick=yes ;;
    -*) echo "usage: sh tools/benchmark_all.sh [--quick] [FOLDER]" >&2; exit 2 ;;
    *) folder=$argument ;;
  esac
done
folder=${folder:-benchmarks/$(date +%Y-%m-%d)}
data=$folder/recordings${quick:+_quick} # some benchmarks keep theirs and use them again
page=$folder/index.md
length=10 && [ -n "$quick" ] && length=4 # of the recording for the benchmark of batches, in s
mkdir -p "$data" || exit 2

# The options of a benchmark; one that is not named here has none, but for --quick.
options() {
  case $1 in
    batch) set -- "$data/boxes.bag" ${quick:+--runs 1 --rows 30} ;;
    binning) set -- ${quick:+--seconds 0.05 --events 20000} ;;
    frontend) set -- ${quick:+--duration 1 --packets 20 --repeats 1} ;;
    hand_held) set -- --folder "$data/$1" ${quick:+--scenes shapes --distances 1 --duration 3} ;;
    reading) set -- ${quick:+--events 300000} ;;
    simulation) set -- ${quick:+--duration 1 --repeats 1} ;;
    slam) set -- --folder "$data/$1" ${quick:+--duration 2} ;;
    calibration | intensity | robustness | scaling) set -- --folder "$data/$1" ${quick:+--quick} ;;
    *) set -- ${quick:+--quick} ;;
  esac
  for word in "$@"; do printf '%s\n' "$word"; done
}

# Run one benchmark; its output is in NAME.txt, and its section of the page is printed.
section() {
  name=$(basename "$1" .py) && name=${name#benchmark_}
  set -- "$1"
  while IFS= read -r word; do
    if [ -n "$word" ]; then set -- "$@" "$word"; fi
  done <<END
$(options "$name")
END
  echo "$name ..." >&2
  began=$(date +%s)
  "$python" "$@" >"$folder/$name.txt" 2>&1 </dev/null
  code=$?
  [ $code -eq 0 ] && outcome=done || { outcome="**FAILED**"; failed=yes; }
  printf '\n## %s: %s\n\n' "$name" "$outcome"
  printf 'Exit code %d after %d s.\n\n' $code $(($(date +%s) - began))
  printf '    %s\n\n' "python $*"
  sed 's/^/    /' "$folder/$name.txt"
}

{
  printf '# Benchmarks%s\n\n%s\n\n' "${quick:+, quick: they show that all works, and no more}" "$(date -u '+%Y-%m-%d %H:%M UTC')"
  "$python" -c 'from cmaxslam_fbp import __version__
from cmaxslam_fbp.experiments.machine import describe_machine
print(f"cmaxslam_fbp {__version__} on {describe_machine()}.")' || echo "The machine's calibration is not known."
} >"$page"
if [ -f "$scripts/benchmark_batch.py" ]; then
  "$python" -m cmaxslam_fbp simulate "$data/boxes.bag" --scene boxes --duration $length --overwrite >"$folder/simulate.txt" 2>&1
fi
for script in "$scripts"/benchmark_*.py; do
  section "$script" >>"$page"
done
echo "$page"
[ -z "$failed" ]
