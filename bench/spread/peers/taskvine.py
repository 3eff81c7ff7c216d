"""Has TaskVine bring a file to workers, one task on each.

taskvine.py each|tree URL WORKERS CORES GATE USE

GATE and USE are commands: the tasks that wait until all workers are there, and those that need
the file, as big.dat. With each, the tasks need what is at the URL, and all else is as TaskVine
has it. With tree, a first task makes a file of it that only workers have, so they pass it on;
each sends it to one other at a time, which is the fastest of 1, 2, 3 and 10.

It prints the port for the workers, and that all is done.
"""

import sys

import ndcctools.taskvine as vine


def task(command, cores, file=None):
    new = vine.Task(command)
    new.set_cores(cores)  # a task takes a whole worker
    if file:
        new.add_input(file, "big.dat")
    return new


def run(manager, tasks):
    for one in tasks:
        manager.submit(one)
    while not manager.empty():
        ended = manager.wait(1)
        if ended and not ended.successful():
            sys.exit(f"a task failed: {ended.result}, {ended.std_output}")


def main():
    way, url, workers, cores, gate, use = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:]
    manager = vine.Manager(port=0, shutdown=True)
    print(manager.port, flush=True)
    big = manager.declare_url(url, cache="workflow")
    run(manager, [task(gate, cores) for _ in range(workers)])
    if way == "tree":
        manager.tune("worker-source-max-transfers", 1)
        first, big = task("cp big.dat copy", cores, big), manager.declare_temp()
        first.add_output(big, "copy")
        run(manager, [first])
    run(manager, [task(use, cores, big) for _ in range(workers)])
    print("done", flush=True)


if __name__ == "__main__":
    main()
