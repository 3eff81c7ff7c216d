"""Gives programs that a test starts the executor where they look for it."""

import concurrent.futures

from process_pool import FairwayExecutor

concurrent.futures.FairwayExecutor = FairwayExecutor
