"""Check an RO-Crate with roc-validator: validate.py CRATE PROFILE SEVERITY.

It prints one line for each issue, and ends with 1 if there is any. The two documents of terms are
not fetched: that of RO-Crate 1.1 is part of the package rocrate, and of that of the workflow run
profiles the terms that Fairway uses stand here, as https://w3id.org/ro/terms/workflow-run has them.
"""

import importlib.util
import json
import pathlib
import sys

from rocrate_validator import models, services
from rocrate_validator.utils import document_loader, http

RUN_TERMS = "https://w3id.org/ro/terms/workflow-run"
CRATE_TERMS = pathlib.Path(importlib.util.find_spec("rocrate").origin).parent / "data" / "ro-crate.jsonld"


def terms(url):
    if url == "https://w3id.org/ro/crate/1.1/context":
        return json.loads(CRATE_TERMS.read_text())
    if url == RUN_TERMS + "/context":
        return {"@context": {"resourceUsage": RUN_TERMS + "#resourceUsage"}}
    raise SystemExit(f"validate.py: the crate has terms of {url}")


class Answer:
    """What a fetch of terms would be answered."""

    status_code = 200
    headers = {"Content-Type": "application/ld+json"}

    def __init__(self, url):
        self.url = url
        self.text = json.dumps(terms(url))

    def json(self):
        return json.loads(self.text)


def main():
    crate, profile, severity = sys.argv[1:]
    document_loader._fetch_json_ld = terms
    http.HttpRequester.get = lambda self, url, **options: Answer(url)
    result = services.validate(services.ValidationSettings(
        rocrate_uri=crate,
        profile_identifier=profile,
        requirement_severity=getattr(models.Severity, severity),
        skip_availability_check=True,
    ))
    for issue in result.get_issues():
        where = getattr(issue, "violatingEntity", None) or getattr(issue, "resultPath", "")
        print(f"{issue.severity.name} {issue.check.identifier}: {issue.message} ({where})")
    sys.exit(0 if not result.get_issues() else 1)


main()
