"""Predictions as lines on standard output, and lines asked for at a terminal; of models with and without torch."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.inference.prediction import Prediction

Write = Callable[["Prediction", dict[str, str]], None]  # of a prediction, and what it is called


def writer(
    as_json: bool, multiline: bool = False, draw: "Callable[[Prediction], None] | None" = None, form: str | None = None
) -> Write:
    """What writes a prediction: its text or JSON, and below it a picture.

    Args:
        multiline: with its line breaks and the white space around its source; else a prediction is one line.
        draw: draws the picture; None = there is none.
        form: a further format; see `Prediction.written_as`.
    """
    from transduce.cli.text import tell, write_line, write_text
    from transduce.core.errors import InputError

    def write(prediction: "Prediction", named: dict[str, str]) -> None:
        if form:
            for line in prediction.written_as(form).split("\n"):
                write_line(line)
        elif multiline and not as_json:
            write_text(surrounded(prediction))
        else:
            write_line({**named, **prediction.to_dict()} if as_json else prediction.text)
        if draw:
            try:
                draw(prediction)
            except InputError as error:  # an empty text, one in several pieces, an ensemble
                tell(str(error))

    return write


def surrounded(prediction: "Prediction") -> str:
    """The output with the white space that stands around its source."""
    source = prediction.source
    if not source.strip():
        return source
    before, after = source[: len(source) - len(source.lstrip())], source[len(source.rstrip()) :]
    return f"{before}{prediction.text.strip()}{after}"


def answer(predict: "Callable[[str], list[Prediction]]", write: Write) -> None:
    """Ask for lines at the terminal and answer each, until there are no more; what is wrong with one is told."""
    from transduce.cli.text import tell
    from transduce.core.errors import InputError

    tell("One line in, one line out; Ctrl-D ends.")
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        raw = sys.stdin.buffer.readline()
        if not raw:
            print(file=sys.stderr)
            return
        try:
            line = raw.decode("utf-8").rstrip("\n")
            if line:
                [prediction] = predict(line)
                write(prediction, {})
                sys.stdout.flush()
        except UnicodeDecodeError as error:
            tell(f"This line is not UTF-8: {error.reason}.")
        except InputError as error:
            tell(str(error))
