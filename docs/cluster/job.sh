# What the jobs here have in common: run the command behind `.`'s file name in the folder where sbatch was typed. Shortly
# before its time is over (--signal), it ends with what is done kept, and goes back to the queue. So it does, without our
# help, if SLURM preempts the job or its node dies (--requeue).
cd "$SLURM_SUBMIT_DIR" || exit
export PATH="$PWD/.venv/bin:$PATH"
"$@" &
job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}
trap 'kill -USR1 $!; wait $!; scontrol requeue "$job"; exit 0' USR1
trap 'kill -TERM $!; wait $!; exit 143' TERM # scancel, or preemption
wait $!
