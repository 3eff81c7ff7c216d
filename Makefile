# What a person runs here; `make help` lists it.

GOLANGCI_LINT_VERSION       := v2.15.0
PROTOC_GEN_GO_VERSION       := v1.36.12
PROTOC_GEN_CONNECT_VERSION  := v1.21.1

EXAMPLE_PACKAGES := bowtie2 bowtie2-examples samtools bcftools
STORAGE_PACKAGES := xrootd-server xrootd-client nginx-light libnginx-mod-http-dav-ext
BATCH_PACKAGES   := slurm-wlm munge gridengine-master gridengine-exec gridengine-client openssh-server
DATABASE_PACKAGES := postgresql
TOOL_PACKAGES    := python3-venv $(SUITE_PACKAGES) openjdk-17-jre-headless maven bubblewrap charliecloud busybox-static squashfs-tools
SUITE_PACKAGES   := libpython3.11-testsuite
TEST_PACKAGES    := python3 gcc libc6-dev spin iproute2 nftables curl wget openssl zsh bindfs $(EXAMPLE_PACKAGES) $(STORAGE_PACKAGES) $(BATCH_PACKAGES) $(DATABASE_PACKAGES) $(TOOL_PACKAGES)
VERSITYGW_VERSION := v1.8.0

VERSION := $(shell sed -n 's/^const Release = "\(.*\)"/\1/p' internal/cli/console/version.go)
STAMP    = -X fairway/internal/cli/console.version=$(VERSION)$(if $(RELEASE),,-dev) \
	-X fairway/internal/cli/console.commit=$(shell git rev-parse HEAD 2>/dev/null) \
	-X fairway/internal/cli/console.date=$(shell git log -1 --format=%cI 2>/dev/null)

# Nobody debugs what is built to be tested and vetted; without debugging information it is compiled
# in a tenth less time.
PLAIN := -gcflags=all=-dwarf=false

# SQLite is C that was translated to Go, without any goroutine. The race detector makes it three
# times slower. This package alone can do without: those around it share instances of generic
# functions with others, and some of these would be without race detector too.
RACE := -race $(PLAIN) "-gcflags=modernc.org/sqlite/lib=-race=false -dwarf=false"

# What gets something from a registry, which may not answer.
GET := scripts/get.sh

# A program with the race detector sleeps a second before it ends, unless it is told
# otherwise. The tests start hundreds.
export GORACE ?= atexit_sleep_ms=50

.DEFAULT_GOAL := build
.PHONY: help build install run test lint vet rules passive unit fuzz soak bench picture tools generate clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/fairway
	go build -ldflags '$(STAMP)' -o bin/fairway ./cmd/fairway

PREFIX := /usr/local

install: ## install the program that `make` built into PREFIX/bin (/usr/local)
	install -D -m 755 bin/fairway $(DESTDIR)$(PREFIX)/bin/fairway

run: build ## install what the example needs and run examples/lambda
	$(GET) scripts/install-packages.sh $(EXAMPLE_PACKAGES)
	bin/fairway run examples/lambda/workflow.yaml

test: dependencies checks unit ## install what the tests need and run all checks and tests

.PHONY: dependencies test-tools checks
checks: # side by side
	+$(MAKE) --no-print-directory --jobs --output-sync vet lint lint-python rules passive test-tools

dependencies: # the Debian packages that the tests need
	$(GET) scripts/install-packages.sh $(TEST_PACKAGES)

# It mostly waits for registries, while the others compile.
test-tools: uv suites # what no package of Debian has, for the short tests with tools that people have
	$(GET) scripts/install-nextflow.sh $(NEXTFLOW_VERSION)

# What is compiled for other systems only to be vetted need not be fast.
NOT_RUN := -gcflags=all="-N -l -dwarf=false"

vet: # the libraries on the other systems that docs/sched.md names and on 32 bits, and the client on macOS; `make lint` vets on this one
	GOOS=darwin go -C lib vet $(NOT_RUN) ./sched ./orwl
	GOOS=freebsd go -C lib vet $(NOT_RUN) ./sched ./orwl
	GOOS=windows go -C lib vet $(NOT_RUN) ./sched ./orwl
	GOARCH=386 go -C lib vet $(NOT_RUN) ./sched ./orwl ./fifo
	GOOS=darwin go build $(NOT_RUN) -o /dev/null ./cmd/fairway

# With the flags of the tests the linter reads what is compiled for these.
lint: ## run the linters
	$(GET) scripts/install-linter.sh $(GOLANGCI_LINT_VERSION)
	GOFLAGS='$(GOFLAGS) $(RACE)' bin/golangci-lint run ./...
	cd lib && GOFLAGS='$(GOFLAGS) $(RACE)' ../bin/golangci-lint run ./...

rules: ## check the rules of the repository
	go test $(PLAIN) -vet=off ./rules # which read files, and have no goroutines

.PHONY: size
size: ## print the lines of packages, the structs with many fields, and how far one reads for a result and for a pull
	go test $(PLAIN) -vet=off -count=1 -v -run 'TestHouse|TestTheTaskQueueReadsDownwards' ./rules

# The race detector makes these five to ten times slower, and could find nothing: `make lint` holds
# that the first three have no goroutines, and each simulation of the others runs in one. What
# simulations side by side share is tested under it in internal/sim, and all of them in `make soak`.
PASSIVE := ./internal/dispatch ./internal/flow ./internal/flow/workflow ./internal/flow/pattern fairway/lib/fifo \
	./internal/sim/compare ./internal/sim/faults ./internal/sim/paper ./internal/sim/report

# Tests mostly wait for processes, leases and batch systems. So more than twice as many packages run
# at a time as there are processors, and those that take longest begin first; the others, and what
# is still to be compiled, fill the time. `make lint` has vetted all packages.
LONGEST := ./test/sites ./internal/server ./internal/storage/xrootd ./test/cli ./test/crash ./test/gangs ./internal/store ./test/cluster ./internal/pilot fairway/lib/sched fairway/lib/orwl ./test/service

# A commit is tested with seeds of its own, so that who repeats a run repeats it; `make soak`
# and a test by itself take new ones.
TREE := $(shell git rev-parse 'HEAD^{tree}' 2>/dev/null | cut -c1-8)
unit passive: export FAIRWAY_SEED ?= $(if $(TREE),$(shell printf %d 0x$(TREE)))
unit: export FAIRWAY_TEST_TOOLS := 1
unit: ## run all tests under the race detector but those of `make passive`
	PATH="$$PATH:$(UV)" GOFLAGS='$(GOFLAGS) $(PLAIN)' go test $(RACE) -vet=off -p $(shell echo $$((2 * $$(nproc) + 1))) -timeout 14m \
		$(LONGEST) $(filter-out fairway/rules $(PASSIVE:./%=fairway/%),$(shell go list ./... fairway/lib/...))
	go test -vet=off fairway/lib/orwl/internal/token # which is another one under the race detector

passive: | rules ## run the tests of what has no goroutines
	go test $(PLAIN) -vet=off $(PASSIVE)

# Each target below has a form of at most 12 minutes. SOAK=1 makes those that kill and draw at random
# do it for longer, as `make soak` does.
SOAK      :=
TAKEOVERS := 20

# What is compiled for `make test` serves these too, and what they start.
test-%: export GOFLAGS := $(GOFLAGS) $(PLAIN)

.PHONY: test-all
test-all: ## run all targets below one after the other, and end with a table
	scripts/test-targets.sh all

.PHONY: test-storage
test-storage: ## run the tests of storage elements on real servers, which it installs
	$(GET) scripts/install-packages.sh $(STORAGE_PACKAGES) rclone $(EXAMPLE_PACKAGES)
	$(GET) scripts/install-go-tool.sh github.com/versity/versitygw/cmd/versitygw $(VERSITYGW_VERSION)
	FAIRWAY_TEST_STORAGE=1 FAIRWAY_BIN=$(CURDIR)/bin go test $(RACE) -count=1 -timeout 14m ./internal/storage/... ./internal/server/feed ./internal/server/publish ./test/elements

.PHONY: test-slurm test-gridengine test-arc test-ssh
test-slurm: ## run the tests of batch systems on a real Slurm, which it installs
	$(GET) scripts/install-packages.sh slurm-wlm munge bindfs openmpi-bin libopenmpi-dev $(EXAMPLE_PACKAGES)
	FAIRWAY_TEST_BATCH=slurm go test $(RACE) -count=1 -timeout 14m -run Slurm ./internal/batch/... ./test/sites

test-gridengine: ## run the tests of batch systems on a real Grid Engine, which it installs
	$(GET) scripts/install-packages.sh gridengine-master gridengine-exec gridengine-client $(EXAMPLE_PACKAGES)
	FAIRWAY_TEST_BATCH=gridengine go test $(RACE) -count=1 -timeout 14m -run GridEngine ./internal/batch/... ./test/sites

test-arc: ## run the tests of batch systems on a real ARC in front of Slurm, which it installs
	$(GET) scripts/install-packages.sh slurm-wlm munge nordugrid-arc-arex nordugrid-arc-client nordugrid-arc-plugins-arcrest $(EXAMPLE_PACKAGES)
	FAIRWAY_TEST_BATCH=arc go test $(RACE) -count=1 -timeout 14m -run ARC ./internal/batch/... ./test/sites

HTCONDOR := $(CURDIR)/bin/htcondor
.PHONY: test-htcondor
test-htcondor: ## run the tests of batch systems on a real HTCondor, that of Debian 13, which it unpacks
	$(GET) scripts/install-packages.sh $(EXAMPLE_PACKAGES)
	$(GET) scripts/install-htcondor.sh $(HTCONDOR)
	PATH="$(HTCONDOR)/condor:$$PATH" FAIRWAY_TEST_BATCH=htcondor go test $(RACE) -count=1 -timeout 14m -run HTCondor ./internal/batch/command ./test/sites

test-ssh: ## run the tests of hosts that are reached by ssh, on servers of its own
	$(GET) scripts/install-packages.sh openssh-server openssh-client
	FAIRWAY_TEST_BATCH=ssh go test $(RACE) -count=1 -timeout 14m -run SSH ./internal/batch/... ./test/sites
	FAIRWAY_TEST_BATCH=ssh go test $(RACE) -count=1 ./internal/batch/ssh

.PHONY: test-gangs
test-gangs: ## kill jobs of several tasks (SOAK=1: 200 times), and run a program of MPI, which it installs
	$(GET) scripts/install-packages.sh openmpi-bin libopenmpi-dev
	FAIRWAY_SOAK=$(SOAK) go test $(RACE) -count=1 -timeout 40m -v ./test/gangs

NEXTFLOW_VERSION := 24.10.0

.PHONY: test-nextflow
test-nextflow: ## run workflows of a real Nextflow, which it installs, through its executor for HyperQueue
	$(GET) scripts/install-packages.sh openjdk-17-jre-headless maven
	$(GET) scripts/install-nextflow.sh $(NEXTFLOW_VERSION)
	FAIRWAY_TEST_NEXTFLOW=$(CURDIR)/bin/nextflow-$(NEXTFLOW_VERSION) go test -count=1 -timeout 14m ./test/nextflow

CONTAINER_PACKAGES := charliecloud bubblewrap podman runc uidmap busybox-static squashfs-tools python3-venv
SIFTOOL_VERSION    := v2.24.2
UV_VERSION         := 0.13.9

UV                  = $(CURDIR)/bin/uv-$(UV_VERSION)/bin

.PHONY: uv test-containers
uv:
	test -x $(UV)/uv || { python3 -m venv bin/uv-$(UV_VERSION) && $(GET) $(UV)/pip install --quiet uv==$(UV_VERSION); }

# CPython's tests are those of Debian's Python. A folder of other versions is made anew.
SUITES := bin/suites/of-$(shell cksum test/suites/requirements.txt | cut -d ' ' -f 1)
.PHONY: suites test-suites test-suites-python test-suites-snakemake
suites: uv
	test -d $(SUITES) || { rm -rf bin/suites && $(UV)/uv --quiet venv --python /usr/bin/python3 bin/suites && \
		VIRTUAL_ENV=bin/suites $(GET) $(UV)/uv --quiet pip install -r test/suites/requirements.txt && mkdir $(SUITES); }

test-suites: test-suites-python test-suites-snakemake ## run the tests of CPython, joblib, Dask and Snakemake, which it installs, against Fairway

test-suites-python: suites ## run those of CPython, joblib and Dask
	$(GET) scripts/install-packages.sh python3-venv $(SUITE_PACKAGES)
	FAIRWAY_TEST_SUITES=1 go test -count=1 -timeout 14m -v -run TestSuites ./test/suites

# What tests of Snakemake stand on. Each is run twice: an eighth of them, by the hash of the tree; SOAK=1: all.
SNAKEMAKE_TOOLS := snakemake-executor-plugin-cluster-generic==1.0.9 snakemake-storage-plugin-fs==1.1.3 pytest-mock==3.17.0 \
	pandas==3.1.1 peppy==0.40.8 eido==0.2.6
SUITE_SHARE = $(if $(SOAK),,$(shell echo $$((0x$$(git rev-parse 'HEAD^{tree}' | cut -c1-7) % 8))/8))
test-suites-snakemake: suites ## run a share of those of Snakemake, or all with SOAK=1
	$(GET) scripts/install-packages.sh python3-venv rsync
	VIRTUAL_ENV=bin/suites $(GET) $(UV)/uv --quiet pip install $(SNAKEMAKE_TOOLS)
	$(GET) scripts/fetch-snakemake-tests.sh $(SNAKEMAKE_VERSION) $(CURDIR)/bin/snakemake-tests $(UV)/python
	FAIRWAY_TEST_SUITES=1 FAIRWAY_TEST_SHARE=$(SUITE_SHARE) go test -count=1 -timeout $(if $(SOAK),2h,14m) -v \
		-run TestSnakemake ./test/suites

test-containers: uv ## run jobs in real containers and environments, by programs that it installs
	$(GET) scripts/install-packages.sh $(CONTAINER_PACKAGES)
	$(GET) scripts/install-go-tool.sh github.com/sylabs/sif/v2/cmd/siftool $(SIFTOOL_VERSION)
	PATH="$(CURDIR)/bin:$(UV):$$PATH" FAIRWAY_TEST_CONTAINERS=1 \
		go test $(RACE) -count=1 -timeout 14m ./test/containers ./internal/pilot/container

NFPM_VERSION       := v2.43.0
CYCLONEDX_VERSION  := v1.10.0

.PHONY: release test-packages release-tools wheel-tools
release-tools: wheel-tools
	$(GET) scripts/install-go-tool.sh github.com/goreleaser/nfpm/v2/cmd/nfpm $(NFPM_VERSION)
	$(GET) scripts/install-go-tool.sh github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod $(CYCLONEDX_VERSION)

release: release-tools ## make wheels, Debian packages, tarballs, an SBOM and checksums in bin/release
	rm -rf bin/release
	scripts/release.sh bin/release

test-packages: build uv release-tools ## make a release twice, compare the bytes, and try what it installs
	scripts/needs.sh mount
	scripts/try-python.sh $(UV)/uv bin
	scripts/try-packages.sh

# What of the names of platforms of wheels is the machine's.
WHEEL_PLATFORM = linux_$(shell uname -m)

wheel-tools: # the builder of wheels, at the version that pyproject.toml names
	$(GET) scripts/install-packages.sh python3 python3-venv
	test -x bin/wheel-tools/bin/python || python3 -m venv bin/wheel-tools
	$(GET) bin/wheel-tools/bin/pip -q install build $(shell sed -n 's/^requires = \["\(.*\)"\]/\1/p' python/pyproject.toml)

.PHONY: wheels
wheels: wheel-tools ## make wheels for this machine in bin/wheels: of Fairway, and of the plugin for Snakemake
	rm -rf bin/wheels
	CGO_ENABLED=0 go build -ldflags '$(STAMP) -s -w' -o bin/wheel-tools/fairway ./cmd/fairway
	scripts/wheel.sh bin/wheels bin/wheel-tools/bin/python program bin/wheel-tools/fairway $(WHEEL_PLATFORM)
	scripts/wheel.sh bin/wheels bin/wheel-tools/bin/python snakemake
	@ls bin/wheels

.PHONY: test-root
test-root: uv ## open files of a cache with ROOT and uproot, which it installs (700 MB)
	test -d bin/root || $(UV)/uv --quiet venv --python $(PYTHON) bin/root
	VIRTUAL_ENV=bin/root $(GET) $(UV)/uv --quiet pip install --prerelease allow root==0.1a12 uproot==5.7.7
	FAIRWAY_TEST_ROOT=$(CURDIR)/bin/root/bin/python go test $(RACE) -count=1 -timeout 5m -run TestProgramsOpenWhatTheCatalogueSays ./internal/pilot

.PHONY: test-workers
test-workers: ## run jobs that workers of Python and of a real R begin, which it installs
	$(GET) scripts/install-packages.sh python3 r-base-core
	go test $(RACE) -count=1 -timeout 5m ./internal/pilot/warm

# Types and style of the Python client; joblib and Dask are there for what it imports of them.
PYTHON_TOOLS := mypy==2.4.1 pyright[nodejs]==1.1.414 ruff==0.17.6 cloudpickle==3.1.3 joblib==1.6.0 dask==2026.8.0
.PHONY: lint-python
lint-python: ## check types and style of the Python client with mypy, pyright and ruff, which it installs
	test -e bin/python-tools/done || { python3 -m venv bin/python-tools && \
		$(GET) bin/python-tools/bin/pip -q install $(PYTHON_TOOLS) && touch bin/python-tools/done; }
	cd python && ../bin/python-tools/bin/ruff check -q . && ../bin/python-tools/bin/mypy && \
		../bin/python-tools/bin/pyright --pythonpath ../bin/python-tools/bin/python

# With Python 3.11 and 3.13, and with the newest versions and the oldest that the metadata allow.
PYTHON        := python3
PYTHONS       := $(PYTHON) $(CURDIR)/bin/python-3.13/usr/bin/python3
PYTHON_OLDEST := $(shell sed -n 's/^.*"\([a-z][a-z]*\)>=\([0-9.]*\)".*/\1==\2/p' python/pyproject.toml)
.PHONY: test-python test-snakemake
PYTHON_COVERAGE := --rcfile=python/pyproject.toml --data-file=$(CURDIR)/bin/python-coverage/data
test-python: build uv ## run the tests of the Python client with Python 3.11 and 3.13, joblib, Dask and notebooks, which it installs
	$(GET) scripts/install-packages.sh python3
	$(GET) scripts/install-python.sh bin/python-3.13
	rm -rf bin/python-coverage && mkdir bin/python-coverage
	for python in $(PYTHONS); do for versions in "cloudpickle joblib dask" "$(PYTHON_OLDEST)"; do \
		$(UV)/uv --quiet venv --clear --python $$python bin/python && \
		VIRTUAL_ENV=bin/python $(GET) $(UV)/uv --quiet pip install $$versions 'coverage>=7.10' nbclient ipykernel && \
		FAIRWAY_BIN=$(CURDIR)/bin PYTHONPATH=$(CURDIR)/python/src bin/python/bin/python -m coverage run $(PYTHON_COVERAGE) \
			-m unittest discover -s python/tests || exit $$?; \
	done; done
	bin/python/bin/python -m coverage combine -q $(PYTHON_COVERAGE)
	bin/python/bin/python -m coverage report $(PYTHON_COVERAGE) --fail-under=90

# bin/snakemake is the environment of the plugin; Snakemake itself comes from the registry.
SNAKEMAKE_VERSION := 9.27.1
SNAKEMAKE_PATHS   := $(CURDIR)/python/src:$(CURDIR)/python/snakemake-executor-plugin-fairway/src
SNAKEMAKE_OLDEST  := 9.0.0
test-snakemake: build uv ## run Snakemake's tests for executors, and the plugin's, on the oldest one, and on the newest with Python 3.13, which it installs
	$(GET) scripts/install-packages.sh python3 python3-venv
	$(GET) scripts/install-python.sh bin/python-3.13
	for version in $(SNAKEMAKE_OLDEST) $(SNAKEMAKE_VERSION); do \
		python=bin/snakemake-$$version; by=$(PYTHON); \
		test $$version = $(SNAKEMAKE_OLDEST) || by=$(lastword $(PYTHONS)); \
		test -d $$python || $(UV)/uv --quiet venv --python $$by $$python && \
		VIRTUAL_ENV=$$python $(GET) $(UV)/uv --quiet pip install snakemake==$$version snakemake-interface-executor-plugins==9.4.0 pytest && \
		FAIRWAY_BIN=$(CURDIR)/bin PYTHONPATH=$(SNAKEMAKE_PATHS) $$python/bin/python -m pytest -q \
			python/snakemake-executor-plugin-fairway/tests || exit $$?; \
	done

.PHONY: test-tutorial
test-tutorial: build ## run Snakemake's tutorial and an example of it, unchanged, with the plugin
	$(GET) scripts/install-packages.sh python3 python3-venv bwa samtools bcftools gcc libc6-dev
	$(GET) scripts/fetch-snakemake-doc.sh $(CURDIR)/bin/snakemake-doc
	python3 -m venv bin/snakemake
	$(GET) bin/snakemake/bin/pip -q install snakemake==$(SNAKEMAKE_VERSION) snakemake-interface-executor-plugins==9.4.0 pytest \
		pysam matplotlib
	FAIRWAY_BIN=$(CURDIR)/bin FAIRWAY_SNAKEMAKE_DOC=$(CURDIR)/bin/snakemake-doc PYTHONPATH=$(SNAKEMAKE_PATHS) \
		bin/snakemake/bin/python -m pytest -q python/snakemake-executor-plugin-fairway/tests/test_published.py

.PHONY: test-pigx
test-pigx: build ## run PiGx RNA-seq, a published workflow of Snakemake, unchanged with the plugin; it installs 410 MB
	$(GET) scripts/install-packages.sh python3 python3-venv pigx-rnaseq
	python3 -m venv bin/snakemake
	$(GET) bin/snakemake/bin/pip -q install snakemake==$(SNAKEMAKE_VERSION) snakemake-interface-executor-plugins==9.4.0 pytest
	FAIRWAY_BIN=$(CURDIR)/bin FAIRWAY_PIGX=/usr/libexec/pigx_rnaseq PYTHONPATH=$(SNAKEMAKE_PATHS) \
		bin/snakemake/bin/python -m pytest -q python/snakemake-executor-plugin-fairway/tests/test_published.py -k pigx

ROC_VALIDATOR_VERSION := 0.13.0
ROCRATE_VERSION       := 0.11.0

# Of the package rocrate, only the terms of RO-Crate 1.1 are read.
.PHONY: test-crate
test-crate: ## check the RO-Crates that `fairway export` writes with roc-validator and rdflib, which it installs
	$(GET) scripts/install-packages.sh python3 python3-venv bubblewrap
	python3 -m venv bin/crate
	$(GET) bin/crate/bin/pip -q install roc-validator==$(ROC_VALIDATOR_VERSION) uv==$(UV_VERSION)
	$(GET) bin/crate/bin/pip -q install --no-deps rocrate==$(ROCRATE_VERSION)
	PATH="$(CURDIR)/bin/crate/bin:$$PATH" FAIRWAY_TEST_CRATE=$(CURDIR)/bin/crate/bin/python go test -count=1 -timeout 10m ./test/crate

.PHONY: test-postgres
test-postgres: ## run the tests of the store, and kill a server (SOAK=1: 200 times), on a real PostgreSQL, which it installs
	$(GET) scripts/install-packages.sh $(DATABASE_PACKAGES)
	FAIRWAY_SOAK=$(SOAK) go test $(RACE) -count=1 -timeout 14m -run Postgres ./internal/store ./test/service

.PHONY: test-takeover
test-takeover: ## kill and freeze the active one of two servers (TAKEOVERS=20), on a real PostgreSQL, which it installs
	$(GET) scripts/install-packages.sh $(DATABASE_PACKAGES)
	FAIRWAY_TAKEOVERS=$(TAKEOVERS) go test $(RACE) -count=1 -v -timeout 45m -run TestTakeover ./test/service

.PHONY: test-service
test-service: ## run a server with two people who log in, and one who makes 100,000 calls
	FAIRWAY_SOAK=1 go test $(RACE) -count=1 -timeout 14m -run 'ManyRequestsOfOne|EveryCallAgainst|RunsOfOthers|TokensEnd|PilotsOfPeople|SocketOfAProxy' ./internal/server
	go test $(RACE) -count=1 -timeout 5m -run TestTwoPeopleLogIn ./test/service

.PHONY: test-mpi
test-mpi: ## run the tests and the program of examples/mpi on a real Open MPI, which it installs
	$(GET) scripts/install-packages.sh openmpi-bin libopenmpi-dev gcc libc6-dev
	cd examples/mpi && export CC=mpicc OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 && \
		go vet ./... && go test -race -count=1 -timeout 5m ./... && go build -o ../../bin/pingpong ./pingpong && \
		mpirun --oversubscribe --bind-to none -n 2 ../../bin/pingpong

.PHONY: test-gpu
test-gpu: ## run kernels of OpenCL under ordered locks, on the processors by a driver that it installs, and print how they overlap
	$(GET) scripts/install-packages.sh pocl-opencl-icd ocl-icd-libopencl1
	FAIRWAY_TEST_GPU=1 go test -count=1 -timeout 10m -v ./examples/gpu
	go run ./examples/gpu

.PHONY: test-kills-gangs
test-kills-gangs: ## kill tasks of gangs that save their state (SOAK=1: 200 times), without pilots and with them
	FAIRWAY_SOAK=$(SOAK) go test -count=1 -timeout 60m -run 'TestKilledGangs|TestKillsOfTasksThatSave' -v ./examples/llk23 ./test/gangs

.PHONY: test-apart
test-apart: ## run workflows on a machine that shares nothing with this one (a network namespace)
	$(GET) scripts/install-packages.sh iproute2 util-linux curl $(EXAMPLE_PACKAGES)
	scripts/needs.sh network-namespace
	FAIRWAY_TEST_BATCH=apart go test $(RACE) -count=1 -timeout 14m -run Apart ./internal/server ./test/sites

.PHONY: mutate mutation-scores
mutate: ## take mechanisms of docs/papers.md out of the code, and see that their tests notice
	go run ./scripts/mutate -at 2

mutation-scores: ## change packages a little, 200 times each, and see how often their tests notice (2 hours at most)
	go run ./scripts/mutate score -seed 1

.PHONY: test-clocks
test-clocks: ## run workflows whose processes go by wrong clocks that jump (it compiles the standard library anew)
	$(GET) scripts/install-packages.sh iproute2 nftables
	scripts/needs.sh network-namespace
	FAIRWAY_SOAK=1 go test $(RACE) -count=1 -timeout 14m -run TestClocks ./test/cluster

.PHONY: test-whatif
test-whatif: ## record ten runs, foretell each with half and twice the pilots, and compare with what these take
	go run ./bench/whatif -defaults -runs 10 -most 0.15

.PHONY: test-web web-pictures
AXE_VERSION := 4.14.1
# Fonts decide how wide pages are.
WEB_PACKAGES := chromium curl fonts-dejavu-core fonts-liberation
TEST_WEB    = FAIRWAY_TEST_WEB=1 FAIRWAY_AXE=$(CURDIR)/bin/axe-$(AXE_VERSION).min.js go test $(RACE) -count=1 -timeout 10m ./test/web
test-web: ## run the tests of pages in a real Chromium, which it installs, with axe-core
	$(GET) scripts/install-packages.sh $(WEB_PACKAGES)
	$(GET) scripts/fetch-axe.sh $(AXE_VERSION) bin
	$(TEST_WEB)

web-pictures: ## take the pictures of docs/web.md
	$(GET) scripts/install-packages.sh $(WEB_PACKAGES)
	$(GET) scripts/fetch-axe.sh $(AXE_VERSION) bin
	FAIRWAY_WEB_PICTURES=$(CURDIR)/docs/web $(TEST_WEB) -run TestPagesInABrowser

FUZZ_TIME := 20s

fuzz: ## run every fuzz target for a short time (FUZZ_TIME=20s)
	@grep -rl --include=*_test.go '^func Fuzz' . | xargs -n1 dirname | sort -u | while read package; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$package/*_test.go); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ_TIME) -fuzzminimizetime 1s $$(cd $$package && go list .) || exit 1; \
		done || exit 1; \
	done

soak: dependencies fuzz mutate mutation-scores ## run the long tests: hours of crashes, faults and random workflows
	FAIRWAY_SOAK=1 go test $(RACE) -timeout 4h -tags soak ./... fairway/lib/...
	$(MAKE) SOAK=1 TAKEOVERS=100 test-gangs test-kills-gangs test-postgres test-takeover

bench: ## run the benchmarks whose figures stand in their RESULTS.md
	$(GET) scripts/install-packages.sh $(STORAGE_PACKAGES) bubblewrap charliecloud busybox-static
	$(GET) scripts/install-nextflow.sh $(NEXTFLOW_VERSION)
	@for program in bench/*/main.go; do \
		echo "$$(dirname $$program)" >&2; FAIRWAY_BIN=$(CURDIR)/bin go run ./$$(dirname $$program) -json || exit 1; \
	done

picture: build ## draw docs/run.svg, the picture of the README, from a run of examples/lambda
	$(GET) scripts/install-packages.sh $(EXAMPLE_PACKAGES)
	rm -rf bin/run && mkdir -p bin/run/examples/lambda
	cp examples/lambda/workflow.yaml bin/run/examples/lambda/
	PATH="$(CURDIR)/bin:$$PATH" go run ./scripts/picture -C bin/run -o docs/run.svg \
		fairway run examples/lambda/workflow.yaml
	rm -rf bin/run

tools: ## install what `make generate` needs
	$(GET) scripts/install-packages.sh protobuf-compiler libprotobuf-dev
	$(GET) scripts/install-go-tool.sh google.golang.org/protobuf/cmd/protoc-gen-go $(PROTOC_GEN_GO_VERSION)
	$(GET) scripts/install-go-tool.sh connectrpc.com/connect/cmd/protoc-gen-connect-go $(PROTOC_GEN_CONNECT_VERSION)

.PHONY: generate-python
generate-python: suites ## generate docs/python-api.md from the docstrings of the Python client
	PYTHONPATH=python/src bin/suites/bin/python scripts/python-api.py docs/python-api.md

generate: tools ## generate internal/wire from its .proto files
	PATH="$(CURDIR)/bin:$$PATH" go generate ./internal/wire

clean: ## remove what was built
	rm -rf bin
