#!/bin/bash
# A batch inside one SLURM allocation: a Dask scheduler, workers on all its nodes, and the batch itself.
#   sbatch --nodes 4 --cpus-per-task 32 --mem 64G --time 4:00:00 tools/slurm_batch.sh list.yaml --config default --out results
# All nodes must see the recordings and the results under the same paths, and have the same cmaxslam-fbp[cluster].
#SBATCH --job-name=cmaxslam-batch
#SBATCH --ntasks-per-node=1
#SBATCH --signal=B:TERM@60
set -euo pipefail

CORES=${SLURM_CPUS_PER_TASK:-2}
TASKS=$((CORES / 2 > 0 ? CORES / 2 : 1))                 # a run has two threads
MEMORY=${SLURM_MEM_PER_NODE:+$((SLURM_MEM_PER_NODE / TASKS))MB} # of each run
FILE=$PWD/scheduler-${SLURM_JOB_ID:-$$}.json
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
export DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=10  # rows count by themselves how often they end their workers
for share in TARGET SPILL PAUSE; do                       # a worker whose memory is nearly full goes on
  export "DASK_DISTRIBUTED__WORKER__MEMORY__$share=False"
done

dask scheduler --scheduler-file "$FILE" --port 0 --no-dashboard &
SCHEDULER=$!
srun --ntasks-per-node=1 --cpus-per-task="$CORES" dask worker --scheduler-file "$FILE" --nthreads 1 \
  --nworkers "$TASKS" --memory-limit "${MEMORY:-auto}" --no-dashboard --death-timeout 120 &
WORKERS=$!
trap 'kill "$WORKERS" "$SCHEDULER" 2>/dev/null || true; wait 2>/dev/null || true; rm -f "$FILE"' EXIT
while [ ! -s "$FILE" ]; do
  kill -0 "$SCHEDULER" || exit 1
  sleep 1
done

cmaxslam-fbp batch "$@" --scheduler "$FILE" &
BATCH=$!
trap 'kill -TERM "$BATCH"' TERM                           # the time is nearly up: what is done is kept
code=0
wait "$BATCH" || code=$?
if kill -0 "$BATCH" 2>/dev/null; then                     # a signal has ended the wait, and soon the batch
  code=0
  wait "$BATCH" || code=$?
fi
exit "$code"
