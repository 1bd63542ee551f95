"""Does a sentence get the same translation alone and in any batch?

    python benchmarks/batch_invariance.py MODEL SOURCE [--sentences 1000]

Translates the same sentences in batches of 1, 7 and 64 and in shuffled order; prints how many outputs differ and the
largest difference of scores.
"""

import argparse
import random
from pathlib import Path

import transduce
from transduce.data.files import read_lines
from transduce.inference.prediction import Prediction


def main() -> None:
    """A line for each way of batching."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    asked = parser.parse_args()
    model = transduce.load(asked.model)
    sentences = list(read_lines(asked.source))[: asked.sentences]
    alone = model.predict(sentences, batch_size=1)
    for size in (7, 64):
        report(f"batch {size}", alone, model.predict(sentences, batch_size=size))
    order = random.Random(1).sample(range(len(sentences)), len(sentences))
    shuffled = model.predict([sentences[place] for place in order], batch_size=64)
    report("shuffled, batch 64", [alone[place] for place in order], shuffled)


def report(name: str, alone: list[Prediction], batched: list[Prediction]) -> None:
    """Compare ids' spelling and scores, sentence by sentence."""
    pairs = list(zip(alone, batched, strict=True))
    different = sum(one.tokens != other.tokens for one, other in pairs)
    largest = max(abs(one.score - other.score) for one, other in pairs)
    print(f"{name}: {different} of {len(pairs)} outputs differ, largest difference of scores {largest:.1e}")


if __name__ == "__main__":
    main()
