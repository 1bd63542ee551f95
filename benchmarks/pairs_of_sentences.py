"""Pairs of texts that must be compared: a question with the sentence that answers it, or another one of its paragraph.

    python benchmarks/pairs_of_sentences.py ../shared/data/qa_xquad/xquad.en.json.gz FOLDER
    transduce train FOLDER --run runs/pairs    # trains the better one of two baselines, too

Each question of XQuAD gives two examples. Paragraphs are cut into five parts by a hash of their text: one is the test,
one picks the weights, three are trained on; so no paragraph is in two of them.
"""

import csv
import gzip
import hashlib
import json
import random
import sys
from pathlib import Path

from transduce.inference.sentences import sentences

PARTS = ("test", "validation", "train", "train", "train")
SEED = 1


def main() -> None:
    """train.csv, validation.csv and test.csv in the folder."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, list[tuple[str, str, str]]] = {part: [] for part in dict.fromkeys(PARTS)}
    draw = random.Random(SEED)
    for article in json.loads(gzip.decompress(source.read_bytes()))["data"]:
        for paragraph in article["paragraphs"]:
            number = int(hashlib.sha256(paragraph["context"].encode()).hexdigest(), 16)
            rows[PARTS[number % len(PARTS)]] += pairs(paragraph, draw)
    for part, found in rows.items():
        with (folder / f"{part}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["question", "sentence", "label"])
            writer.writerows(found)
        print(f"{part}: {len(found):,} examples")


def pairs(paragraph: dict, draw: random.Random) -> list[tuple[str, str, str]]:
    """Two for each question whose answer stands within one sentence of several."""
    context, found = paragraph["context"], []
    spans = [(each.start, each.end) for each in sentences(context, "en")]
    for question in paragraph["qas"]:
        answer = question["answers"][0]
        begin = answer["answer_start"]
        end = begin + len(answer["text"])
        own = [span for span in spans if span[0] <= begin and end <= span[1]]
        others = [span for span in spans if span not in own]
        if own and others:
            for (first, last), label in ((own[0], "answers"), (draw.choice(others), "other")):
                found.append((question["question"], context[first:last].strip(), label))
    return found


if __name__ == "__main__":
    main()
