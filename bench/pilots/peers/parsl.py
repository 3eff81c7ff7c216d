"""Runs jobs with Parsl, whose workers are pilots of Slurm.

parsl.py many|chain NUMBER PARTITION NODES CPUS JOB...

JOB is a command to which the number of a job and its time in ms are added.
"""

import os
import sys

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import SlurmProvider


@parsl.python_app
def job(number, command, before=None):
    import subprocess

    program, times, ms = command
    return subprocess.run([program, times, str(number), ms], check=True).returncode


def main():
    series, number, partition, nodes, cpus = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    command = tuple(sys.argv[6:9])
    here = os.path.dirname(sys.executable)  # which has the other programs of Parsl
    os.environ["PATH"] = here + ":" + os.environ["PATH"]
    provider = SlurmProvider(
        partition=partition, nodes_per_block=1, cores_per_node=cpus, init_blocks=nodes, min_blocks=nodes, max_blocks=nodes,
        walltime="01:00:00", launcher=SimpleLauncher(), exclusive=False, cmd_timeout=60,
        worker_init="export PATH=%s:$PATH" % here,
    )
    executor = HighThroughputExecutor(
        label="pilots", address="127.0.0.1", max_workers_per_node=cpus, cores_per_worker=1, provider=provider,
    )
    with parsl.load(Config(executors=[executor], run_dir="runinfo", strategy="none", usage_tracking=0)):
        if series == "many":
            for one in [job(i + 1, command) for i in range(number)]:
                one.result()
            return
        before = None
        for i in range(number):
            before = job(i + 1, command, before)
        before.result()


if __name__ == "__main__":
    main()
