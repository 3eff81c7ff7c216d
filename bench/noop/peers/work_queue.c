// A manager of Work Queue with one worker of two cores on this machine. It keeps
// a window of 20 tasks: with all of them queued it is ten times slower.
//
//	work_queue COMMAND JOBS
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <work_queue.h>

enum { WINDOW = 20 };

static pid_t start_worker(int port) {
	char text[16];
	snprintf(text, sizeof text, "%d", port);
	pid_t worker = fork();
	if (worker == 0) {
		execlp("work_queue_worker", "work_queue_worker", "--cores", "2", "localhost", text, (char *)0);
		_exit(127);
	}
	return worker;
}

static void submit(struct work_queue *queue, const char *command) {
	struct work_queue_task *task = work_queue_task_create(command);
	work_queue_task_specify_cores(task, 1);
	work_queue_submit(queue, task);
}

int main(int argc, char **argv) {
	if (argc != 3) return 2;
	int jobs = atoi(argv[2]);
	struct work_queue *queue = work_queue_create(0);
	if (!queue) return 1;
	pid_t worker = start_worker(work_queue_port(queue));
	for (int submitted = 0, done = 0; done < jobs;) {
		for (; submitted < jobs && submitted - done < WINDOW; submitted++) submit(queue, argv[1]);
		struct work_queue_task *task = work_queue_wait(queue, 1);
		if (!task) continue;
		work_queue_task_delete(task);
		done++;
	}
	kill(worker, SIGTERM);
	waitpid(worker, 0, 0);
	work_queue_delete(queue);
	return 0;
}
