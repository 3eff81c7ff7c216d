"""Puts the program and the schema of workflow files into the wheel."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    """Takes FAIRWAY_PROGRAM (a path), FAIRWAY_PLATFORM (a tag) and FAIRWAY_SCHEMA (a path)."""

    def initialize(self, version, build_data):
        root = os.path.dirname(self.root)
        schema = os.environ.get("FAIRWAY_SCHEMA", os.path.join(root, "schema", "workflow.schema.json"))
        if os.path.exists(schema):
            build_data["force_include"][schema] = "fairway/workflow.schema.json"
        program, platform = os.environ.get("FAIRWAY_PROGRAM"), os.environ.get("FAIRWAY_PLATFORM")
        if program:
            build_data["shared_scripts"][program] = "fairway"
        build_data["pure_python"] = not program
        if platform:
            build_data["tag"] = "py3-none-" + platform
