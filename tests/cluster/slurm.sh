#!/bin/bash
# A SLURM of its own on this machine, as root: one controller and two nodes of four processors each.
#
#   apt-get install slurm-wlm munge
#   tests/cluster/slurm.sh start FOLDER && export SLURM_CONF=FOLDER/slurm.conf
#   sinfo; sbatch docs/cluster/array.sbatch ...
#   tests/cluster/slurm.sh stop FOLDER
set -eu
folder=$(realpath "$2")
if [ "$1" = stop ]; then
    for file in "$folder"/*.pid; do kill "$(cat "$file")" 2>/dev/null || true; done
    exit
fi
mkdir -p "$folder"
chmod 755 "$folder"
host=$(hostname -s)
cat > "$folder/slurm.conf" <<END
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MinJobAge=3600
KillWait=10
ReturnToService=2
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/jobs.txt
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=16818 CPUs=4 RealMemory=8000
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=16819 CPUs=4 RealMemory=8000
PartitionName=all Nodes=ALL Default=YES PriorityTier=1 DefMemPerCPU=1000
PartitionName=urgent Nodes=ALL PriorityTier=2 DefMemPerCPU=1000
END
export SLURM_CONF="$folder/slurm.conf"
[ -f "$folder/munge.key" ] || head -c 1024 /dev/urandom > "$folder/munge.key"
chmod 400 "$folder/munge.key"
munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munge.pid" \
    --log-file="$folder/munge.log" --seed-file="$folder/munge.seed"
slurmctld
slurmd -N n1
slurmd -N n2
for _ in $(seq 60); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null | head -n 1)" = 2 ] && exit
    sleep 0.5
done
tail -n 5 "$folder"/*.log >&2
exit 1
