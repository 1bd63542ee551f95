"""Help reads as sentences: each verb in one group, with an example that its own options can parse."""

import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from transduce.cli.app import GROUPS, app
from transduce.cli.commands import paragraphs
from transduce.serve.settings import ServeSettings

COMMAND: Any = get_command(app)
VERBS = list(COMMAND.commands)


def test_each_verb_is_in_one_group() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_opens_with_one_sentence_and_an_example(verb: str) -> None:
    sentence, example, *_ = paragraphs(COMMAND.commands[verb].help)
    assert re.fullmatch(r"[A-Z].*[^.]\.", " ".join(sentence.split()))
    words = shlex.split(example.partition("<")[0])
    assert words[:2] == ["transduce", verb]
    command = COMMAND.commands[verb]
    command.make_context(verb, words[2:], resilient_parsing=False)  # fails for an option or a value that is none


def test_the_overview_has_groups_and_whole_examples() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    places = [shown.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    for verb in VERBS:
        sentence, example, *_ = paragraphs(COMMAND.commands[verb].help)
        assert example.strip() in shown
        assert " ".join(sentence.split()) in " ".join(shown.split())


def test_the_overview_imports_no_command_and_a_command_no_other() -> None:
    code = (
        "import sys; sys.argv[0] = 'transduce'; from transduce.cli.app import main\n"
        "try: main()\nfinally: print('at last', *sys.modules)"
    )
    places = {verb: f"transduce.cli.{verb.replace('-', '_')}" for verb in VERBS}
    for words, wanted in ({"--help": "", "score --help": "score"}).items():
        command = [sys.executable, "-c", code, *words.split()]
        shown, _, modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.rpartition(
            "at last"
        )
        assert [verb for verb, place in places.items() if place in modules.split()] == [wanted] * bool(wanted)
        if not wanted:
            assert " ".join(shown.split()) == " ".join(CliRunner().invoke(app, ["--help"]).output.split())


@pytest.mark.parametrize("verb", VERBS)
def test_each_option_is_a_sentence(verb: str) -> None:
    for each in COMMAND.commands[verb].params:
        assert re.match(r"(--|/)?[A-Za-z]", each.help), each.name
        assert each.help.endswith("."), each.name


@pytest.mark.parametrize("verb", VERBS)
def test_an_example_is_written_as_it_is(verb: str) -> None:
    _, example, *_ = paragraphs(COMMAND.commands[verb].help)
    assert f"\n  {example}\n" in CliRunner().invoke(app, [verb, "--help"]).output


def test_the_defaults_of_a_server_are_those_of_its_settings() -> None:
    helps = {each.name: each.help for each in COMMAND.commands["serve"].params}
    fields = ServeSettings.model_fields
    said = {name: found[1] for name, text in helps.items() if (found := re.search(r"By default ([\d.]*\d)\b", text))}
    assert {name: float(value) for name, value in said.items()} == {name: float(fields[name].default) for name in said}
    numbers = {name for name in helps if name in fields and type(fields[name].default) in {int, float}}
    assert numbers == set(said)
