"""Writes docs/python-api.md from the docstrings of the Python client: PYTHONPATH=python/src scripts/python-api.py FILE.

It ends with an error where a public name has no docstring, or one whose Args are not the parameters.
"""

import importlib
import inspect
import re
import sys
import textwrap

_MODULES = ("fairway", "fairway.joblib", "fairway.dask")
_WIDTH = 100
_HEAD = """# The Python client, name by name

Made from its docstrings by `make generate-python`; [Python](python.md) shows how it is used. The
messages that `Client.call` takes and gives stand in `fairway.messages`, and in [the
API](api.md).
"""


def _wrapped(text, first="", rest=""):
    return textwrap.fill(" ".join(text.split()), _WIDTH, initial_indent=first, subsequent_indent=rest,
                         break_long_words=False, break_on_hyphens=False)


def _entries(lines):
    """Names with what is said of each, of a section such as Args; a text without names has the name ""."""
    found = []
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        match = re.match(r"(\*{0,2}\w+): (.*)", line)
        if match:
            found.append([match.group(1), match.group(2)])
        elif found:
            found[-1][1] += " " + line
        elif line.strip():
            found.append(["", line])
    return found


def _sections(doc):
    """The text of a docstring, and its sections by name."""
    text, sections, lines = [], {}, inspect.cleandoc(doc).splitlines()
    into = text
    for line in lines:
        match = re.fullmatch(r"(Args|Attributes|Returns|Raises):", line)
        if match:
            into = sections[match.group(1)] = []
        else:
            into.append(line)
    return "\n".join(text).strip(), {name: _entries(body) for name, body in sections.items()}


def _paragraphs(text):
    for part in re.split(r"\n\s*\n", text):
        if re.search(r"^(import|with|w =|w\.) ?", part, re.MULTILINE):  # an example
            yield f"```python\n{part}\n```"
        else:
            yield _wrapped(part)


def _said(name, thing, doc, wrong):
    if not doc:
        wrong.append(f"{name} has no docstring")
        return
    text, sections = _sections(doc)
    parameters = []
    if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, BaseException)):
        kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        parameters = [kinds.get(p.kind, "") + p.name for p in inspect.signature(thing).parameters.values()
                      if p.name not in ("self", "_")]
    told = [entry for entry, _ in sections.get("Args", [])]
    if told != parameters and (told or len(parameters) > 1):
        wrong.append(f"{name}: Args are {', '.join(told) or 'not there'}, and not {', '.join(parameters)}")
    yield from _paragraphs(text)
    for title, entries in sections.items():
        yield f"{title}:"
        yield "\n".join(_wrapped(f"`{entry}`: {what}" if entry else what, "- ", "  ") for entry, what in entries)


def _signature(name, thing, method):
    text = re.sub(r"<function .*? at 0x[0-9a-f]+>", "...", str(inspect.signature(thing)).replace("'", ""))
    text = re.sub(r"\(self(, )?", "(", text) if method else text
    return "```python\n" + textwrap.fill(name + text, _WIDTH, subsequent_indent="    ", break_long_words=False,
                                         break_on_hyphens=False) + "\n```"


def _members(kind):
    """The public members that a class itself has, in the order of its text."""
    for name, member in vars(kind).items():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            yield name, member


def page(wrong):
    """The text of the page. What is missing is added to wrong."""
    parts = [_HEAD]
    for module_name in _MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(module.__all__):
            thing, path = getattr(module, name), f"{module_name}.{name}"
            parts.append(f"## {path}")
            error = inspect.isclass(thing) and issubclass(thing, BaseException)
            if not error:
                parts.append(_signature(path, thing, False).replace(" -> None", "", inspect.isclass(thing)))
            parts += _said(path, thing, thing.__doc__, wrong)
            for member, what in _members(thing) if inspect.isclass(thing) else ():
                full = f"{name}.{member}"
                parts.append(f"### {full}")
                if not isinstance(what, property):
                    parts.append(_signature(full, what, True))
                parts += _said(full, None if isinstance(what, property) else what, inspect.getdoc(what), wrong)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    missing = []
    made = page(missing)
    if missing:
        sys.exit("\n".join(missing))
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write(made)
