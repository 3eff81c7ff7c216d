"""Jobs whose files travel: what a rule declares is read and written by the job of Fairway, in a sandbox of its own."""

import glob
import json
import os
import shutil
import stat
import sys
import textwrap
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from fairway import OpenRun

from .identity import place_of
from .sandbox import declared, name_of

_REFUSED = {"pipe": "a pipe", "service": "a service", "update": "a file that it updates",
            "storage_object": "a file of a storage plugin"}  # flags of files that do not travel
_BESIDE = ("--wait-for-files", "--wait-for-files-file", "--runtime-source-cache-path")  # words about folders of others
_CODE = (".py", ".R", ".r", ".Rmd", ".jl", ".rs", ".sh", ".ipynb", ".cwl", ".j2")  # scripts and their modules


class Files:
    """The files of the jobs of one Snakemake, by the names that they have in Fairway.

    A name says where a file lies in the sandbox: in a folder of this Snakemake, where it lies relative to the
    folder that holds the working folder and all sources. When a file changes that has a name, all files get new
    ones, from what lies there.

    Args:
        workflow: of Snakemake, whose working folder is that of this process.
        patterns: of files that each job has beside the sources that Snakemake knows.
        prefix: a name that no other Snakemake has.

    Raises:
        ValueError: there is no file of one of the patterns.
    """

    def __init__(self, workflow: Any, patterns: Iterable[str], prefix: str) -> None:
        self._workflow, self._prefix = workflow, prefix
        self._here, self._start = os.getcwd(), str(workflow.workdir_init)
        self._sources = sorted({*_sources(workflow), *_further(patterns, self._start)})
        self._root = os.path.commonpath([self._here, self._start, *map(os.path.dirname, self._sources)])
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._age, self._count = 0, 0
        self._stamps: dict[str, tuple[Any, ...]] = {}  # of files that have a name now
        self._made: set[str] = set()  # those that a job has made
        dag = workflow.dag
        done = (job for job in dag.jobs if job.is_checkpoint and not dag.needrun(job))
        # What checkpoints have made: rules that depend on them look into it.
        self._checked = {self._path(f) for job in done for f in job.output if not os.path.isabs(f)}
        self._asked: dict[str, tuple[str, list[str]]] = {}  # by job that goes on: its folder, and what it may make

    def complete(self, message: dict[str, Any], job: Any, words: list[str], begin: str) -> None:
        """Say in the message of a job what it executes, reads and writes.

        Args:
            words: those of Snakemake for this job.
            begin: code that runs Snakemake in the folder that is its first word.

        Raises:
            ValueError: not all of it can be declared, so the job would not have it.
        """
        members = _members(job)
        for member in members:
            self._refuse(member)
        inner = {str(f) for m in members for f in m.input} if job.is_group() else set()
        made = {self._path(f): f for m in members for f in (*m.output, *m.log, *filter(None, [m.benchmark]))}
        maybe = [p for p, f in made.items() if _flag(f, "temp") and str(f) in inner]
        read = self._read(members, set(made))
        self._renew(read, made)
        self._count += 1
        folder = f"{self._prefix}.{self._age}"
        kept = f"{folder}.kept/{self._count}"
        told = {"root": folder, "kept": kept, "maybe": [self._name(p) for p in maybe],
                "expected": {name_of(m): declared(m, self._root) for m in members}}
        code = ("from snakemake_executor_plugin_fairway.sandbox import sandboxed\nwith sandboxed():\n"
                + textwrap.indent(begin, " "))
        message["payload"]["argv"] = [sys.executable, "-c", code, json.dumps(told), self._name(self._start),
                                      *self._words(words)]
        message["reads"] = [{"lfn": self._name(p) + "/" * os.path.isdir(p), **({} if p in self._made else {"file": p})}
                            for p in read]
        message["writes"] = [{"lfn": self._name(p) + "/" * bool(_flag(f, "directory")), "unpublished": True}
                             for p, f in made.items() if p not in maybe]
        if maybe:
            message["writes"].append({"lfn": f"{kept}/*", "pattern": True, "unpublished": True})
        self._asked[message["name"]] = (folder, maybe)

    def bring(self, name: str, writes: Iterable[dict[str, Any]], run: OpenRun) -> None:
        """Put what a job has made into the folder of the workflow.

        It is what is stored, by a link, where that goes with this Snakemake; else a copy, since others may get it.

        Raises:
            FairwayError: it is not stored any more.
            OSError: it cannot be written.
        """
        folder, maybe = self._asked.pop(name)
        for made in writes:
            lfn, of_this_age = made["lfn"], folder == f"{self._prefix}.{self._age}"
            if lfn.startswith(f"{folder}.kept/"):
                path = maybe[int(lfn.rpartition("/")[2])]
            else:
                path = os.path.join(self._root, lfn[len(folder) + 1:].rstrip("/"))
            _bring(made, path, run, self._umask)
            if of_this_age and not lfn.startswith(f"{folder}.kept/"):
                self._made.add(path)
                self._stamps[path] = _stamp(path)

    def settled(self, job: Any) -> None:
        """Snakemake has done with the files of a job what it does with all: it touches them."""
        for member in _members(job):
            if member.is_checkpoint:
                self._checked.update(map(self._path, member.output))
            for path in map(self._path, (*member.output, *member.log, *filter(None, [member.benchmark]))):
                if path in self._made and os.path.exists(path):
                    self._stamps[path] = _stamp(path)

    def _read(self, members: list[Any], made: set[str]) -> list[str]:
        """What jobs read. A file of a folder that a job has made comes with that."""
        files = {self._path(f) for m in members for f in m.input if not os.path.isabs(f)}
        read = {*self._sources, *files, *filter(os.path.exists, self._checked)} - made
        folders = tuple(p + "/" for p in {*read, *self._made} if os.path.isdir(p))
        whole = {p + "/" if os.path.isdir(p) else p for p in read}
        whole = {next((f for f in folders if p.startswith(f)), p) for p in whole}
        return sorted(p.rstrip("/") for p in whole)

    def _refuse(self, job: Any) -> None:
        if self._workflow.deployment_settings.deployment_method and (
                job.conda_env_spec is not None or job.container_img_url is not None):
            raise ValueError(f"rule {job.rule.name} has an environment of its own, which does not travel: "
                             "make it part of the nodes, or start Snakemake without --fairway-files")
        cached = getattr(job.rule, "cache", None) or job.rule.name in getattr(self._workflow, "cache_rules", ())
        if cached and self._workflow.workflow_settings.cache is not None:  # the first versions of 9 list them
            raise ValueError(f"rule {job.rule.name} has a cache: leave --cache out, or --fairway-files")
        for file in (*job.input, *job.output):
            what = next((what for flag, what in _REFUSED.items() if _flag(file, flag)), None)
            if job.group and _flag(file, "temp") and _flag(file, "directory"):
                what = "a temporary folder in a group"
            if what is not None:
                raise ValueError(f"rule {job.rule.name} has {what}, {file}, which does not travel: start Snakemake "
                                 "without --fairway-files, on nodes that share its folder")
        for file in (*job.output, *job.log, *filter(None, [job.benchmark])):
            if os.path.isabs(file):
                raise ValueError(f"rule {job.rule.name} writes {file}: with --fairway-files the names of outputs are "
                                 "relative to the working folder")

    def _path(self, file: Any) -> str:
        path = os.path.normpath(os.path.join(self._here, str(file)))
        if os.path.isabs(file) or path.startswith(self._root + "/"):
            return path
        raise ValueError(f"{file} lies outside of {self._root}, the folder of the workflow and its sources: with "
                         "--fairway-files name it by its absolute path, which it has on all nodes, or start Snakemake "
                         "in a folder that holds both, with --directory")

    def _name(self, path: str) -> str:
        return os.path.normpath(f"{self._prefix}.{self._age}/{os.path.relpath(path, self._root)}")

    def _renew(self, read: Iterable[str], made: Iterable[str]) -> None:
        """Give all files new names, if one that has a name is not what it was, or is made by a job now."""
        stamps = {path: _stamp(path) for path in read}
        if any(self._stamps.get(path, stamp) != stamp for path, stamp in stamps.items()) or any(
                path in self._stamps and path not in self._made for path in made):
            self._age += 1
            self._stamps.clear()
            self._made.clear()
        self._stamps.update(stamps)

    def _words(self, words: list[str]) -> Iterator[str]:
        """The words of Snakemake as they are in the sandbox."""
        passed = False
        for word in words:
            if word.startswith("--"):
                passed = word in _BESIDE
            if not passed:
                inside = os.path.isabs(word) and (word + "/").startswith(self._root + "/") and os.path.exists(word)
                yield os.path.relpath(word, self._start) if inside else word
        yield "--show-failed-logs"


def _members(job: Any) -> list[Any]:
    return sorted(job.jobs, key=lambda j: j.jobid) if job.is_group() else [job]


def _flag(file: Any, flag: str) -> Any:
    return getattr(file, "flags", {}).get(flag)


def _sources(workflow: Any) -> Iterator[str]:
    """Snakefiles, configuration, folders of scripts, and modules that the Snakefiles have imported."""
    begin = str(workflow.workdir_init)
    local = [os.path.abspath(os.path.join(begin, p)) for p in map(place_of, workflow.included) if "://" not in p]
    yield from local
    yield from (os.path.join(begin, p) for p in (*workflow.configfiles, *workflow.overwrite_configfiles))
    for rule in workflow.rules:
        for script in filter(None, (rule.script, rule.notebook, rule.template_engine)):
            folder = os.path.dirname(os.path.join(place_of(rule.basedir), str(script)))
            if (begin + "/").startswith(folder + "/"):  # data lie there, too
                yield from (p for p in glob.glob(glob.escape(folder) + "/*") if p.endswith(_CODE))
            elif "://" not in folder:
                yield from _below(folder)
    folders = {os.path.dirname(p) + "/" for p in local}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if any(path.startswith(f) for f in folders) and not path.startswith(sys.prefix + "/"):
            yield path


def _below(folder: str) -> Iterator[str]:
    """The files of a folder."""
    for place, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f != "__pycache__"]
        yield from (os.path.normpath(os.path.join(place, n)) for n in names)


def _further(patterns: Iterable[str], begin: str) -> Iterator[str]:
    for pattern in patterns:
        found = glob.glob(os.path.join(begin, pattern), recursive=True)
        if not found:
            raise ValueError(f"--fairway-sources {pattern}: there is no such file in {begin}")
        for path in found:
            yield from _below(path) if os.path.isdir(path) else [os.path.abspath(path)]


def _stamp(path: str) -> tuple[Any, ...]:
    """What changes with the contents of a file or folder."""
    s = os.stat(path)
    own = (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns)
    return (*own, *map(_stamp, sorted(_below(path)))) if stat.S_ISDIR(s.st_mode) else own


def _bring(made: dict[str, Any], path: str, run: OpenRun, umask: int) -> None:
    """Put a file or folder that a job has made in the place of what is there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    stored, part = made.get("path", ""), f"{path}.{uuid.uuid4().hex[:8]}.part"
    try:
        try:
            if run.lasting:
                raise OSError
            os.link(stored, part)
        except OSError:  # it is on another file system, or stored elsewhere
            if os.path.exists(stored):
                shutil.copy2(stored, part)
            else:
                run.client.download(made["lfn"], part)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        if made["lfn"].endswith("/"):
            _unpack(part, path)
        else:
            os.chmod(part, os.stat(part).st_mode & ~umask | stat.S_IWUSR)  # what is stored is read-only
            os.replace(part, path)
    finally:
        if os.path.lexists(part):
            os.remove(part)


def _unpack(archive: str, folder: str) -> None:
    """Unpack a folder, as jobs store it."""
    os.makedirs(folder)
    with zipfile.ZipFile(archive) as members:
        for member in members.infolist():
            mode, path = member.external_attr >> 16, os.path.join(folder, member.filename)
            if stat.S_ISLNK(mode):
                os.symlink(members.read(member).decode(errors="surrogateescape"), path)
                continue
            members.extract(member, folder)
            os.chmod(path, stat.S_IMODE(mode) | stat.S_IWUSR)
