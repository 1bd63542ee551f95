"""Whether a converted Whisper model says what CTranslate2 says of the same recordings, in fp32, greedily.

    python benchmarks/whisper_parity.py FOLDER --fsdd ../shared/data/fsdd/recordings.tar.gz --count 100
    python benchmarks/whisper_parity.py FOLDER --sentences ../shared/data/multi30k/raw/test_2016_flickr.en.gz

FOLDER is a model of CTranslate2, as faster-whisper has it. Recordings are digits of the Free Spoken Digit Dataset, of
one speaker and three to seven in a row, or lines of text that espeak-ng speaks, which must be installed. Compared are
the states of the encoder and the tokens. `--results FILE` gets a line of JSON a recording; what is in it is not done
again.
"""

import argparse
import json
import random
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.data.files import text_lines
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.pipeline.pipeline import Pipeline, load

SEED = 3


def digit_strings(archive: Path, folder: Path) -> Iterator[str]:
    """Recordings of one speaker in a row, as Transduce names them."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    files, drawn = sorted(folder.rglob("*.wav")), random.Random(SEED)
    speakers = sorted({file.stem.split("_")[1] for file in files})
    while True:
        speaker = drawn.choice(speakers)
        own = [file for file in files if file.stem.split("_")[1] == speaker]
        yield " + ".join(map(str, drawn.sample(own, drawn.randint(3, 7))))


def spoken(lines: Path, folder: Path) -> Iterator[str]:
    """Sentences by espeak-ng."""
    for number, line in enumerate(text_lines(lines)):
        path = folder / f"{number}.wav"
        subprocess.run(["espeak-ng", "-v", "en", "-w", str(path), line.strip()], check=True)
        yield str(path)


def compared(pipeline: Pipeline, theirs: Any, name: str) -> dict[str, Any]:
    """Both on one recording."""
    import ctranslate2

    columns: Any = pipeline.task.columns
    mel_SF = torch.from_numpy(columns["source"].encode([name])[0])
    began = time.process_time()
    features = ctranslate2.StorageView.from_array(mel_SF.T[None].contiguous().numpy())
    encoded = theirs.encode(features, to_cpu=True)
    [said] = theirs.generate(encoded, [[*columns["target"].before]], beam_size=1, max_length=448)
    their_seconds = time.process_time() - began
    with torch.inference_mode():
        own = pipeline.model.encode(Padded(mel_SF[None], torch.tensor([len(mel_SF)]))).values  # type: ignore[operator]
    began = time.process_time()
    found = pipeline.predict(name)
    seconds = time.process_time() - began
    ids = columns["target"].ids(found.tokens)[len(columns["target"].opening) :]
    difference = float((own - torch.from_numpy(np.array(encoded))).abs().max())
    tokenizer = columns["target"].tokenizer
    return {
        "name": " + ".join(Path(each).name for each in name.split(" + ")),
        "equal": ids == said.sequences_ids[0],
        "difference": difference,
        "ours": found.text,
        "theirs": tokenizer.decode(said.sequences_ids[0]).strip(),
        "seconds": [seconds, their_seconds],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fsdd", type=Path)
    parser.add_argument("--sentences", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--compute-type", default="float32")
    parser.add_argument("--results", type=Path, default=Path("whisper_parity.jsonl"))
    asked = parser.parse_args()
    import ctranslate2

    torch.set_num_threads(1)
    done = asked.results.read_text().splitlines() if asked.results.exists() else []
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "ours.safetensors"
        save_model_file(path, read_foreign(asked.folder, Languages("en", "en"), "ours").file)
        pipeline = load(path, device="cpu")
        theirs = ctranslate2.models.Whisper(
            str(asked.folder), device="cpu", compute_type=asked.compute_type, intra_threads=1
        )
        names = digit_strings(asked.fsdd, Path(made)) if asked.fsdd else spoken(asked.sentences, Path(made))
        for number, name in enumerate(islice(names, asked.count)):
            if number >= len(done):
                done.append(json.dumps(compared(pipeline, theirs, name), ensure_ascii=False))
                with asked.results.open("a") as file:
                    file.write(done[-1] + "\n")
    rows = [json.loads(line) for line in done[: asked.count]]
    ours, other = (sum(row["seconds"][side] for row in rows) for side in (0, 1))
    print(f"equal tokens       {sum(row['equal'] for row in rows)} of {len(rows)}")
    print(f"equal texts        {sum(row['ours'] == row['theirs'] for row in rows)} of {len(rows)}")
    print(f"encoder            {max(row['difference'] for row in rows):.1e} apart at most")
    print(f"processor seconds  {ours:.0f} Transduce, {other:.0f} CTranslate2")
    for row in rows:
        if not row["equal"]:
            print(f"{row['name']}: {row['ours']!r} {row['theirs']!r}")


if __name__ == "__main__":
    main()
