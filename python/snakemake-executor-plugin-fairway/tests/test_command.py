"""What the command of a job says beside what Snakemake puts there."""

import shlex
import subprocess
from types import SimpleNamespace

import pytest
from snakemake.target_jobs import parse_target_jobs_cli_args
from snakemake_interface_executor_plugins.utils import TargetSpec, format_cli_arg

from snakemake_executor_plugin_fairway.command import general_words, quoting_for_shells, target_words


def _workflow(resources=(), replace=False, ambiguous=False, notemp=False, omit=()):
    return SimpleNamespace(
        config_settings=SimpleNamespace(replace_workflow_config=replace),
        execution_settings=SimpleNamespace(ignore_ambiguity=ambiguous),
        storage_settings=SimpleNamespace(notemp=notemp, omit_flags=frozenset(omit)),
        global_resources={"_cores": 2, "_nodes": None, **dict(resources)},
    )


@pytest.mark.parametrize("said, words", [
    ({}, ""),
    ({"replace": True}, "--replace-workflow-config"),
    ({"ambiguous": True}, "--allow-ambiguity"),
    ({"notemp": True}, "--notemp"),
    ({"omit": ["temp", "protected"]}, "--omit-flags protected temp"),
    ({"resources": {"widget": 2, "mem_mb": SimpleNamespace(value=300), "mem": "300 MB"}},
     "--resources mem_mb=300 widget=2"),
])
def test_needs_of_all_jobs_reach_them(said, words):
    assert general_words(_workflow(**said)) == shlex.split(words)


@pytest.mark.parametrize("value", ["a", "it's $HOME `x` \"y\" z", "k=v:w", "-n", "", "a\\b"])
def test_needs_of_one_job_are_read_as_they_are(value):
    spec = [TargetSpec("rule", {"w": value, "v": "1"})]
    assert parse_target_jobs_cli_args(shlex.split(shlex.join(target_words(spec)))) == spec


@pytest.mark.parametrize("value", ["a,b", "'q'", 'end"'])
def test_needs_that_would_be_read_as_others_are_refused(value):
    with pytest.raises(ValueError, match="rename the files"):
        target_words([TargetSpec("rule", {"w": value})])


@pytest.mark.parametrize("value", ["plain", "it's", 'it\'s "both"', "two\nlines", "'q'", '"a" b', "back\\slash", "$HOME `x`"])
def test_values_are_quoted_for_shells(value):
    with quoting_for_shells():
        text = format_cli_arg("--config", [value])
    said = subprocess.run(["sh", "-c", f"printf '%s\\0' {text}"], stdout=subprocess.PIPE, check=True).stdout
    assert said.decode().split("\0")[:-1] == shlex.split(text) == ["--config", value]
