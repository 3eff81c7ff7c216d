"""Puts the program and the schema of workflow files into the wheel, and all that a wheel needs into the sdist."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_WORKER = "src/fairway/worker.py"  # a link in the repository
_SCHEMA = "schema/workflow.schema.json"


class ProgramHook(BuildHookInterface):
    """Takes FAIRWAY_PROGRAM (a path), FAIRWAY_PLATFORM (a tag) and FAIRWAY_SCHEMA (a path)."""

    def initialize(self, version, build_data):
        """Add files to what is built."""
        include = build_data["force_include"]
        beside = [self.root, os.path.dirname(self.root)]  # an sdist that was unpacked, or the repository
        named = os.environ.get("FAIRWAY_SCHEMA")
        schemas = [named] if named else [os.path.join(folder, _SCHEMA) for folder in beside]
        schema = next(filter(os.path.exists, schemas), None)
        if self.target_name == "sdist":
            include[os.path.realpath(os.path.join(self.root, _WORKER))] = _WORKER
            licence = next(filter(os.path.exists, (os.path.join(folder, "LICENSE") for folder in beside)), None)
            include.update({path: to for path, to in ((schema, _SCHEMA), (licence, "LICENSE")) if path})
            return
        if schema:
            include[schema] = "fairway/workflow.schema.json"
        program, platform = os.environ.get("FAIRWAY_PROGRAM"), os.environ.get("FAIRWAY_PLATFORM")
        if program:
            build_data["shared_scripts"][program] = "fairway"
        build_data["pure_python"] = not program
        if platform:
            build_data["tag"] = "py3-none-" + platform
