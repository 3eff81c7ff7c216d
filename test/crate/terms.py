"""The documents of terms to which crates refer, without a network.

That of RO-Crate 1.1 is part of the package rocrate. Of that of the workflow run profiles the terms
that Fairway uses stand here, as https://w3id.org/ro/terms/workflow-run has them.
"""

import importlib.util
import json
import pathlib

RUN_TERMS = "https://w3id.org/ro/terms/workflow-run"
CRATE_TERMS = pathlib.Path(importlib.util.find_spec("rocrate").origin).parent / "data" / "ro-crate.jsonld"
USED = ("resourceUsage", "containerImage", "ContainerImage", "ParameterConnection", "connection", "sourceParameter",
        "targetParameter")


def terms(url):
    if url == "https://w3id.org/ro/crate/1.1/context":
        return json.loads(CRATE_TERMS.read_text())
    if url == RUN_TERMS + "/context":
        return {"@context": {name: RUN_TERMS + "#" + name for name in USED}}
    raise SystemExit(f"the crate has terms of {url}")


def inline(crate):
    """The metadata of a crate, with its terms in the place of their documents."""
    metadata = json.loads((pathlib.Path(crate) / "ro-crate-metadata.json").read_text())
    metadata["@context"] = [terms(c)["@context"] if isinstance(c, str) else c for c in metadata["@context"]]
    return metadata
