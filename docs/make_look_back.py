"""What a language model looks back at while it reads a sentence, as a figure (Cheng et al. 2016, figure 1).

    transduce train recipes/ptb-lstmn.toml training.updates=4000
    python docs/make_look_back.py runs/ptb-lstmn        # writes docs/figures/look-back.svg

The Penn Treebank is in lower case, so the sentence of the paper is, too. Words that the model does not know are told.
"""

import argparse
from pathlib import Path

from rich.console import Console

import transduce
from transduce.interpret.drawing import save

SENTENCE = "the fbi is chasing a criminal on the run"
FIGURE = Path(__file__).parent / "figures" / "look-back.svg"


def main() -> None:
    """Draws in the terminal and in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the run directory or model file of a language model that attends to its own past")
    parser.add_argument("--text", default=SENTENCE)
    parser.add_argument("--file", type=Path, default=FIGURE, help="a .svg or .png file")
    asked = parser.parse_args()
    model = transduce.load(asked.run)
    target = model.task.columns["target"]
    ids = target.encode([asked.text])[0]
    back = model.look_back(asked.text)
    unknown = [word.text for word in back.words if any(ids[token] == target.unknown for token in word.tokens)]
    print(f"unknown to the model: {' '.join(unknown) or 'nothing'}")
    Console().print(back)
    print(f"written: {save(back.plot(), asked.file)}")


if __name__ == "__main__":
    main()
