"""The layout of help: verbs in groups with an example each, and indented examples kept as they are written."""

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand, TyperGroup

GROUPS = {
    "First steps": ("demo",),
    "Train": ("train", "new", "distill", "translate-back", "shortlist"),
    "Use": ("predict", "generate", "serve", "export", "convert"),
    "Judge": ("evaluate", "score", "compare"),
    "Look inside": ("explore", "info", "runs"),
    "Data": ("doctor",),
}

OUTPUTS = ("-o", "--output", "--output-dir", "--out", "--dir", "--save")  # as other tools call where results go


class VerbHelp(TyperCommand):
    """A command whose docstring opens with one sentence and an indented example."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """An option that other commands have is answered with what it is called here."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # NoSuchOption, which lies elsewhere in each version of typer
            known = {name for parameter in self.params for name in parameter.opts}
            if getattr(error, "option_name", None) in OUTPUTS and not getattr(error, "possibilities", None):
                error.possibilities = [name for name in ("--run", "--output") if name in known][:1]  # type: ignore[attr-defined]
            raise

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Paragraphs are wrapped; indented ones are written line by line."""
        for paragraph in paragraphs(self.help):
            formatter.write_paragraph()
            with formatter.indentation():
                if not paragraph.startswith("    "):
                    formatter.write_text(paragraph)
                    continue
                for line in paragraph.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Verbs(TyperGroup):
    """The command with the verbs."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One section a group: each verb with its first sentence, and an example under it."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(self._rows(names)))
        with formatter.section("Help for one of them"):
            formatter.write_text("transduce VERB --help")

    def _rows(self, names: Sequence[str]) -> Any:
        width = max(map(len, self.commands))
        for name in names:
            sentence, example, *_ = paragraphs(self.commands[name].help)
            yield name.ljust(width), " ".join(sentence.split())
            yield "", example.splitlines()[0].strip()


def paragraphs(text: str | None) -> list[str]:
    """The paragraphs of a docstring, without the indentation that all lines share."""
    return cleandoc(text or "").split("\n\n")
