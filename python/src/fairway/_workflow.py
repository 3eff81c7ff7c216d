"""Workflows as code, with the keys of a workflow file (docs/workflows.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._connection import Client, Path
from ._errors import FairwayError
from ._program import Server
from ._run import Run

_NAMES = {"as_": "as"}  # a word that Python keeps for itself


class Workflow:
    """A workflow. The keys of inputs and steps are those of a workflow file; as_ stands for as.

    w = Workflow("words")
    w.input("books", files="/usr/share/common-licenses/{book}", as_="books/{book}")
    w.step("count", each="books/{book}", writes="counts/{book}.txt", command='wc -w <"$in" >"$out"')
    w.run().wait()

    Args:
        name: of the workflow.
        **keys: those of the file beside inputs and steps.
    """

    def __init__(self, name: str, **keys: Any) -> None:
        self._file: dict[str, Any] = {"workflow": name, **_named(keys), "inputs": {}, "steps": {}}

    def input(self, name: str, **keys: Any) -> Workflow:
        """Declare an input.

        Args:
            name: of the input.
            **keys: such as files="data/{sample}.fq".
        """
        return self._add("inputs", name, keys)

    def step(self, name: str, **keys: Any) -> Workflow:
        """Declare a step.

        Args:
            name: of the step.
            **keys: such as each="{x}.txt", writes="sorted/{x}.txt", command="...".
        """
        return self._add("steps", name, keys)

    def _add(self, kind: str, name: str, keys: Mapping[str, Any]) -> Workflow:
        if name in self._file[kind]:
            raise ValueError(f"{kind} has two of the name {name!r}")
        self._file[kind][name] = _named(keys)
        return self

    def text(self) -> str:
        """The text of its workflow file. (YAML takes JSON.)."""
        return json.dumps({k: v for k, v in self._file.items() if v != {}}, indent=2) + "\n"

    def save(self, path: Path) -> None:
        """Write its workflow file, for `fairway run`."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.text())

    def run(
        self, folder: Path = ".", *, parameters: Mapping[str, Any] | None = None,
        pilots: int = 0, site: str | list[str] | None = None, keep_going: bool = False, options: Sequence[str] = (),
    ) -> Run:
        """Begin a run in a folder, or go on with it. The folder gets the file workflow.json.

        Args:
            folder: of the run.
            parameters: of the workflow.
            pilots: on this machine. 0: as `fairway run` has them.
            site: sites to run on.
            keep_going: begin what can be begun when jobs have failed.
            options: further words for `fairway run`.

        Raises:
            FairwayError: the workflow is wrong, or no server starts; the message is why.
        """
        folder = os.path.abspath(os.fspath(folder))
        os.makedirs(folder, exist_ok=True)
        self.save(os.path.join(folder, "workflow.json"))
        words = ["run", os.path.join(folder, "workflow.json"), "--pilots", str(pilots)]
        for name, value in (parameters or {}).items():
            words += ["--set", f"{name}={value}"]
        for name in [site] if isinstance(site, str) else site or []:
            words += ["--site", name]
        server = Server(folder, words + (["--keep-going"] if keep_going else []) + list(options))
        try:
            server.wait_open(Client(folder))
        except FairwayError as e:  # it may have ended already, with all done or with an error
            if server.process.poll() != 0:
                raise FairwayError("failed", server.output()) from e
        return Run(folder, server=server)


def _named(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {_NAMES.get(k, k): v for k, v in keys.items() if v is not None}
