"""Check an RO-Crate with roc-validator: validate.py CRATE PROFILE SEVERITY.

It prints one line for each issue, and ends with 1 if there is any. No terms are fetched: terms.py
has them.
"""

import json
import sys

from rocrate_validator import models, services
from rocrate_validator.utils import document_loader, http

from terms import terms


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
