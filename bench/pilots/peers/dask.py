"""Runs jobs with Dask, whose workers are pilots of Slurm (dask-jobqueue).

dask.py many|chain NUMBER PARTITION NODES CPUS JOB...

JOB is a command to which the number of a job and its time in ms are added.
"""

import subprocess
import sys

from dask.distributed import Client, wait
from dask_jobqueue import SLURMCluster


def job(number, command, before=None):
    program, times, ms = command
    return subprocess.run([program, times, str(number), ms], check=True).returncode


def main():
    series, number, partition, nodes, cpus = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    command = tuple(sys.argv[6:9])
    cluster = SLURMCluster(
        queue=partition, cores=cpus, processes=cpus, memory="1GB", walltime="01:00:00", python=sys.executable,
        scheduler_options={"host": "127.0.0.1", "dashboard": False}, interface="lo", local_directory="scratch",
        log_directory="logs",
    )
    cluster.scale(jobs=nodes)
    client = Client(cluster)
    if series == "many":
        all = [client.submit(job, i + 1, command, pure=False) for i in range(number)]
    else:
        all, before = [], None
        for i in range(number):
            before = client.submit(job, i + 1, command, before, pure=False)
            all.append(before)
    wait(all)
    for one in all:
        one.result()
    client.close()
    cluster.close()


if __name__ == "__main__":
    main()
